"""MNIST once more: what is learned from, what is asked, and a record that is gone on with."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from experiments import records
from experiments.__main__ import main
from experiments.datasets import mnist as files
from experiments.depth import mnist, questions
from experiments.depth.mnist import ALL, ASKED, GATE, MARGIN, SMOKE, Design

PLAN = (Path(__file__).resolve().parents[3] / "book" / "plan-of-mnist.md").read_text(encoding="utf-8")


def test_a_patch_has_unit_length_on_average():
    """What a unit embedding makes of it has unit variance then."""
    features = mnist._task(True).train.features.astype(float)
    assert (features**2).sum(axis=-1).mean() == pytest.approx(1, abs=1e-5)


def test_a_record_is_gone_on_with(tmp_path, monkeypatch, capsys):
    plan = tmp_path / "plan.md"
    plan.write_text("What is asked.")
    monkeypatch.setattr(mnist, "SMOKE", SMOKE._replace(rows=(mnist.LINEAR,)))
    trained, train = [], mnist.train

    def stop(cell, design):
        if len(trained) == 7:
            raise KeyboardInterrupt
        trained.append(cell)
        return train(cell, design)

    command = ["mnist", "--quick", "--plan", str(plan), "--out", str(tmp_path)]
    monkeypatch.setattr(mnist, "train", stop)
    assert main(command) == 130
    before = records.read(tmp_path / "mnist.json.gz")
    assert len(before["runs"]) == 7
    assert not before["complete"]
    monkeypatch.setattr(mnist, "train", lambda *what: (trained.append(what[0]), train(*what))[1])
    assert main(command) == 0
    whole = records.read(tmp_path / "mnist.json.gz")
    assert whole["complete"]
    assert len(trained) == len(set(trained)) == len(whole["runs"])
    assert {run["plan"] for run in whole["runs"]} == {whole["plan"]}
    assert all(("test" in run) == (run["stage"] == "run") for run in whole["runs"])
    # Five images of a hundred and fifty are about what a run made again elsewhere may differ by.
    run = next(run for run in whole["runs"] if run["stage"] == "run")
    cell = next(cell for cell in trained if (cell.stage, cell.seed) == ("run", run["seed"]))
    assert train(cell, SMOKE)["test"] == pytest.approx(run["test"], abs=0.05)
    plan.write_text("Something else.")
    assert main(command) == 2
    assert "expected a record of this plan and design" in capsys.readouterr().err


def test_the_record_is_of_the_plan_and_has_the_best_rates_inside():
    record = mnist.recorded()
    fixed = PLAN.split("\n## Changes\n")[0]
    assert record["plan"] == hashlib.sha256(fixed.encode()).hexdigest()
    assert {run["plan"] for run in record["runs"]} == {record["plan"]}
    assert record["data"] == {file.name: file.sha256 for file in files.FILES}
    assert Design(**{k: tuple(v) if isinstance(v, list) else v for k, v in record["design"].items()}) == ALL
    for row in {run["row"] for run in record["runs"] if run["stage"] == "run"}:
        rates = {run["rate"] for run in record["runs"] if (run["stage"], run["row"]) == ("trial", row)}
        used = {run["rate"] for run in record["runs"] if (run["stage"], run["row"]) == ("run", row)}
        assert len(used) == 1
        assert min(rates) < used.pop() < max(rates)


def outcome(wrong):
    """A record of made-up runs whose shares of wrong answers are these with a little noise of their own."""
    noise = np.random.default_rng(0).normal(scale=0.0003, size=(len(wrong), 5))
    runs = [
        {"stage": "run", "row": row, "seed": seed, "test": share + noise[k, seed - 1], "skipped": 0, "unsettled": 0}
        for k, (row, share) in enumerate(wrong.items())
        for seed in ALL.seeds
    ]
    return {"runs": runs, "design": {"seeds": list(ALL.seeds)}, "blind": 0.9}


WRONG = dict(zip(ALL.rows, (0.025, 0.075, 0.029, 0.035, 0.045, 0.026, 0.030, 0.080), strict=True))


def test_rows_are_judged_when_attention_pays():
    record = outcome(WRONG)
    found = {(f.row, f.question): f for f in mnist.answers(record)}
    assert found[mnist.LINEAR, "ahead"].decision == "yes"
    assert [found[contrast.row, "behind"].decision for contrast in ASKED] == [
        *("no", "yes", "yes", "no", "undecided", "yes")
    ]
    shares = {row: np.array([r["test"] for r in record["runs"] if r["row"] == row]) for row in WRONG}
    for contrast in ASKED:
        d = shares[contrast.row] - shares["vanilla"]
        assert found[contrast.row, "behind"].p == pytest.approx(stats.ttest_1samp(d, MARGIN).pvalue)
    shut = mnist.answers(outcome(WRONG | {mnist.LINEAR: 0.028}))
    assert [f.question for f in shut] == ["ahead"]
    # The gate is judged without the other rows, and no row before all of its runs are there.
    part = [run for run in record["runs"] if run["row"] != "local pooling"]
    assert [f.question for f in mnist.answers(record | {"runs": part})] == ["ahead"]
    assert mnist.answers(record | {"runs": record["runs"][1:]}) == ()


def test_wrong_answers_are_those_of_the_runs_that_count_in_the_order_of_the_seeds():
    record = outcome(WRONG)
    expected = [run["test"] for run in record["runs"] if run["row"] == "no residual"]
    trial = {"stage": "trial", "row": "no residual", "seed": 3, "validation": 0.5}
    turned = record | {"runs": [*record["runs"][::-1], trial]}
    assert mnist.wrong_answers(turned, "no residual").tolist() == expected
    failed = [run | {"test": None} if run["seed"] == 4 else run for run in record["runs"]]
    assert np.isnan(mnist.wrong_answers(record | {"runs": failed}, "vanilla")).tolist() == [False] * 3 + [True, False]
    with pytest.raises(ValueError, match=r"record: expected runs of vanilla with .* got none with \[1\]"):
        mnist.wrong_answers(record | {"runs": record["runs"][1:]}, "vanilla")


def test_the_plan_says_what_is_run():
    words = " ".join(PLAN.split())
    for row in ALL.rows:
        assert f"\n| {row} | " in PLAN
    assert f"{ALL.updates:,} updates of {ALL.batch} images, {ALL.trial_updates:,} in a trial" in words
    assert "from the seeds 101 and 102, with each of 0.001, 0.003 and 0.01" in words
    assert ALL.trials == (101, 102)
    assert f"Seeds.** {', '.join(map(str, ALL.seeds[:-1]))} and {ALL.seeds[-1]} for every row" in words
    assert "Stacks of two blocks" in words
    assert ALL.depth == 2
    assert {contrast.margin for contrast in GATE + ASKED} == {MARGIN} == {0.005}
    assert f"level {questions.LEVEL:g} for the six rows together" in words
    assert len(ASKED) == 6
