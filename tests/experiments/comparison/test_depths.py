"""The comparison of stacks goes through its stages, goes on where it was, and its record is whole."""

import dataclasses
import json
import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from unittest.mock import ANY

import numpy as np
import pytest

from experiments import records
from experiments.comparison import depths, questions, training
from experiments.comparison.depths import Cell, Design, Run
from experiments.comparison.training import Course, Outcome, Recipe, Score
from experiments.datasets import files

TINY = Design(
    "tiny",
    rows=("vanilla", "FNet"),
    tasks=("mnist, sample", "text, sample"),
    depths=(1,),
    learning_rates=(1e-3, 1e-2),
    pilot=0,
    least=2,
    most=3,
    recipe=Recipe(num_updates=25, batch=4),
)


def course(accuracy=0.5, loss=1.0, failure="", validation=None, layers=1):
    validation = validation or Score(loss, accuracy, 0.0)
    outcome = Outcome(*[0.5] * 15, failure=failure)._replace(
        accuracy=accuracy, validation_accuracy=validation.accuracy, contraction_after=math.nan
    )
    known = {name: np.full((2, layers), math.nan) for name in ("steps", "contraction", "production")}
    return Course(
        Score(loss, accuracy, 0.0),
        validation,
        outcome,
        np.linspace(2, 1, 40),
        np.ones((3, 2)),
        known,
    )


@pytest.fixture
def calls(monkeypatch):
    """Runs that cost nothing: scores say which they were."""
    made = []

    def follow(module, task, *, learning_rate, seed, recipe, repeats=2):
        made.append((module.name, module.depth, task.name, learning_rate, seed, repeats))
        return course(accuracy=seed / 10, loss=seed / 5, validation=Score(learning_rate, learning_rate, 0.0))

    monkeypatch.setattr(training, "follow", follow)
    return made


@pytest.fixture
def sample_for_mnist(monkeypatch):
    """The sample under the name of the whole set, which decides what is asked of it."""
    monkeypatch.setitem(depths._TASKS, "mnist", depths._TASKS["mnist, sample"])
    monkeypatch.setitem(depths._FILES, "mnist", ())
    depths._task.cache_clear()
    yield
    depths._task.cache_clear()


def test_trials_come_first_and_the_rate_is_the_best_by_the_endpoint_in_validation(calls, tmp_path):
    record = depths.compare(TINY, folder=tmp_path)
    expected = []
    for task in ("mnist", "text"):
        expected += [(row, 1, task, rate, 0, 0) for row in TINY.rows for rate in TINY.learning_rates]
        # More is better in accuracy, less in a loss: the validation scores of a run are its rate.
        best = 1e-2 if task == "mnist" else 1e-3
        expected += [(row, 1, task, best, seed, 2 if seed == 1 else 0) for row in TINY.rows for seed in (1, 2)]
    assert calls == expected
    assert record["complete"]
    cell = record["cells"][0]
    assert (cell["row"], cell["task"], cell["depth"], cell["width"]) == ("vanilla", "mnist, sample", 1, 32)
    assert cell["runs"]["accuracy"] == [0.1, 0.2]
    assert cell["runs"]["test_loss"] == [0.2, 0.4]
    assert cell["trials"]["learning_rate"] == [1e-3, 1e-2]
    assert cell["runs"]["contraction_after"] == [None, None]
    assert cell["runs"]["layers"] == {}
    assert records.read(tmp_path / "depths.json.gz") == json.loads(json.dumps(record)) | {
        "sha256": records.read(tmp_path / "depths.json.gz")["sha256"]
    }


def test_a_rate_whose_trial_failed_is_chosen_only_if_all_failed():
    def trial(rate, failure="", score=0.5):
        arrays = {"outcome.failure": np.array(failure), "validation.accuracy": np.array(score)}
        return Run(Cell("vanilla", "mnist", 1), rate, 0, False), arrays

    assert depths._chosen([trial(1e-3), trial(1e-2, "diverged", 0.9)]) == 1e-3
    assert depths._chosen([trial(1e-2, "diverged"), trial(1e-3, "diverged")]) == 1e-3
    assert depths._chosen([trial(1e-2), trial(1e-3)]) == 1e-3
    assert depths._chosen([trial(1e-3), trial(1e-2, score=0.51)]) == 1e-2
    assert depths._chosen([trial(1e-3), trial(1e-2, score=math.nan)]) == 1e-3


