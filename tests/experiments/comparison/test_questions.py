"""Primary questions: what is held against what, and that records with a known truth get the right answers."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from experiments.comparison import depths, headline, judging, modules, questions
from experiments.comparison.questions import QUESTIONS

PLAN = (Path(__file__).resolve().parents[3] / "book" / "plan-of-the-comparison.md").read_text(encoding="utf-8")
BLIND = {"accuracy": 0.1, "loss": 2.8}


def record(means, *, task="mnist", seeds=8, spread=0.002, failed=()):
    """Runs whose scores are ``means`` by (row, depth) plus noise, half of it shared by a seed."""
    rng = np.random.default_rng(1)
    shared, cells = rng.normal(size=seeds), []
    base = 0.97 if questions.endpoint(task) == "accuracy" else 1.8
    # In the order of the plan: that of a set depends on the process, and the noise with it.
    for row, _, depth in questions.in_order(task):
        score = base + means.get((row, depth), 0.0) + spread * (shared + rng.normal(size=seeds))
        failure = ["diverged" if (row, depth, k + 1) in failed else "" for k in range(seeds)]
        values = [None if reason else float(x) for reason, x in zip(failure, score, strict=True)]
        runs = {"seed": list(range(1, seeds + 1)), "failure": failure, "accuracy": values, "test_loss": values}
        cells.append({"row": row, "task": task, "depth": depth, "runs": runs})
    return {"blind": {task: BLIND}, "cells": cells}


def ask(kind, made, task="mnist"):
    return questions.answer(next(q for q in QUESTIONS if q.kind == kind), made, task)


def test_every_row_of_a_question_is_a_row_of_the_comparison():
    assert {row for question in QUESTIONS for row in question.rows} <= set(modules.ROWS)


@pytest.mark.parametrize(("task", "sign"), [("mnist", -1), ("text", 1)])
def test_a_part_is_essential_if_every_row_without_one_is_worse_by_more_than_the_margin(task, sign):
    rows, margin = QUESTIONS[0].rows, questions.MARGINS[questions.endpoint(task)]
    worse = {(row, 4): 2 * sign * margin for row in rows}
    assert ask("loss", record(worse, task=task), task).decision == "yes"
    assert ask("loss", record(worse | {(rows[1], 4): 0.0}, task=task), task).decision == "no"
    # What is better without a part is not worse by a margin: the sign counts.
    assert ask("loss", record({key: -value for key, value in worse.items()}, task=task), task).decision == "no"
    # What is lost at depth 1 is not asked for.
    shallow = {(row, 1): 2 * sign * margin for row in rows}
    assert ask("loss", record(shallow, task=task), task).decision == "no"


def test_mixers_are_equivalent_within_the_margin_on_either_side():
    rows = QUESTIONS[1].rows
    assert ask("equivalence", record({(rows[0], 4): -0.004, (rows[1], 4): 0.004})).decision == "yes"
    assert ask("equivalence", record({(rows[2], 4): -0.03})).decision == "no"
    assert ask("equivalence", record({(rows[2], 4): 0.03})).decision == "no"


def test_spins_keep_up_if_their_distance_does_not_grow():
    rows = QUESTIONS[2].rows
    behind = {(row, depth): -0.05 for row in rows for depth in (1, 4)}
    assert ask("growth", record(behind)).decision == "yes"
    assert ask("growth", record(behind | {(rows[0], 4): -0.09})).decision == "no"
    # To catch up is to keep up.
    assert ask("growth", record(behind | {(rows[0], 4): 0.0})).decision == "yes"


@pytest.mark.parametrize("kind", ["loss", "equivalence", "growth"])
def test_noise_beyond_the_margin_leaves_every_question_open(kind):
    assert ask(kind, record({}, spread=0.05, seeds=5)).decision == "undecided"


def test_differences_are_between_runs_of_one_seed():
    """The part of the noise that a seed shares drops out: were the runs paired otherwise, the error would be larger."""
    finding = ask("loss", record({}, seeds=200)).findings[0]
    error = 0.002 * math.sqrt(2 / 200)
    assert finding.difference.standard_error == pytest.approx(error, rel=4 / math.sqrt(2 * 200))


def test_a_failed_run_counts_as_a_guess_and_cannot_decide_alone():
    row = QUESTIONS[0].rows[0]
    worse = {(r, 4): -0.02 for r in QUESTIONS[0].rows}
    # Without a loss, failures alone make the row worse: undecided.
    failed = {(row, 4, k) for k in range(1, 8)}
    few = ask("loss", record(worse | {(row, 4): 0.0}, failed=failed, seeds=10)).findings[0]
    assert few.failed == (1, 2, 3, 4, 5, 6, 7)
    assert few.difference.mean == pytest.approx(0.7 * 0.87, abs=0.01)
    assert few.verdict.decision == "yes"
    assert few.decision == "undecided"
    # Where the others say the same it stands.
    assert ask("loss", record(worse, failed=failed, seeds=10)).decision == "yes"


def test_a_text_that_failed_has_the_loss_of_a_guess():
    found = ask("loss", record({}, task="text", failed={("no residual", 4, 1)}), "text").findings[0]
    assert found.difference.mean == pytest.approx((2.8 - 1.8) / 8, abs=0.01)


def test_a_record_with_too_few_seeds_is_refused():
    with pytest.raises(
        ValueError, match="record: expected at least two seeds of no residual and vanilla on mnist, got 1"
    ):
        ask("loss", record({}, seeds=1))


def test_the_number_of_runs_is_that_of_the_hardest_contrast():
    rng = np.random.default_rng(3)
    cells = questions.primary_cells(["mnist"], (1, 4))
    scores = {(row, depth, s): 0.9 for row, _, depth in cells for s in range(4)}
    assert questions.runs_needed(scores, "mnist", least=5, most=16) == 5
    scores |= {("FNet", 4, s): 0.9 + 0.004 * rng.normal() for s in range(4)}
    values = [0.9 - scores["FNet", 4, s] for s in range(4)]
    spread = judging.greatest_spread(values)
    expected = judging.pairs_needed(lambda n: judging.equivalence_power(n, 0.01, spread), most=16)
    assert questions.runs_needed(scores, "mnist", least=5, most=16) == expected > 5
    scores |= {("gMLP", 4, s): 0.9 + 0.1 * (-1) ** s for s in range(4)}
    assert questions.runs_needed(scores, "mnist", least=5, most=16) == 16
    assert questions.runs_needed({}, "text", least=5, most=16) == 5


def test_the_plan_says_the_rows_and_numbers_that_are_used():
    for question in QUESTIONS:
        assert question.asks in PLAN
        for row in question.rows:
            assert row.split(",")[0].removesuffix(" spins") in PLAN
    for row in modules.ROWS:
        assert row.split(",")[0].removeprefix("naive ").removeprefix("TAP ") in PLAN
    assert "One percentage point of accuracy on *mnist*, 0.02 nats on *text*" in PLAN
    assert questions.MARGINS == {"accuracy": 0.01, "loss": 0.02}
    assert "at level 0.05" in PLAN
    assert "a power of 0.9" in PLAN
    assert (questions.LEVEL, questions.POWER, questions.SHALLOW, questions.DEEP) == (0.05, 0.9, 1, 4)


def test_the_plan_says_in_which_order_things_are_run_and_when_they_are_judged():
    changes = " ".join(PLAN[PLAN.index("(changes-of-the-plan)=") :].split())
    for group in depths._groups(depths.ALL):
        assert f"*{group.task}*" in changes
        for cell in group.cells if group.name.endswith("dear") else ():
            assert cell.row.split(",")[0] in changes
    assert "*mnist* and then *text*" in changes
    assert "*recall apart* comes last" in changes
    assert "the simplest method stands beside the rows" in changes
    assert headline.ALL.num_updates == 20_000
    assert 300 in headline.ALL.frames
    assert "n(20000)" in changes
    assert "above 0.9 after 300 updates, 1.5 % of the training" in changes
    assert changes.count("*Then:*") == changes.count("*Now:*") == changes.count("*Reason:*")
    assert "judged on a task when all runs that it needs there are made" in changes


def test_answers_of_the_record_are_those_of_paired_tests_by_scipy():
    made, margins = depths.recorded(), {"mnist": (1, "accuracy", 0.01), "text": (-1, "test_loss", 0.02)}
    runs = {(c["row"], c["task"], c["depth"]): c["runs"] for c in made["cells"]}
    for answer in questions.answers(made):
        sign, name, margin = margins[answer.task]

        def lost(row, depth, task=answer.task, sign=sign, name=name):
            ours, theirs = (
                sign * np.array(its[name])[np.argsort(its["seed"])]
                for its in (runs[row, task, depth], runs["vanilla", task, depth])
            )
            return theirs - ours

        yes, no = [], []
        for row in answer.question.rows:
            d = lost(row, 4) - (lost(row, 1) if answer.question.kind == "growth" else 0)
            above, below = (stats.ttest_1samp(d, margin, alternative=a).pvalue for a in ("greater", "less"))
            inside, under = (stats.ttest_1samp(d, -margin, alternative=a).pvalue for a in ("greater", "less"))
            found = {
                "loss": (above, below),
                "growth": (below, above),
                "equivalence": (max(below, inside), 2 * min(above, under)),
            }[answer.question.kind]
            yes.append(found[0])
            no.append(found[1])
        assert answer.verdict.p_yes == pytest.approx(max(yes), rel=1e-6)
        assert answer.verdict.p_no == pytest.approx(min(1, len(no) * min(no)), rel=1e-6)
