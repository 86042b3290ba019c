"""The record of the transient: what is read of it is what it has, and limits say the same as the verdicts."""

import math
from importlib import resources

import numpy as np
import pytest

from experiments import records
from experiments.comparison import trained_heads, transient
from experiments.comparison import transient_questions as asked
from experiments.comparison import transient_record as kept
from experiments.comparison.transient import ALL, SMOKE, Row
from experiments.comparison.transient_questions import LEVEL, MARGIN, QUESTIONS, SEEDS
from experiments.comparison.transient_record import Place
from tests.experiments.comparison.test_transient_questions import record

HURTS, BETTER, CHANGE = QUESTIONS
OTHERS = [("inf", "inf"), ("inf, values in the field", "inf"), ("random", "1")]
TRUE = {("1", "inf"): 9 * MARGIN, ("1", "2"): 8 * MARGIN, ("2", "1"): 2 * MARGIN} | dict.fromkeys(OTHERS, 3 * MARGIN)


def flipped(made):
    """Every loss as far on the other side of 2 as it was on this one."""
    return made | {"runs": [run | {"held_out": [4 - loss for loss in run["held_out"]]} for run in made["runs"]]}


def followed(run, *, looks=3, layers=2, heads=2, updates=12):
    """The run with paths on which every number is its own: look, layer, update and head are digits of it."""
    place = np.array([1000, 100, 1, 0.1])
    grid = np.stack(np.meshgrid(*map(np.arange, (looks, layers, updates, heads)), indexing="ij"), axis=-1)
    return run | {"mismatch": (grid @ place).tolist(), "irreversibility": (-grid @ place).tolist()}


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_a_claim_holds_of_its_record_and_not_of_the_flipped_one(question):
    made = record(TRUE)
    for given, holds in ((made, True), (flipped(made), False)):
        found = kept.limits(asked.answer(question, given))
        assert (found.low > MARGIN) is holds
        assert (found.high < MARGIN) is not holds


def test_limits_are_beyond_the_margin_just_where_the_tests_decide():
    """With means around the margin and much noise, so that all three decisions occur."""
    rng, seen = np.random.default_rng(3), set()
    for _ in range(150):
        means = {place: MARGIN * (1 + rng.normal()) for place in [("1", "inf"), ("1", "2"), ("2", "1"), *OTHERS]}
        given = record(means, spread=0.3 * MARGIN)
        for question in QUESTIONS:
            answer = asked.answer(question, given)
            found = kept.limits(answer)
            assert (found.low > MARGIN) is (answer.decision == "yes")
            assert (found.high < MARGIN) is (answer.decision == "no")
            assert found.low < found.least < found.high
            seen.add((question.name, answer.decision))
    assert len(seen) == 9


def test_the_lower_limit_of_one_contrast_is_the_end_of_its_interval_of_95_per_cent():
    assert 2 * LEVEL / len(SEEDS) == pytest.approx(0.05)
    answer = asked.answer(HURTS, record(TRUE))
    assert kept.limits(answer).low == pytest.approx(answer.findings[0].difference.low)


def test_rivals_of_the_claims_fail_where_the_claims_hold():
    """Models that are best with what they were trained with, of which one update is best of all."""
    made = record(TRUE | {("inf", "1"): 9 * MARGIN, ("random", "2"): 3 * MARGIN, ("inf", "inf"): 3 * MARGIN})
    for run in made["runs"]:
        if run["row"] in ("inf", "random"):
            base = run["held_out"][-1]
            run["uses"], run["held_out"] = ["1", "2", "inf"], [base, base, base - 6 * MARGIN * (run["row"] == "inf")]
            run["held_out_unsettled"] = [0.0] * 3
    rivals = (
        kept.instead(HURTS, {("1", "inf"): ("inf", "inf"), ("1", "1"): ("inf", "1")}),
        kept.instead(BETTER, {("1", "1"): ("1", "inf")}),
    )
    for rival in rivals:
        assert kept.limits(asked.answer(rival, made)).low < 0
    # That one update less costs as much is seen only where both are compared.
    same = record({("1", "2"): 8 * MARGIN, ("2", "1"): 9 * MARGIN})
    alone = kept.instead(CHANGE, {("2", "1"): ("2", "2")})
    assert kept.limits(asked.answer(CHANGE, same)).high < MARGIN
    assert kept.limits(asked.answer(alone, same)).high > 7 * MARGIN