def test_an_interrupted_comparison_runs_only_what_is_missing(calls, tmp_path):
    whole = depths.compare(TINY, folder=tmp_path)
    (tmp_path / "mnist, sample, others" / "runs" / "task-000003.npz").unlink()
    calls.clear()
    again = depths.compare(TINY, folder=tmp_path)
    assert calls == [("FNet", 1, "mnist", 1e-2, 2, 0)]
    assert again["cells"] == whole["cells"]


def test_a_record_is_there_before_all_is_done(calls, tmp_path, monkeypatch):
    monkeypatch.setattr(depths, "_PAUSE", 0.0)
    follow = training.follow

    def stop(*arguments, seed, **options):
        if seed == 2:
            raise RuntimeError("a machine went away")
        return follow(*arguments, seed=seed, **options)

    monkeypatch.setattr(training, "follow", stop)
    # What one task lacks does not keep the other from being run.
    with pytest.raises(
        ExceptionGroup, match=r"mnist, sample, others: 2 of 4 tasks failed.*; text, sample, others: 2 of 4"
    ):
        depths.compare(TINY, folder=tmp_path)
    record = records.read(tmp_path / "depths.json.gz")
    assert not record["complete"]
    assert [cell["runs"]["seed"] for cell in record["cells"]] == [[1]] * 4


def test_a_folder_with_another_design_is_refused(calls, tmp_path):
    depths.compare(TINY, folder=tmp_path)
    with pytest.raises(ValueError, match="this very sweep"):
        depths.compare(TINY._replace(recipe=Recipe(num_updates=50, batch=4)), folder=tmp_path)


def test_runs_travel_to_other_processes_and_give_the_same_record(calls):
    alone = depths.compare(TINY)["cells"]
    with ThreadPoolExecutor(2) as executor:
        assert depths.compare(TINY, executor=executor)["cells"] == alone
    work = pickle.loads(pickle.dumps(partial(depths._arrays, recipe=TINY.recipe)))
    arrays = work(Run(Cell("FNet", "text, sample", 2), 1e-2, 3, True))
    assert float(arrays["test.loss"]) == 3 / 5
    assert calls[-1] == ("FNet", 2, "text", 1e-2, 3, 2)


def test_the_pilot_sets_the_runs_of_primary_cells_alone(sample_for_mnist, monkeypatch):
    rng, seen = np.random.default_rng(0), []

    def follow(module, task, *, learning_rate, seed, recipe, repeats=2):
        seen.append((module.name, seed))
        return course(accuracy=0.9 + 0.003 * rng.normal())

    monkeypatch.setattr(training, "follow", follow)
    design = TINY._replace(rows=("vanilla", "FNet", "ReLU attention"), tasks=("mnist",), depths=(4,), pilot=4, most=30)
    record = depths.compare(design)
    number = record["runs_of_primary_cells"]["mnist"]
    cells = {cell["row"]: cell for cell in record["cells"]}
    scores = {
        (row, 4, seed): value
        for row in ("vanilla", "FNet")
        for seed, value in zip(cells[row]["pilot"]["seed"], cells[row]["pilot"]["accuracy"], strict=True)
    }
    assert cells["FNet"]["pilot"]["seed"] == [1001, 1002, 1003, 1004]
    assert number == questions.runs_needed(scores, "mnist", least=2, most=30) > 2
    assert cells["FNet"]["runs"]["seed"] == list(range(1, number + 1))
    assert cells["ReLU attention"]["runs"]["seed"] == [1, 2]
    assert "pilot" not in cells["ReLU attention"]


