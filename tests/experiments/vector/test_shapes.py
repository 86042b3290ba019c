"""Shapes of attention and the record of their delayed correlations."""

import numpy as np
import pytest

from experiments.vector import shapes
from experiments.vector.shapes import Case
from spinbook import lens


def test_every_shape_is_attention_and_has_what_its_name_says():
    found = {shape: shapes.system(Case(shape, 1.0, 4, num_sites=24, dim=8))[0] for shape in shapes.SHAPES}
    for J in found.values():
        assert J.sum(1) == pytest.approx(1)
    P = {shape: float(lens.concentration(lens.stationary(J))) for shape, J in found.items()}
    assert P["independent"] < 1.3 < P["popular columns"] < P["sink +5"]
    i, j = np.indices((24, 24))
    assert np.all(found["causal"][i < j] == 0)
    assert np.all((found["band"] > 0) == (abs(i - j) <= 3))
    assert found["ring"][0, 21] > 0
    assert found["mostly the next"][i[:-1, 0], i[:-1, 0] + 1].mean() > 0.3
    assert found["sink that keeps"][0, 0] > 0.8
    assert lens.second_eigenvalue(found["independent"]) < 0.3 < 0.9 < lens.second_eigenvalue(found["band"])
    J, x = shapes.system(Case("learned, weak sink", 1.0, 4, dim=8))
    assert len(J) == 64
    lengths = np.linalg.norm(x, axis=1)
    assert lengths[0] == pytest.approx(lengths[1] / 4)


def test_a_recorded_prediction_is_made_again_without_sampling_more_than_the_shape():
    (case, recorded) = next(row for row in shapes.record() if row[0].shape == "band")
    again = shapes.measure(case._replace(replicas=8, steps=4))
    for name in ("predicted", "attention"):
        assert again[name] == pytest.approx(recorded[name], rel=1e-3)
