"""The questions of the transient: records with a known truth get the right answers, and the plan says what is used."""

import re
from pathlib import Path

import numpy as np
import pytest

from experiments.comparison import transient
from experiments.comparison import transient_questions as asked
from experiments.comparison.transient_questions import LEVEL, MARGIN, QUESTIONS, SEEDS

PLAN = (Path(__file__).resolve().parents[3] / "book" / "plan-of-the-transient.md").read_text(encoding="utf-8")
WORDS = " ".join(PLAN.split())
HURTS, BETTER, RIVAL = QUESTIONS
PAIRS = sorted({(t.row, t.use) for q in QUESTIONS for c in q.contrasts for t in c.terms})


def record(means, *, seeds=5, spread=0.002, unsettled=(), lost=(), beta=1.0):
    """Losses of 2 plus ``means`` by (row, use) and noise, most of it shared by a seed. ``means`` may be of a seed."""
    rng = np.random.default_rng(5)
    shared, runs = rng.normal(size=seeds), []
    for row in sorted({row for row, _ in PAIRS}):
        uses = [use for other, use in PAIRS if other == row]
        for k in range(seeds):
            own = {use: means.get((row, use, k + 1), means.get((row, use), 0.0)) for use in uses}
            losses = [2 + own[use] + 0.05 * shared[k] + spread * rng.normal() for use in uses]
            entry = {"row": row, "beta": beta, "seed": k + 1, "uses": uses, "skipped": 0.0}
            entry["held_out"] = [None if (row, use, k + 1) in lost else x for use, x in zip(uses, losses, strict=True)]
            entry["held_out_unsettled"] = [0.5 if (row, use, k + 1) in unsettled else 0.0 for use in uses]
            runs.append(entry)
    return {"blind": 3.0, "runs": runs}


def decision(question, *made, **options):
    return asked.answer(question, record(*made, **options)).decision


def test_relaxing_hurts_if_the_steady_state_loses_more_than_the_margin():
    assert decision(HURTS, {("1", "inf"): 3 * MARGIN}) == "yes"
    assert decision(HURTS, {("1", "inf"): -3 * MARGIN}) == "no"
    # What is there and does not matter is no loss.
    assert decision(HURTS, {("1", "inf"): 0.3 * MARGIN}) == "no"
    assert decision(HURTS, {("1", "inf"): MARGIN}) == "undecided"
    # Where one update is bad it is no loss to leave it.
    assert decision(HURTS, {("1", "1"): 3 * MARGIN}) == "no"


def test_transients_are_better_only_if_nothing_else_comes_near():
    others = [("inf", "inf"), ("inf, values in the field", "inf"), ("random", "1")]
    worse = dict.fromkeys(others, 3 * MARGIN)
    assert decision(BETTER, worse) == "yes"
    for pair in others:
        assert decision(BETTER, worse | {pair: 0.0}) == "no", pair
        assert decision(BETTER, worse | {pair: MARGIN}) == "undecided", pair
    # A row that is better in a use that is not asked for changes nothing.
    assert decision(BETTER, worse | {("1", "inf"): -1.0, ("2", "2"): -1.0}) == "yes"


def test_a_change_that_costs_as_much_backwards_says_nothing_of_relaxation():
    assert decision(RIVAL, {("1", "2"): 5 * MARGIN, ("2", "1"): 5 * MARGIN}) == "no"
    assert decision(RIVAL, {("1", "2"): 5 * MARGIN, ("2", "1"): MARGIN}) == "yes"
    assert decision(RIVAL, {("1", "2"): MARGIN, ("2", "1"): 5 * MARGIN}) == "no"
    # A model that gets worse with one update and with two alike has lost nothing by the change.
    assert decision(RIVAL, {("2", "1"): 5 * MARGIN, ("2", "2"): 5 * MARGIN, ("1", "2"): 5 * MARGIN}) == "yes"


def test_a_first_look_that_decides_stands_and_one_that_does_not_waits_for_the_second():
    first, second = SEEDS
    open_at_first = {("1", "inf"): MARGIN} | {("1", "inf", s): 12 * MARGIN for s in range(first + 1, second + 1)}
    early = asked.answer(HURTS, record(open_at_first, seeds=first))
    assert (early.decision, early.final, early.seeds) == ("undecided", False, (1, 2, 3, 4, 5))
    assert asked.undecided(record(open_at_first, seeds=first))
    between = asked.answer(HURTS, record(open_at_first, seeds=first + 1))
    assert (between.decision, between.final, len(between.seeds)) == ("undecided", False, first)
    late = asked.answer(HURTS, record({("1", "inf"): MARGIN}, seeds=second))
    assert (late.decision, late.final, len(late.seeds)) == ("undecided", True, second)
    decided = {("1", "inf", s): 3 * MARGIN for s in range(1, first + 1)}
    decided |= {("1", "inf", s): -9 * MARGIN for s in range(first + 1, second + 1)}
    found = asked.answer(HURTS, record(decided, seeds=second))
    assert (found.decision, found.final, len(found.seeds)) == ("yes", True, first)
    assert not asked.undecided(record(decided | dict.fromkeys(PAIRS[2:4], 0.0), seeds=first))