def test_a_question_is_asked_of_other_places_and_of_none_that_it_has_not():
    other = kept.instead(BETTER, {("1", "1"): ("1", "inf")})
    assert [[(t.sign, t.row, t.use) for t in c.terms] for c in other.contrasts] == [
        [(1, row, use), (-1, "1", "inf")] for row, use in OTHERS
    ]
    with pytest.raises(ValueError, match=r"places: expected some of .*'inf'.*, got \('2', '2'\)"):
        kept.instead(BETTER, {("2", "2"): ("1", "1")})


def test_differences_by_seed_are_those_that_are_judged():
    made = record(TRUE)
    for question in QUESTIONS:
        for finding in asked.answer(question, made).findings:
            found = kept.by_seed(made, finding.contrast)
            assert sorted(found) == [1, 2, 3, 4, 5]
            assert np.mean(list(found.values())) == pytest.approx(finding.difference.mean)


def test_losses_are_those_of_their_place_and_guesses_where_there_is_none():
    made = record(TRUE, lost={("1", "inf", 2)})
    found = kept.losses(made, Place("1", "inf"))
    assert found[2] == made["blind"]
    assert found[1] == next(r for r in made["runs"] if r["row"] == "1")["held_out"][2]
    for place in (Place("3", "1"), Place("1", "8"), Place("1", "1", 3.0)):
        with pytest.raises(ValueError, match="place: expected one of the record, got"):
            kept.losses(made, place)
    with pytest.raises(ValueError, match="row: expected one of the record at beta = 3 from seed 1, got 1"):
        kept.find(made, "1", beta=3.0)


def test_pairs_are_of_seeds_that_both_have():
    made = record({("1", "inf"): 0.5})
    made["runs"] = [run for run in made["runs"] if run["row"] == "1" or run["seed"] in (2, 4)]
    found = kept.difference(made, Place("1", "inf"), Place("inf", "inf"))
    assert found.num_pairs == 2
    # The spread that a seed shares is gone.
    assert found.mean == pytest.approx(0.5, abs=0.01)
    made["runs"] = [run for run in made["runs"] if run["row"] == "1" or run["seed"] == 2]
    with pytest.raises(ValueError, match="theirs: expected at least two seeds in common with ours, got 1"):
        kept.difference(made, Place("1", "inf"), Place("inf", "inf"))
    by_use = kept.by_use(made, "1", Place("1", "1"))
    assert list(by_use) == ["1", "2", "inf"]
    assert by_use["1"].mean == by_use["1"].high == 0
    with pytest.raises(ValueError, match="row: expected one of the record at beta = 1, got 7"):
        kept.by_use(made, "7", Place("1", "1"))


def test_the_spread_over_uses_is_of_the_worst_and_the_best():
    found, worst, best = kept.spread_over_uses(record(TRUE), "1")
    assert (worst, best) == ("inf", "1")
    assert found.mean == pytest.approx(9 * MARGIN, abs=0.005)


def test_a_slim_record_has_the_same_courses_and_says_what_it_was_made_of(tmp_path):
    made = record(TRUE)
    made["runs"][0] = followed(made["runs"][0])
    records.write(tmp_path / "whole", made)
    whole = records.read(tmp_path / "whole")
    slim = kept.slim(whole)
    records.write(tmp_path / "slim", slim)
    slim = records.read(tmp_path / "slim")
    assert slim["whole"] == whole["sha256"]
    assert kept.slim(slim) == slim
    for name, sign in (("mismatch", 1), ("irreversibility", -1)):
        for updates in kept.KEPT:
            expected = [[sign * 2 * (1000 * k + 100 * j + updates - 1 + 0.05) for j in range(2)] for k in range(3)]
            for given in (whole, slim):
                np.testing.assert_allclose(kept.course(given, "1", name, updates=updates), expected)
    with pytest.raises(ValueError, match=r"updates: expected one of \[1, 2, 4, 12\], got 3"):
        kept.course(slim, "1", "mismatch", updates=3)
    with pytest.raises(ValueError, match="name: expected one of mismatch, irreversibility, got chi"):
        kept.course(slim, "1", "chi")
    assert asked.answers(slim) == asked.answers(whole)


