"""Runs outside the plan stay outside of it, and do what they say."""

import math

import numpy as np
import pytest

from experiments.comparison import depths, doubts, training
from experiments.comparison.training import Course, Outcome, Score


@pytest.fixture
def calls(monkeypatch):
    """Runs that cost nothing: the largest pixel that each sees, and how it was asked for."""
    made = []

    def follow(module, task, *, learning_rate, seed, recipe, repeats):
        largest = float(np.abs(task.train.features).max())
        made.append((module.name, module.depth, learning_rate, recipe.num_updates, seed, largest))
        outcome = Outcome(*[0.5] * 15, failure="diverged" if largest < 1 else "")
        return Course(Score(1.0, 0.5, 0.0), Score(1.0, 0.4, 0.0), outcome, np.ones(1), np.ones((3, 1)), {})

    monkeypatch.setattr(training, "follow", follow)
    return made


def test_a_doubt_is_a_run_of_its_row_with_pixels_divided_as_it_says(calls, tmp_path):
    record = doubts.compare(doubts.SMOKE, sample=True, folder=tmp_path)
    (row, depth, rate, updates, seed, whole), (*_, small), (*_, one_hot) = calls
    assert (row, depth, rate, updates, seed) == ("FNet", 1, 6e-3, 25, doubts.SEED)
    assert whole / small == pytest.approx(7, rel=1e-6)
    assert doubts.find(record, doubts.SMOKE[0]) == 0.5
    assert math.isnan(doubts.find(record, doubts.SMOKE[1]))
    # A character is one feature out of 37; what counts is the loss.
    assert one_hot == 1
    assert doubts.find(record, doubts.SMOKE[2]) == 1.0
    with pytest.raises(ValueError, match=r"doubt: expected one of the record, got FNet at depth 4 with 0\.006"):
        doubts.find(record, doubts.SMOKE[0]._replace(depth=4))


def test_doubts_use_a_seed_and_rates_that_the_plan_does_not_have_and_are_recorded():
    planned = {0, *range(1001, 1001 + depths.ALL.pilot), *range(1, depths.ALL.most + 1)}
    assert doubts.SEED not in planned
    record = doubts.recorded()
    assert [tuple(run[name] for name in doubts.Doubt._fields) for run in record["runs"]] == list(doubts.ALL)
    beyond = [d for d in doubts.ALL if d.learning_rate not in depths.ALL.learning_rates]
    assert {d.row for d in beyond} >= {"no residual", "no normalisation"}
