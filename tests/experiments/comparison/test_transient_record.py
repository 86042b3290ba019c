"""The record of the transient: what is read of it is what it has."""

import numpy as np
import pytest

from experiments import records
from experiments.comparison import transient_record as kept


def test_losses_are_those_of_their_place():
    record = records.of_book("transient")
    found = kept.losses(record, "1", "inf", beta=3.0)
    assert sorted(found) == [1, 2, 3]
    assert found[2] == kept.find(record, "1", beta=3.0, seed=2)["held_out"][-1]
    for place in (("3", "1"), ("vanilla", "8")):
        with pytest.raises(ValueError, match="row: expected one of the record, got"):
            kept.losses(record, *place)


def test_a_course_is_that_of_its_number_of_updates_summed_over_the_heads():
    place = np.array([1000, 100, 1, 0.1])
    grid = np.stack(np.meshgrid(*map(np.arange, (3, 2, 4, 2)), indexing="ij"), axis=-1) @ place
    run = {"row": "1", "beta": 1.0, "seed": 1, "mismatch": grid.tolist()}
    record = {"runs": [run], "kept_updates": [1, 2, 4, 12]}
    np.testing.assert_allclose(kept.course(record, "1", "mismatch", updates=4), grid[:, :, 2].sum(-1))
    with pytest.raises(ValueError, match=r"updates: expected one of \[1, 2, 4, 12\], got 3"):
        kept.course(record, "1", "mismatch", updates=3)


def test_the_table_has_a_mean_and_half_an_interval_of_every_use():
    runs = [
        {"row": "1", "beta": 1.0, "seed": s, "uses": ["1", "inf"], "held_out": [1 + s / 10, None]} for s in (1, 2, 3)
    ]
    runs += [run | {"row": "vanilla", "uses": ["once"], "held_out": [1.0]} for run in runs]
    table = kept.loss_table({"runs": runs, "blind": 3.0}).splitlines()
    # Student's factor for two degrees of freedom is 4.303, and the spread of three numbers in a row is their distance.
    assert table[2] == f"| 1 | 1 | 3 | 1.2000 ± {0.1 * 4.30265 / 3**0.5:.4f} | 3.0000 ± 0.0000 |  |"
    assert table[3] == "| vanilla |  | 3 |  |  | 1.0000 ± 0.0000 |"


def test_errors_are_ratios_of_sums_and_roots_of_means():
    cell = {"chi": np.full((2, 1, 1), 0.5).tolist(), "delayed_rest": [[[[0.04, 0.1]]], [[[0.14, 0.1]]]]}
    cell["sigma"] = [[[[1.0, 0.1]]], [[[3.0, 0.1]]]]
    cell["proxy"] = [[[[1.5, 9.0]]], [[[2.9, 9.0]]]]
    found = kept.errors({"rows": {"1": cell}}, "1", exact=False)
    assert found.sigma == pytest.approx(0.1)
    assert kept.errors({"rows": {"1": cell}}, "1").sigma == pytest.approx(18 / 4 - 1)
    assert found.sigma_error == pytest.approx(np.std([0.4, -0.4], ddof=1) / np.sqrt(2) / 2)
    assert found.delayed_rest == pytest.approx(0.3)
    assert (found.within(0.11), found.within(0.09)) == (1, 0)