def test_tables_have_a_line_for_every_row_and_contrast():
    made = record(TRUE)
    made["runs"] += [run for run in record(TRUE, seeds=2, beta=3.0)["runs"] if run["row"] == "1"]
    lines = kept.loss_table(made).splitlines()
    assert lines[0] == "| trained with | beta | seeds | 1 | 2 | steady state |"
    assert len(lines) == 2 + 5 + 1
    values = [run["held_out"][0] for run in made["runs"] if run["row"] == "2" and run["beta"] == 1]
    (line,) = (line for line in lines if line.startswith("| 2 |"))
    half = 2.776445 * np.std(values, ddof=1) / math.sqrt(5)
    assert line == f"| 2 | 1 | 5 | {np.mean(values):.4f} ± {half:.4f} | " + line.split(" | ")[4] + " |  |"
    answers = asked.answers(made)
    told = kept.answer_table(answers).splitlines()
    assert len(told) == 2 + 5
    d = answers[0].findings[0].difference
    assert f"{d.mean:+.4f} ({d.low:+.4f} to {d.high:+.4f}) | 5 | 0 | yes | **yes** |" in told[2]
    early = kept.answer_table([asked.answer(HURTS, record(TRUE, seeds=3))])
    assert "**yes, provisional**" in early


def test_the_sample_is_the_smallest_version_on_the_text_that_comes_along():
    sample = kept.recorded(sample=True)
    assert sample["complete"]
    assert sample["data"] == {}
    assert sample["design"]["updates"] == SMOKE.updates
    there = {(run["row"], run["beta"], run["seed"]) for run in sample["runs"]}
    wanted = {(row.name, row.beta, seed) for row in SMOKE.primary for seed in range(1, SMOKE.least + 1)}
    assert wanted <= there
    assert kept.find(sample, "1")["uses"] == list(transient.USES)


@pytest.mark.slow
def test_the_sample_can_be_made_again():
    again = transient.train(transient.Run(Row("1"), 1), SMOKE)
    then = kept.find(kept.recorded(sample=True), "1")
    np.testing.assert_allclose(again["held_out"].mean(axis=1), then["held_out"], rtol=2e-4)
    np.testing.assert_allclose(again["looks"], then["looks"], rtol=2e-4)


def test_the_record_of_the_book_is_that_of_the_plan_and_small():
    """Whole seeds of the rows that questions are about; if it says that it is complete, all that the plan asks for."""
    found = kept.recorded()
    there = {(run["row"], run["beta"], run["seed"]) for run in found["runs"]}
    seeds = max(seed for _, _, seed in there)
    assert seeds >= 3
    wanted = {(row.name, row.beta, seed) for row in ALL.primary for seed in range(1, seeds + 1)}
    assert wanted <= there
    if found["complete"]:
        assert seeds >= ALL.least
        beside = {(row.name, row.beta, seed) for row in ALL.beside for seed in range(1, ALL.beside_seeds + 1)}
        assert beside <= there
    assert all(answer.final == (seeds >= ALL.least) for answer in asked.answers(found))
    assert found["design"] == ALL._asdict() | {
        name: [row._asdict() for row in getattr(ALL, name)] for name in ("primary", "beside")
    }
    assert found["data"] == {transient.moby_dick.FILE.name: transient.moby_dick.FILE.sha256}
    heads = kept.recorded_heads()
    assert heads["trained"]
    assert trained_heads.errors(heads, Row("1")).sigma.shape == (ALL.depth, ALL.num_heads)
    folder = resources.files("experiments.comparison")
    for name in ("transient.json.gz", "transient-sample.json.gz", "heads.json.gz"):
        assert len(folder.joinpath(name).read_bytes()) <= 200_000