def test_primary_cells_come_first_question_by_question_and_dear_rows_last():
    groups = depths._groups(depths.ALL)
    kinds = [group.name for group in groups]
    assert kinds[:4] == ["mnist, primary", "mnist, others", "text, primary", "text, others"]
    assert kinds[4:] == ["mnist, dear", "text, dear", "recall apart, others", "recall apart, dear"]
    ordered = [cell for group in groups for cell in group.cells]
    assert len(ordered) == len(set(ordered))
    assert set(ordered) == set(depths.ALL.cells)
    primary = questions.primary_cells(depths.ALL.tasks, depths.ALL.depths)
    assert all((cell in primary) == group.primary for group in groups for cell in group.cells)
    first = [(cell.row, cell.depth) for cell in groups[0].cells]
    assert first[:4] == [("vanilla", 4)] + [(row, 4) for row in questions.QUESTIONS[0].rows]
    assert first[4:8] == [(row, 4) for row in questions.QUESTIONS[1].rows]
    assert {row for row, _ in first[8:]} == {"vanilla", *questions.QUESTIONS[2].rows}


def test_a_question_is_judged_once_all_its_runs_are_there_and_not_before(calls, sample_for_mnist):
    rows = ("vanilla", *questions.QUESTIONS[0].rows, *questions.QUESTIONS[1].rows)
    record = depths.compare(TINY._replace(rows=rows, tasks=("mnist",), depths=(4,), least=3))
    assert [found.question.name for found in questions.answers(record)] == ["essential", "any mixer"]
    mixer = next(cell for cell in record["cells"] if cell["row"] == "FNet")
    mixer["runs"] = {name: list(column)[:2] for name, column in mixer["runs"].items()}
    assert [found.question.name for found in questions.answers(record)] == ["essential"]
    assert questions.answers(record | {"runs_of_primary_cells": {}}) == ()


def test_what_an_earlier_record_has_is_taken_over_and_not_run_again(calls, tmp_path):
    only_images = TINY._replace(tasks=TINY.tasks[:1])
    part = depths.compare(only_images)
    # A record that was broken off in the middle: the other task is missing, and a run of the last stage.
    part["design"] = depths.compare(TINY)["design"]
    part["cells"][1]["runs"] = {
        name: {key: rows[:1] for key, rows in column.items()} if name == "layers" else column[:1]
        for name, column in part["cells"][1]["runs"].items()
    }
    records.write(tmp_path / "earlier.json.gz", part)
    calls.clear()
    found = depths.compare(TINY, folder=tmp_path)
    assert [call[2] for call in calls].count("mnist") == 1
    assert found["cells"] == depths.compare(TINY)["cells"]
    taken = sum(len(cell[stage]["seed"]) for cell in part["cells"] for stage in ("trials", "runs"))
    assert found["earlier"] == [
        {name: part[name] for name in depths._CIRCUMSTANCES} | {"num_runs": taken, "sha256": ANY}
    ]
    # The same command again runs nothing, and the record of two parts may be the earlier one of a third.
    calls.clear()
    assert depths.compare(TINY, folder=tmp_path)["cells"] == found["cells"]
    (tmp_path / "next").mkdir()
    records.write(tmp_path / "next" / "earlier.json.gz", found)
    assert len(depths.compare(TINY, folder=tmp_path / "next")["earlier"]) == 2
    assert calls == []


def test_an_earlier_record_of_something_else_is_refused(calls, tmp_path):
    part = depths.compare(TINY)
    calls.clear()
    records.write(tmp_path / "earlier.json.gz", part | {"data": {"data.txt": "0"}})
    with pytest.raises(ValueError, match=r"folder: expected earlier\.json\.gz to be a record of the same data"):
        depths.compare(TINY, folder=tmp_path)
    records.write(tmp_path / "earlier.json.gz", part)
    with pytest.raises(ValueError, match="of the design tiny, got another design"):
        depths.compare(TINY._replace(least=3), folder=tmp_path)
    assert calls == []


def test_a_run_that_is_read_back_gives_the_same_entry():
    record = depths.recorded()
    for entry in record["cells"][:3]:
        for stage in set(depths._STAGES) & set(entry):
            assert depths._entry(list(depths._read_back(entry, stage).items())) == entry[stage]


def test_missing_data_are_told_before_anything_is_run(calls, monkeypatch):
    monkeypatch.delenv(files.ENVIRONMENT, raising=False)
    depths._task.cache_clear()
    with pytest.raises(FileNotFoundError, match="train-images-idx3-ubyte"):
        depths.compare(depths.BRIEF)
    assert calls == []


