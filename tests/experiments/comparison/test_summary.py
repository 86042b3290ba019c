"""Means are over runs that count, and tables show what the summaries hold."""

import math

import pytest

from experiments.comparison import summary
from experiments.comparison.training import Outcome


def made_run(**values):
    """What a record has of a run of which these values are known."""
    return dict.fromkeys(Outcome._fields) | {"failure": ""} | values


def made_row(module="a", task="digits", *, runs=(), trials=(), family="transformer"):
    """What a record has of a module on a task."""
    fixed = {"family": family, "framework": "jax", "width": 8, "parameters": 100, "learning_rate": 0.01}
    return {"module": module, "task": task, "runs": list(runs), "trials": list(trials), **fixed}


RUNS = [
    made_run(accuracy=0.5, time_ratio=2.0, memory_ratio=1.5, steps_before=3.0, steps_after=5.0, unsolved_training=0.0),
    made_run(accuracy=0.7, time_ratio=4.0, memory_ratio=1.5, steps_before=3.0, steps_after=7.0, unsolved_training=0.2),
    made_run(accuracy=0.0, time_ratio=99.0, memory_ratio=1.5, failure="not converged: 100 %", unsolved_training=1.0),
]


def test_a_run_that_failed_is_counted_and_does_not_enter_the_mean():
    (s,) = summary.summarize({"rows": [made_row(runs=RUNS)]})
    assert s.accuracy == pytest.approx(0.6)
    # Two values 0.2 apart: standard deviation 0.2 / sqrt 2, error of the mean 0.1.
    assert s.standard_error == pytest.approx(0.1)
    assert (s.failed, s.num_runs, s.reasons) == (1, 3, ("not converged: 100 %",))
    assert s.time_ratio == pytest.approx(3.0)
    assert s.steps == (3.0, 6.0)
    assert s.unsolved == pytest.approx(0.4)
    assert all(math.isnan(value) for value in s.contraction)


def test_a_module_whose_runs_all_failed_has_no_accuracy():
    (s,) = summary.summarize(
        {"rows": [made_row(runs=RUNS[2:], trials=[made_run(failure="diverged") | {"learning_rate": 1.0}])]}
    )
    assert math.isnan(s.accuracy)
    assert s.accuracies.size == 0
    assert s.failed_trials == (1.0,)
    assert "| none | 1 of 1 |" in summary.accuracy_table([s])


def test_errors_of_a_difference_add_in_squares():
    one, other = summary.summarize(
        {"rows": [made_row(runs=RUNS[:2]), made_row("b", runs=[made_run(accuracy=a) for a in (0.1, 0.3)])]}
    )
    gap, error = summary.difference(one, other)
    assert gap == pytest.approx(0.4)
    assert error == pytest.approx(0.1 * math.sqrt(2))


def test_wins_are_the_share_of_pairs_that_the_first_has_and_ties_are_halves():
    one, other, none = summary.summarize(
        {
            "rows": [
                made_row(runs=[made_run(accuracy=a) for a in (0.2, 0.5, 0.9)]),
                made_row("b", runs=[made_run(accuracy=a) for a in (0.5, 0.6)]),
                made_row("c", runs=RUNS[2:]),
            ]
        }
    )
    # 0.2 beats none of two, 0.5 ties one, 0.9 beats both.
    assert summary.wins(one, other) == pytest.approx(2.5 / 6)
    assert summary.wins(one, other) + summary.wins(other, one) == pytest.approx(1)
    assert math.isnan(summary.wins(one, none))


def test_tables_have_a_line_for_each_module_and_both_tasks_in_it():
    rows = [made_row("a", runs=RUNS[:2]), made_row("a", "recall", runs=RUNS[:1]), made_row("b", runs=RUNS[:2])]
    found = summary.summarize({"rows": rows})
    lines = summary.accuracy_table(found).splitlines()
    assert lines[2] == "| a | 8 | 100 | 0.01 | 0.600 ± 0.100 | 0.500 | 0 of 2 / 0 of 1 |"
    assert len(lines) == 4
    assert summary.cost_table(found).splitlines()[2] == "| a | JAX | 3.0 / 2.0 | 1.5 |"
    assert summary.diagnostics_table(found).splitlines()[2] == "| a | digits | 3.0 → 6.0 | – | – | 10.0 % |"


def test_a_row_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="module: expected one with a row for digits, got x"):
        summary.find([], "x", "digits")
