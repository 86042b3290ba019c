"""Sweeps: order, what is kept on disk, and what an interruption costs."""

import json
import threading
import time

import numpy as np
import pytest

from spinbook import sweep


def square(x):
    return {"square": np.square(x), "pair": np.array([x, -x])}


class Counting:
    """Counts the tasks that were begun, and fails at some."""

    def __init__(self, failing=()):
        self.begun = []
        self.failing = failing

    def __call__(self, x):
        self.begun.append(x)
        if x in self.failing:
            raise KeyboardInterrupt
        return square(x)


def test_results_come_in_the_order_of_the_tasks():
    def slow_first(x):
        time.sleep(0.05 if x == 0 else 0)
        return {"x": np.array(x)}

    assert [int(r["x"]) for r in sweep.run(slow_first, range(6), num_threads=3)] == list(range(6))
    assert sweep.run(square, []) == []


def test_results_are_handed_out_as_they_are_ready():
    gate = threading.Event()

    def wait_for_gate(x):
        if x == 0:
            assert gate.wait(10)
        return {"x": np.array(x)}

    results = sweep.iterate(wait_for_gate, [0, 1], num_threads=2)
    assert next(results)[0] == 1
    gate.set()
    assert next(results)[0] == 0


def test_an_interrupted_sweep_loses_nothing_and_ends_as_an_uninterrupted_one(tmp_path):
    tasks = [0.5 * k for k in range(10)]
    with pytest.raises(KeyboardInterrupt):
        sweep.run(Counting(failing=[tasks[6]]), tasks, folder=tmp_path, num_threads=1)
    again = Counting()
    resumed = sweep.run(again, tasks, folder=tmp_path, num_threads=1)
    # The thread may have begun another task before it was told to stop.
    assert tasks[6] in again.begun
    assert set(again.begun) <= set(tasks[6:])
    for ours, expected in zip(resumed, sweep.run(square, tasks), strict=True):
        assert ours.keys() == expected.keys()
        assert all(np.array_equal(ours[name], expected[name]) for name in ours)
    idle = Counting()
    sweep.run(idle, tasks, folder=tmp_path)
    assert idle.begun == []


def test_leaving_the_loop_keeps_what_is_finished(tmp_path):
    for _ in sweep.iterate(square, [1.0, 2.0, 3.0], folder=tmp_path, num_threads=1):
        break
    assert (tmp_path / "task-000000.npz").exists()
    rest = Counting()
    sweep.run(rest, [1.0, 2.0, 3.0], folder=tmp_path)
    assert 1.0 not in rest.begun


def test_a_damaged_file_is_computed_anew(tmp_path):
    first = sweep.run(square, [1.0, 2.0], folder=tmp_path)
    path = tmp_path / "task-000001.npz"
    for damaged in (path.read_bytes()[:50], b"", b"PK\x03\x04 nonsense"):
        path.write_bytes(damaged)
        counting = Counting()
        again = sweep.run(counting, [1.0, 2.0], folder=tmp_path)
        assert counting.begun == [2.0]
        assert np.array_equal(again[1]["pair"], first[1]["pair"])


class Broken:
    def __array__(self, *args, **kwargs):
        raise OSError("no space left")


def test_a_file_that_could_not_be_finished_leaves_no_trace(tmp_path):
    with pytest.raises(OSError, match="no space left"):
        sweep.run(lambda x: {"fine": np.ones(1000), "x": Broken()}, [0], folder=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["sweep.json"]


def test_the_folder_of_another_sweep_is_refused(tmp_path):
    sweep.run(square, [1.0, 2.0], folder=tmp_path, identity="one")
    for tasks, identity in (([1.0, 2.0], "two"), ([1.0], "one")):
        with pytest.raises(ValueError, match="folder: expected an empty one or one with this very sweep"):
            sweep.run(square, tasks, folder=tmp_path, identity=identity)
    assert json.loads((tmp_path / "sweep.json").read_text())["identity"] == "one"


def test_an_exception_in_a_task_is_not_swallowed():
    with pytest.raises(ZeroDivisionError):
        sweep.run(lambda x: {"x": np.array(1 // x)}, [1, 0, 2], num_threads=2)


def test_the_bar_counts_what_was_there_already(tmp_path, capsys):
    sweep.run(square, [1.0, 2.0], folder=tmp_path)
    sweep.run(square, [1.0, 2.0], folder=tmp_path, progress=True)
    assert "2/2" in capsys.readouterr().err
    sweep.run(square, [1.0], progress=False)
    assert capsys.readouterr().err == ""


def test_a_number_of_threads_that_is_none_is_refused():
    with pytest.raises(ValueError, match="num_threads: expected an integer >= 1, got 0"):
        sweep.run(square, [1.0], num_threads=0)


def test_fingerprints_tell_apart_what_differs_and_nothing_else():
    values = [
        1, 1.0, np.float32(1.0), True, "1", None, [1], [[1]], [1, 1], {"a": 1}, {"b": 1}, ["a", 1],
        np.ones(2), np.ones((1, 2)), np.ones((2, 1)), np.ones(2, np.float32), "", [], ["ab", "c"], ["a", "bc"],
    ]  # fmt: skip
    prints = [sweep.fingerprint(value) for value in values]
    # {"a": 1} is the list of its items, by definition.
    assert sum(prints.count(p) > 1 for p in prints) == 2
    assert prints[values.index({"a": 1})] == sweep.fingerprint(["a", 1])
    assert sweep.fingerprint({"a": 1, "b": 2}) == sweep.fingerprint({"b": 2, "a": 1})
    assert sweep.fingerprint(1, 2) != sweep.fingerprint(12)
    with pytest.raises(ValueError, match="values: expected arrays, numbers and strings, got object"):
        sweep.fingerprint(object())