def test_unknown_rows_and_tasks_are_refused(calls):
    with pytest.raises(ValueError, match=r"design: expected tasks out of mnist, .*, got imagenet"):
        depths.compare(TINY._replace(tasks=("imagenet",)))
    with pytest.raises(ValueError, match=r"name: expected one of vanilla, .*, got 'ResNet'"):
        depths.compare(TINY._replace(rows=("ResNet",)))
    assert calls == []


def test_one_run_is_that_of_its_cell_and_is_timed_where_it_is_asked_for(calls):
    course = depths.run_one(Run(Cell("FNet", "mnist, sample", 2), 1e-2, 3, True), TINY.recipe)
    assert course.test.accuracy == 0.3
    depths.run_one(Run(Cell("vanilla", "text, sample", 1), 1e-3, 4, False), TINY.recipe)
    assert calls == [("FNet", 2, "mnist", 1e-2, 3, 2), ("vanilla", 1, "text", 1e-3, 4, 0)]


def test_a_run_of_the_record_can_be_made_again(calls):
    record = depths.compare(TINY)
    calls.clear()
    found, then = depths.again(record, Cell("FNet", "text, sample", 1), seed=2)
    assert calls == [("FNet", 1, "text", 1e-3, 2, 0)]
    assert found.test.loss == then.loss == 0.4
    # The record keeps what a run said under other names and in another order.
    assert depths.find_run(record, Cell("FNet", "text, sample", 1), seed=2)[:2] == found.test[:2]
    with pytest.raises(ValueError, match="got none"):
        depths.find_run(record, Cell("FNet", "text, sample", 1), seed=9)
    with pytest.raises(ValueError, match="record: expected a run of FNet, text, sample, 4 from seed 1, got none"):
        depths.again(record, Cell("FNet", "text, sample", 4))


def test_long_curves_are_thinned_by_averaging():
    losses = np.arange(800.0)
    assert depths._thinned(losses).tolist() == [10 * k + 4.5 for k in range(80)]
    assert depths._thinned(losses[:40]).tolist() == losses[:40].tolist()
    assert depths._thinned(np.empty(0)).size == 0


def test_designs_of_the_book_have_rows_tasks_and_updates_that_exist():
    for design in (depths.ALL, depths.BRIEF, depths.SMOKE):
        assert set(design.rows) <= set(depths.modules.ROWS)
        assert set(design.tasks) <= set(depths._TASKS)
        assert design.recipe.num_updates % 25 == 0
    assert len(depths.ALL.cells) == 17 * 3 * 3
    assert dataclasses.is_dataclass(depths._task("mnist, sample"))


@pytest.mark.slow
def test_the_smoke_test_runs_and_two_of_its_runs_are_the_same_again(tmp_path):
    record = depths.compare(depths.SMOKE, folder=tmp_path)
    assert len(record["cells"]) == 6
    for cell in record["cells"]:
        runs = cell["runs"]
        # Nothing keeps free couplings in the domain of the model.
        lost = ["positive definite" in reason for reason in runs["failure"]]
        assert [bool(reason) for reason in runs["failure"]] == lost
        assert not any(lost) or cell["row"] == "adaptive TAP, Gaussian"
        assert [value is None for value in runs["test_loss"]] == lost
    for task in ("mnist, sample", "text, sample"):
        found, then = depths.again(record, Cell("vanilla", task, 2))
        # Single precision, and rounding that grows over 25 updates.
        assert found.test.loss == pytest.approx(then.loss, rel=1e-3)


@pytest.mark.slow
def test_the_recorded_sample_can_be_made_again():
    record = depths.recorded(sample=True)
    apart = {"vanilla": [], "local pooling": []}
    for task in record["design"]["tasks"]:
        found, _ = depths.again(record, Cell("vanilla", task, 2))
        for row, gaps in apart.items():
            gaps.append(abs(found.test.loss / depths.find_run(record, Cell(row, task, 2)).loss - 1))
    # Single precision, and rounding that grows over 25 updates.
    assert max(apart["vanilla"]) < 1e-3
    assert max(apart["local pooling"]) > 1e-2
