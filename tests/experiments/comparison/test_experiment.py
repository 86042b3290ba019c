"""The comparison goes on where it was, writes what it found, and the record is complete and small."""

import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

from experiments import records
from experiments.comparison import experiment, training
from experiments.comparison.experiment import FULL, Plan, choose, compare, recorded, repeat
from experiments.comparison.modules import MODULES
from experiments.comparison.training import Outcome, Recipe

FINE = Outcome(*[0.5] * 15, failure="")
PLAN = Plan(
    learning_rates=(1e-3, 1e-2),
    seeds=(1, 2),
    recipe=Recipe(num_updates=2, batch=4),
    modules=("vanilla",),
    tasks=("recall",),
)
TWO = PLAN._replace(modules=("vanilla", "pooling mixer"))


@pytest.fixture
def calls(monkeypatch):
    """Runs that cost nothing: the accuracy says which they were."""
    made = []

    def train(module, task, *, learning_rate, seed, recipe, repeats=2):
        made.append((module.name, task.name, learning_rate, seed))
        return FINE._replace(accuracy=seed / 10, validation_accuracy=learning_rate, contraction_after=math.nan)

    monkeypatch.setattr(training, "train", train)
    return made


def test_the_learning_rate_is_chosen_by_validation_and_never_by_the_test():
    assert choose([FINE._replace(accuracy=1.0), FINE._replace(validation_accuracy=0.6)]) == 1


def test_a_failed_trial_is_chosen_only_if_all_failed():
    failed = FINE._replace(validation_accuracy=1.0, failure="diverged")
    assert choose([failed, FINE]) == 1
    assert choose([failed._replace(validation_accuracy=math.nan), failed]) == 1


def test_a_cell_is_trials_from_one_seed_and_runs_from_others_with_the_best_rate(calls, tmp_path):
    done = compare(PLAN, folder=tmp_path)
    assert calls == [("vanilla", "recall", rate, seed) for rate, seed in ((1e-3, 0), (1e-2, 0), (1e-2, 1), (1e-2, 2))]
    (row,) = done["rows"]
    assert row["learning_rate"] == 1e-2
    assert [run["accuracy"] for run in row["runs"]] == [0.1, 0.2]
    assert row["runs"][0]["contraction_after"] is None
    assert records.read(tmp_path / "comparison.json.gz")["rows"] == done["rows"]


def test_an_interrupted_comparison_computes_only_what_is_missing(calls, tmp_path):
    whole = compare(TWO, folder=tmp_path)
    (tmp_path / "cells" / "task-000001.npz").unlink()
    calls.clear()
    again = compare(TWO, folder=tmp_path)
    assert {name for name, *_ in calls} == {"pooling mixer"}
    assert again["rows"] == whole["rows"]


def test_cells_run_on_any_executor_and_travel_to_other_processes(calls, tmp_path):
    with ThreadPoolExecutor(2) as executor:
        rows = compare(TWO, executor=executor)["rows"]
    assert rows == compare(TWO)["rows"]
    work = pickle.loads(pickle.dumps(partial(experiment._cell, plan=PLAN)))
    assert np.array_equal(work(("vanilla", "recall"))["run_accuracy"], [0.1, 0.2])


def test_a_folder_with_another_comparison_is_refused(calls, tmp_path):
    compare(PLAN, folder=tmp_path)
    with pytest.raises(ValueError, match="this very sweep"):
        compare(PLAN._replace(seeds=(1,)), folder=tmp_path)


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match=r"modules: expected one of vanilla, .*, got 'unheard of'"):
        PLAN._replace(modules=("unheard of",))
    with pytest.raises(ValueError, match="tasks: expected one of digits, recall, got 'chess'"):
        PLAN._replace(tasks=("chess",))


def test_the_recipe_says_how_and_with_what_it_was_made(calls):
    recipe = compare(PLAN)["recipe"]
    assert recipe["num_updates"] == 2
    assert set(recipe["versions"]) == {"python", *records._LIBRARIES}
    assert recipe["seeds"] == [1, 2]


def test_the_record_has_every_module_on_every_task_from_every_seed():
    record = recorded()
    cells = {(row["module"], row["task"]) for row in record["rows"]}
    assert cells == {(module.name, task) for module in MODULES for task in ("digits", "recall")}
    for row in record["rows"]:
        assert [run["seed"] for run in row["runs"]] == list(FULL.seeds)
        assert [trial["learning_rate"] for trial in row["trials"]] == list(FULL.learning_rates)
        assert row["learning_rate"] in FULL.learning_rates
        for run in (*row["runs"], *row["trials"]):
            assert run["failure"] or 0 <= run["accuracy"] <= 1
    assert record["recipe"]["num_updates"] == FULL.recipe.num_updates
    # The name that the module had when the record was made.
    assert record["recipe"]["command"] == "python -m spinbook.comparison --full"


def test_the_recorded_rates_are_those_that_the_recorded_trials_choose():
    for row in recorded()["rows"]:
        trials = [
            Outcome(*(math.nan if trial[f] is None else trial[f] for f in Outcome._fields)) for trial in row["trials"]
        ]
        assert FULL.learning_rates[choose(trials)] == row["learning_rate"], (row["module"], row["task"])


def test_a_run_of_the_record_is_repeated_with_its_own_recipe(calls):
    record = compare(PLAN)
    calls.clear()
    again, run = repeat("vanilla", "recall", seed=2, record=record)
    assert calls == [("vanilla", "recall", 1e-2, 2)]
    assert again.accuracy == run["accuracy"]
    with pytest.raises(ValueError, match="record: expected a run of vanilla on recall from seed 9"):
        repeat("vanilla", "recall", seed=9, record=record)


@pytest.mark.slow
def test_a_run_of_the_record_made_again_is_within_its_spread():
    record = recorded()
    again, _ = repeat("vanilla", "digits", seed=1, record=record)
    row = next(row for row in record["rows"] if (row["module"], row["task"]) == ("vanilla", "digits"))
    accuracies = np.array([run["accuracy"] for run in row["runs"]])
    # Rounding differs between machines and grows: another machine is like another seed.
    assert abs(again.accuracy - accuracies.mean()) < 4 * accuracies.std(ddof=1) * math.sqrt(1 + 1 / accuracies.size)


def test_the_longer_record_differs_from_the_full_one_in_the_updates_only():
    full, longer = recorded(), recorded(longer=True)
    assert [row["module"] for row in longer["rows"]] == list(experiment.LONGER.modules)
    assert longer["recipe"]["num_updates"] == 5 * full["recipe"]["num_updates"]
    for name in ("batch", "seeds", "learning_rates", "vanilla_width", "versions", "machine"):
        assert longer["recipe"][name] == full["recipe"][name]
    assert all(len(row["runs"]) == len(FULL.seeds) for row in longer["rows"])
