"""Shapes of attention and the record of their delayed correlations."""

import numpy as np
import pytest

from experiments.vector import fidelity, shapes
from experiments.vector.shapes import Case
from spinbook import lens
from spinbook.precision import enable_x64
from spinbook.vector import closure


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


def test_a_recorded_prediction_is_made_again():
    case, recorded = next(row for row in shapes.record() if row[0].shape == "band")
    with enable_x64(True):
        J, x = shapes.system(case)
        m = fidelity.steady_means(J, x, case.beta, fidelity.STEPS["naive"])
        naive = fidelity.independent_correlations(J, m, case.beta)
        law, found = lens.sink_law(J, m, beta=case.beta), closure.steady_state(J, x, beta=case.beta)
    closed = np.asarray(found.delayed_correlations)
    foreseen = np.linalg.norm(closed - naive) / np.linalg.norm(closed)
    assert recorded["predicted"] == pytest.approx([law.uniform, law.with_sinks, law.linear, foreseen], rel=1e-3)
    alike = law.concentration, lens.second_eigenvalue(J), lens.attended(J)
    assert recorded["attention"] == pytest.approx(np.array(alike), rel=1e-3)
