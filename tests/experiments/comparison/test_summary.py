"""Means are over runs that count, and the table that the library carries has the runs of the records."""

import math

import numpy as np
import pytest
from scipy import stats

from experiments import records
from experiments.comparison import summary
from experiments.comparison.training import Outcome
from spinbook.records import table


def made_run(**values):
    """What a record has of a run of which these values are known."""
    names = (*Outcome._fields, "steps_before", "steps_after", "memory_ratio")
    return dict.fromkeys(names) | {"failure": ""} | values


def made_row(module="a", task="digits", *, runs=()):
    """What a record has of a module on a task."""
    fixed = {"family": "transformer", "framework": "jax", "width": 8, "parameters": 100, "learning_rate": 0.01}
    return {"module": module, "task": task, "runs": list(runs), **fixed}


RUNS = [
    made_run(accuracy=0.5, time_ratio=2.0, memory_ratio=1.5, steps_before=3.0, steps_after=5.0, unsolved_training=0.0),
    made_run(accuracy=0.7, time_ratio=4.0, memory_ratio=1.5, steps_before=3.0, steps_after=7.0, unsolved_training=0.2),
    made_run(accuracy=0.0, time_ratio=99.0, memory_ratio=1.5, failure="not converged: 100 %", unsolved_training=1.0),
]


def test_a_run_of_a_block_that_failed_is_counted_and_does_not_enter_the_mean():
    s, lost = summary.summarize({"rows": [made_row(runs=RUNS), made_row("b", runs=RUNS[2:])]})
    assert s.score == pytest.approx(0.6)
    # Two values 0.2 apart: standard deviation 0.2 / sqrt 2, error of the mean 0.1.
    assert s.standard_error == pytest.approx(0.1)
    assert (s.failed, s.num_runs, s.steps) == (1, 3, (3.0, 6.0))
    assert s.time_ratio == pytest.approx(3.0)
    assert s.unsolved == pytest.approx(0.4)
    assert all(math.isnan(value) for value in s.contraction)
    assert (lost.scores.size, lost.failed) == (0, 1)
    assert math.isnan(lost.score)


@pytest.mark.parametrize(("task", "guess"), [("mnist", 0.1), ("text", 2.8)])
def test_a_run_of_a_stack_that_failed_counts_as_a_guess(task, guess):
    columns = {
        "accuracy": [None, 0.5],
        "test_loss": [None, 0.5],
        "failure": ["diverged", ""],
        "time_ratio": [4.0, None],
    }
    columns |= {"learning_rate": [0.1, 0.1], "contraction_before": [9.0, 0.2], "contraction_after": [None, 0.6]}
    cell = {"row": "FNet", "task": task, "depth": 2, "runs": columns, "family": "mixers", "framework": "jax"}
    blind = {task: {"accuracy": 0.1, "loss": 2.8}}
    trials_only = {"row": "FNet", "task": task, "depth": 4}
    made = {"cells": [cell | {"width": 8, "parameters": 100}, trials_only], "blind": blind}
    (s,) = summary.summarize(made)
    assert s.scores.tolist() == [guess, 0.5]
    assert (s.failed, s.num_runs, s.learning_rate, s.depth, s.time_ratio) == (1, 2, 0.1, 2, 4.0)
    # What physics a failed run has is left out.
    assert s.contraction == (0.2, 0.6)


def test_wins_are_the_share_of_pairs_that_the_first_has_and_ties_are_halves():
    first = [made_run(accuracy=a) for a in (0.2, 0.5, 0.9)]
    second = [made_run(accuracy=a) for a in (0.5, 0.6)]
    a, b, none = summary.summarize({"rows": [made_row(runs=its) for its in (first, second, RUNS[2:])]})
    u = stats.mannwhitneyu(a.scores, b.scores).statistic
    assert summary.wins(a, b) == pytest.approx(u / 6) == pytest.approx(2.5 / 6)
    assert math.isnan(summary.wins(a, none))


def test_a_table_has_a_line_for_each_row_and_a_gap_where_there_is_none():
    rows = [made_row("a", runs=RUNS[:2]), made_row("b", "recall", runs=RUNS[:1])]
    shown = {"time": lambda s: summary.number(s.time_ratio, 1), "error": lambda s: summary.number(s.standard_error, 1)}
    lines = summary.table(summary.summarize({"rows": rows}), "task", shown).splitlines()
    assert lines[0] == "| row | time, digits | time, recall | error, digits | error, recall |"
    assert lines[2:] == ["| a | 3.0 |  | 0.1 |  |", "| b |  | 2.0 |  | – |"]
    with pytest.raises(ValueError, match="row: expected one with runs on digits at depth 1, got x"):
        summary.find([], "x", "digits")


def test_means_of_the_table_that_the_library_carries_are_those_of_the_records():
    carried = table("comparison")
    for file in ("comparison", "longer"):
        record = records.of_book("comparison", file)
        for s in summary.summarize(record):
            chosen = (carried.task == s.task) & (carried.updates == record["recipe"]["num_updates"])
            accuracies = carried[chosen & (carried.module == s.row)].accuracy
            assert (len(accuracies), accuracies.isna().sum()) == (s.num_runs, s.failed)
            np.testing.assert_allclose(accuracies.mean(), s.score, rtol=1e-14)
