"""Tables of a record of stacks show its runs, a failed one as a guess, and what the questions made of them."""

import math

import numpy as np
import pytest
from scipy import stats

from experiments.comparison import by_depth, questions
from experiments.comparison.training import Outcome


def cell(row, depth, scores, *, task="mnist", failure=(), **columns):
    n = len(scores)
    runs = {name: [None] * n for name in Outcome._fields} | {
        "seed": list(range(1, n + 1)),
        "learning_rate": [0.006] * n,
        "failure": [*failure, *[""] * (n - len(failure))],
        "accuracy": list(scores),
        "test_loss": list(scores),
        "layers": {},
    }
    fixed = {"family": "spin transformer", "framework": "jax", "width": 32, "parameters": 100}
    return {"row": row, "task": task, "depth": depth, "runs": runs | columns} | fixed


def record(*cells):
    blind = {"mnist": {"accuracy": 0.1, "loss": 2.3}, "text": {"accuracy": 0.2, "loss": 2.8}}
    return {"cells": list(cells), "blind": blind, "runs_of_primary_cells": {"mnist": 3}}


def test_a_score_is_the_mean_with_students_interval():
    (stack,) = by_depth.summarize(record(cell("vanilla", 4, [0.90, 0.92, 0.94])))
    assert stack.score == pytest.approx(0.92)
    # Three numbers 0.02 apart: standard deviation 0.02.
    assert stack.half_width == pytest.approx(float(stats.t.ppf(0.975, 2)) * 0.02 / math.sqrt(3))
    assert (stack.failed, stack.num_runs, stack.learning_rate) == (0, 3, 0.006)
    assert "| vanilla | 0.920 ± 0.050 |" in by_depth.score_table([stack], "mnist")


@pytest.mark.parametrize(("task", "guess"), [("mnist", 0.1), ("text", 2.8)])
def test_a_failed_run_counts_as_a_guess_and_is_told(task, guess):
    made = record(cell("no residual", 4, [None, 0.5], task=task, failure=["diverged"]))
    (stack,) = by_depth.summarize(made)
    assert stack.scores.tolist() == [guess, 0.5]
    assert (stack.failed, stack.reasons) == (1, ("diverged",))
    assert ", 1 of 2 failed |" in by_depth.score_table([stack], task)


def test_the_physics_of_failed_runs_is_left_out():
    layers = {"contraction": [[[0.1, 0.3], [0.5, 0.7]], [[9.0, 9.0], [None, 9.0]]]}
    made = record(
        cell(
            "naive spins, one step, 4 heads",
            2,
            [0.9, None],
            failure=["", "diverged"],
            contraction_before=[0.2, 9.0],
            contraction_after=[0.6, None],
            layers=layers,
        )
    )
    (stack,) = by_depth.summarize(made)
    assert stack.contraction == (0.2, 0.6)
    assert all(map(math.isnan, stack.production))
    np.testing.assert_array_equal(stack.by_layer["contraction"], [[0.1, 0.3], [0.5, 0.7]])
    assert "| 2 | – | 0.20 → 0.60 | – |" in by_depth.physics_table([stack], "mnist")
    assert "vanilla" not in by_depth.physics_table(by_depth.summarize(record(cell("vanilla", 4, [0.9, 0.9]))), "mnist")


def test_costs_stand_beside_their_depths():
    made = record(
        cell("FNet", 1, [0.9, 0.9], time_ratio=[2.0, None], memory_ratio=[3.0, None]),
        cell("FNet", 4, [0.9, 0.9], time_ratio=[4.0, None], memory_ratio=[None, None]),
        cell("FNet", 2, [1.0], task="text", time_ratio=[9.0]),
    )
    stacks = by_depth.summarize(made)
    table = by_depth.cost_table(stacks, "mnist").splitlines()
    assert table[0] == "| row | time, depth 1 | time, depth 4 | memory, depth 1 | memory, depth 4 |"
    assert table[-1] == "| FNet | 2.0 | 4.0 | 3.0 | – |"
    assert by_depth.find(stacks, "FNet", "text", 2).time_ratio == 9.0
    with pytest.raises(ValueError, match="row: expected one with runs on text at depth 4, got FNet"):
        by_depth.find(stacks, "FNet", "text", 4)


def test_cells_that_have_only_trials_are_left_out():
    trials_only = {name: value for name, value in cell("FNet", 1, [0.9]).items() if name != "runs"}
    assert by_depth.summarize(record(trials_only)) == ()


def test_answers_are_set_out_with_signs_units_and_decisions():
    rows = {"vanilla": [0.95, 0.951, 0.952], "no residual": [0.90, 0.9, 0.9], "no feed-forward": [0.92, 0.92, 0.92]}
    rows["no normalisation"] = [0.96, 0.961, 0.961]
    (answer,) = questions.answers(record(*(cell(row, 4, scores) for row, scores in rows.items())))
    table = by_depth.answer_table([answer]).splitlines()
    assert len(table) == 2 + 3
    assert table[2].startswith(
        "| essential | mnist | no residual | +5.10 (+4.93 to +5.27) | 1.00 | 3 | 0 | yes | **no** |"
    )
    assert table[3].startswith("|  |  | no normalisation | -0.97 (")
    assert table[3].endswith("| no |  |")


def test_a_record_says_what_was_run_and_what_was_not():
    design = {
        "rows": ["vanilla", "FNet", "memory, three steps"],
        "tasks": ["mnist", "text"],
        "depths": [1, 4],
        "least": 2,
    }
    made = record(
        cell("vanilla", 4, [0.9, 0.9, 0.9]),
        # Two are enough for a row that no primary question asks about, and not for one of theirs.
        cell("memory, three steps", 1, [0.9, None], failure=["", "diverged"]),
        cell("FNet", 4, [0.9, 0.9]),
        {name: value for name, value in cell("vanilla", 1, []).items() if name != "runs"},
    ) | {"design": design}
    whole = [(c["row"], c["depth"]) for c in by_depth.whole_cells(made)["cells"]]
    assert whole == [("vanilla", 4), ("memory, three steps", 1)]
    lines = by_depth.coverage_table(made).splitlines()[2:]
    assert lines == [
        "| mnist | 2 of 6 | 7 | 1 | vanilla at depth 1; FNet; memory, three steps at depth 4 |",
        "| text | 0 of 6 | 0 | 0 | all |",
    ]