def test_answers_before_the_first_look_are_provisional():
    found = asked.answer(HURTS, record({("1", "inf"): 3 * MARGIN}, seeds=3))
    assert (found.decision, found.final, found.seeds) == ("yes", False, (1, 2, 3))


def test_both_looks_together_have_the_level():
    rng = np.random.default_rng(11)
    wrong = []
    for _ in range(400):
        noise = {("1", "inf", s): MARGIN + 0.02 * rng.normal() for s in range(1, SEEDS[1] + 1)}
        wrong.append(asked.answer(HURTS, record(noise, seeds=SEEDS[1], spread=0.0)).decision != "undecided")
    # Exactly at the margin either decision is wrong: twice the level at most, and each look has half of it.
    rate = 2 * LEVEL
    assert np.mean(wrong) < rate + 4 * np.sqrt(rate * (1 - rate) / 400)
    assert np.mean(wrong) > rate / 2 - 4 * np.sqrt(rate / 2 * (1 - rate / 2) / 400)


def test_failed_runs_stay_in_and_cannot_decide_alone():
    key = ("1", "inf", 2)
    found = asked.answer(HURTS, record({("1", "inf"): 3 * MARGIN}, unsettled={key})).findings[0]
    assert found.failed == (2,)
    assert found.decision == "yes"
    # Without the seeds that failed nothing is left of the loss.
    three = {("1", "inf", s): 9 * MARGIN for s in (1, 2, 3, 4)}
    failed = asked.answer(HURTS, record(three, unsettled=set(three)))
    assert failed.findings[0].failed == (1, 2, 3, 4)
    assert failed.decision == "undecided"
    opposite = record(dict.fromkeys(three, -9 * MARGIN), unsettled=set(three))
    assert asked.answer(HURTS, opposite).findings[0].verdict.decision == "no"
    assert asked.answer(HURTS, opposite).decision == "undecided"
    skipped = record({("1", "inf"): 3 * MARGIN})
    for run in skipped["runs"]:
        run["skipped"] = 0.2
    assert asked.answer(HURTS, skipped).decision == "undecided"


def test_a_loss_that_is_no_number_is_that_of_guessing():
    key = ("1", "inf", 2)
    found = asked.answer(HURTS, record({("1", "inf"): 0.5}, lost={key})).findings[0]
    assert found.failed == (2,)
    assert found.difference.mean == pytest.approx((4 * 0.5 + 1) / 5, abs=0.03)


def test_temperatures_are_judged_apart():
    both = record({("1", "inf"): 3 * MARGIN})
    both["runs"] += record({("1", "inf"): -3 * MARGIN}, beta=3.0)["runs"]
    assert asked.answer(HURTS, both).decision == "yes"
    assert asked.answer(HURTS, both, beta=3.0).decision == "no"
    with pytest.raises(ValueError, match="record: expected at least two seeds of relaxing hurts at beta = 2, got 0"):
        asked.answer(HURTS, both, beta=2.0)


def test_every_row_and_use_of_a_question_is_run():
    rows = {row.name: row.uses for row in transient.PRIMARY}
    assert all(use in rows[row] for row, use in PAIRS)
    assert {row for row, _ in PAIRS} == set(rows)
    assert {row.beta for row in transient.PRIMARY} == {1.0}


def test_the_plan_says_the_questions_and_numbers_that_are_used():
    for question in QUESTIONS:
        assert question.asks in PLAN
    for name in {row.name for row in (*transient.PRIMARY, *transient.BESIDE)}:
        assert f"| {name} |" in PLAN or f"| {name}; " in PLAN or f"; {name} |" in PLAN
    assert f"{MARGIN:g} nats per character, for every contrast" in WORDS
    assert f"The first is at {SEEDS[0]} seeds" in WORDS
    assert f"the second look is at {SEEDS[1]} seeds" in WORDS
    assert f"The level of each question is {LEVEL:g} over both looks, half of it at each, {LEVEL / 2:g}" in WORDS
    full = transient.ALL
    assert (full.depth, full.dim, full.num_heads, full.length, full.batch) == (6, 128, 4, 64, 16)
    assert "Six layers" in WORDS
    assert "128 components in four heads" in WORDS
    assert f"{full.updates:,} updates of the weights with {full.batch} windows of {full.length} characters" in WORDS
    assert f"a rate of {full.learning_rate:g}" in WORDS
    assert f"the same {full.batch * full.held_out_batches:,} held-out windows" in WORDS
    assert (full.least, full.most) == SEEDS
    assert len(re.findall(rf"\| 1 to {full.least} \|", PLAN)) == len(transient.PRIMARY)
    assert f"1 to {full.beside_seeds} |" in PLAN
    assert "$K=1$, 2, 3, 4, 8 and in the steady state" in WORDS
    assert transient.USES == ("1", "2", "3", "4", "8", "inf")
    assert f"$K$ from 1 to {transient.LARGEST_RANDOM}" in WORDS
