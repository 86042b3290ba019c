"""Sweeps: order, what is kept on disk, what an interruption or a failure costs, and the same bits from any executor."""

import gc
import shutil
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_all_start_methods, get_context

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from spinbook import sweep
from spinbook.precision import enable_x64
from tests.sweep import tasks as work
from tests.sweep.tasks import Task, assert_same_bits


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


def test_tasks_begin_as_the_results_before_them_are_read():
    tasks, most = Counting(), 4 * 2
    for read, _ in enumerate(sweep.iterate(tasks, range(40), num_threads=2)):
        time.sleep(0.01)
        assert len(tasks.begun) <= read + 1 + most
    assert len(tasks.begun) == 40


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
        sweep.run(Counting(failing=[tasks[6]]), tasks, folder=tmp_path, identity="squares", num_threads=1)
    again = Counting()
    resumed = sweep.run(again, tasks, folder=tmp_path, identity="squares", num_threads=1)
    # The thread may have begun another task before it was told to stop.
    assert tasks[6] in again.begun
    assert set(again.begun) <= set(tasks[6:])
    for ours, expected in zip(resumed, sweep.run(square, tasks), strict=True):
        assert ours.keys() == expected.keys()
        assert all(np.array_equal(ours[name], expected[name]) for name in ours)
    idle = Counting()
    sweep.run(idle, tasks, folder=tmp_path, identity="squares")
    assert idle.begun == []


def test_leaving_the_loop_keeps_what_is_finished(tmp_path):
    for _ in sweep.iterate(square, [1.0, 2.0, 3.0], folder=tmp_path, identity="squares", num_threads=1):
        break
    assert (tmp_path / "task-000000.npz").exists()
    rest = Counting()
    sweep.run(rest, [1.0, 2.0, 3.0], folder=tmp_path, identity="squares")
    assert 1.0 not in rest.begun


def test_a_damaged_file_is_computed_anew(tmp_path):
    first = sweep.run(square, [1.0, 2.0], folder=tmp_path, identity="squares")
    path = tmp_path / "task-000001.npz"
    for damaged in (path.read_bytes()[:50], b"", b"PK\x03\x04 nonsense"):
        path.write_bytes(damaged)
        counting = Counting()
        again = sweep.run(counting, [1.0, 2.0], folder=tmp_path, identity="squares")
        assert counting.begun == [2.0]
        assert np.array_equal(again[1]["pair"], first[1]["pair"])


class Broken:
    def __array__(self, *args, **kwargs):
        raise OSError("no space left")


def test_a_file_that_could_not_be_finished_leaves_no_trace(tmp_path):
    with pytest.raises(sweep.FailedTasks, match=r"result 'x': expected an array, got Broken .no space left"):
        sweep.run(lambda x: {"fine": np.ones(1000), "x": Broken()}, [0], folder=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["sweep.json"]


def test_the_bar_counts_what_was_there_already(tmp_path, capsys):
    sweep.run(square, [1.0, 2.0], folder=tmp_path)
    sweep.run(square, [1.0, 2.0], folder=tmp_path, progress=True)
    assert "2/2" in capsys.readouterr().err
    sweep.run(square, [1.0], progress=False)
    assert capsys.readouterr().err == ""


def test_failures_are_told_at_the_end_and_stop_nothing(tmp_path):
    tasks = [Task(k, fate="raise" if k in (1, 4) else "") for k in range(6)]
    with pytest.raises(sweep.FailedTasks) as caught:
        sweep.run(work.draw, tasks, folder=tmp_path, num_threads=2)
    error = caught.value
    assert str(error).startswith(
        "2 of 6 tasks failed, the others are done; task 1: ZeroDivisionError: seed 1; task 4: ZeroDivisionError: seed 4"
    )
    assert list(error.failures) == [1, 4]
    assert sorted(error.results) == [0, 2, 3, 5]
    assert error.subgroup(ZeroDivisionError) is not None
    assert error.subgroup(ValueError) is None
    assert "task 1: Task(seed=1" in error.exceptions[0].__notes__[-1]
    # The others are there, and only what failed is tried again.
    finished = sweep.run(work.draw, [t._replace(fate="") for t in tasks])
    again = dict(error.results)
    assert all(np.array_equal(again[k]["numpy"], finished[k]["numpy"]) for k in again)
    assert sorted(path.name for path in tmp_path.glob("task-*")) == [f"task-{k:06d}.npz" for k in (0, 2, 3, 5)]


def test_many_failures_for_one_reason_are_told_in_one_line():
    def fail(x):
        raise ValueError("the same")

    with pytest.raises(sweep.FailedTasks) as caught:
        sweep.run(fail, range(30))
    assert "tasks 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 20 more: ValueError: the same" in str(caught.value)


def test_a_task_that_leaves_the_program_has_failed():
    with pytest.raises(sweep.FailedTasks, match="task 0: RuntimeError: SystemExit: 3"):
        sweep.run(work.draw, [Task(0, fate="exit"), Task(1)])


def test_a_task_that_hangs_fails_and_stops_no_other():
    gate = threading.Event()

    def hang_at_zero(x):
        if x == 0:
            gate.wait(60)
        return {"x": x}

    begin = time.monotonic()
    with pytest.raises(sweep.FailedTasks, match=r"1 of 3 .*task 0: TimeoutError: took longer than 0.2 s") as caught:
        sweep.run(hang_at_zero, [0, 1, 2], num_threads=1, time_limit=0.2)
    gate.set()
    assert time.monotonic() - begin < 30
    assert sorted(caught.value.results) == [1, 2]


def test_a_time_limit_changes_nothing_for_tasks_that_keep_it():
    assert [int(r["square"]) for r in sweep.run(square, [1, 2, 3], time_limit=100.0)] == [1, 4, 9]
    with pytest.raises(KeyboardInterrupt):
        sweep.run(Counting(failing=[1]), [1], time_limit=100.0)


RESULTS = {
    "a python float": 1.5,
    "a python int": 3,
    "a flag": True,
    "text": "word",
    "a list": [[1.0, 2.0], [3.0, 4.0]],
    "jax": jnp.arange(6.0).reshape(2, 3),
    "torch": torch.arange(4),
    "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "a view": np.arange(20)[::3],
    "big endian": np.arange(3, dtype=">i4"),
    "empty": np.zeros((0, 3), np.float32),
    "complex": 1j,
    "a record": np.zeros(2, [("x", float), ("n", "i4", 3)]),
    "time": np.datetime64("2024-01-01"),
}


def test_results_are_the_same_whether_they_were_computed_or_read_again(tmp_path):
    alone = sweep.run(lambda x: RESULTS, [0])
    live = sweep.run(lambda x: RESULTS, [0], folder=tmp_path, identity="types")
    again = sweep.run(lambda x: 1 / 0, [0], folder=tmp_path, identity="types")
    for results in (alone, live, again):
        assert list(results[0]) == list(RESULTS)
        for name, array in results[0].items():
            expected = np.asarray(RESULTS[name])
            assert type(array) is np.ndarray
            assert (array.dtype, array.shape) == (expected.dtype, expected.shape), name
            assert np.array_equal(array, expected), name
            assert array.flags.c_contiguous
            assert array.flags.writeable


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ({"x": np.array([1, None])}, "result 'x': expected numbers, .* of NumPy, got ndarray of dtype object"),
        ({"x": {"y": 1}}, "result 'x': expected numbers, .* got dict of dtype object"),
        ({"x": 2**80}, "result 'x': expected numbers, .* got int of dtype object"),
        ({"x": jnp.ones(2, jnp.bfloat16)}, "result 'x': expected numbers, .* of dtype bfloat16"),
        ({"x": np.ma.masked_less([1.0, 2.0], 1.5)}, "result 'x': expected an array without a mask"),
        ({"x": torch.ones(2, requires_grad=True)}, "result 'x': expected an array, got Tensor .*requires grad"),
        ({"x": [[1], [1, 2]]}, "result 'x': expected an array, got list .*inhomogeneous"),
        ({1: 2.0}, "result: expected names that are text .*, got 1"),
        ({"nul\0": 2.0}, "result: expected names that are text of at most 1000 characters without NUL"),
        ({"\ud800": 2.0}, "result: expected names that are text"),
        ({"x" * 2000: 2.0}, "result: expected names that are text"),
        ([1.0], "result: expected arrays by name, got list"),
        (None, "result: expected arrays by name, got NoneType"),
    ],
)
def test_what_no_file_can_hold_is_refused_whether_it_is_kept_or_not(result, message, tmp_path):
    for folder in (None, tmp_path):
        with pytest.raises(sweep.FailedTasks, match=message):
            sweep.run(lambda x: result, [0], folder=folder, identity="refused")
    assert list(tmp_path.glob("task-*")) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"function": 3}, "function: expected a function of one task, got int"),
        ({"num_threads": 0}, "num_threads: expected an integer >= 1, got 0"),
        ({"executor": 3}, "executor: expected one of concurrent.futures, got int"),
        ({"executor": ThreadPoolExecutor(1), "num_threads": 2}, "num_threads: expected none beside an executor, got 2"),
        ({"time_limit": 0}, "time_limit: expected a number of seconds > 0, got 0"),
        ({"time_limit": "1"}, "time_limit: expected a number of seconds > 0, got '1'"),
        ({"time_limit": float("nan")}, "time_limit: expected a number of seconds > 0, got nan"),
    ],
)
def test_arguments_are_refused_by_name_before_anything_begins(options, message):
    with pytest.raises(ValueError, match=message):
        sweep.iterate(**({"function": square, "tasks": [1.0]} | options))


class Backwards(Executor):
    """Computes nothing before all is submitted, and then the last first."""

    def __init__(self, number):
        self._number = number
        self._waiting = []

    def submit(self, function, /, *args, **kwargs):
        future = Future()
        self._waiting.append((future, function, args, kwargs))
        if len(self._waiting) == self._number:
            for future_, function_, args_, kwargs_ in reversed(self._waiting):
                future_.set_result(function_(*args_, **kwargs_))
        return future


TASKS = [Task(seed) for seed in (5, 3, 8, 1, 9, 2)]


@pytest.fixture(scope="module")
def expected():
    return sweep.run(work.draw, TASKS, num_threads=1)


def test_threads_and_their_order_change_no_bit(expected):
    assert_same_bits(sweep.run(work.draw, TASKS, num_threads=2), expected)
    assert_same_bits(sweep.run(work.draw, TASKS, executor=Backwards(len(TASKS))), expected)
    with ThreadPoolExecutor(2) as pool:
        assert_same_bits(sweep.run(work.draw, TASKS, executor=pool), expected)
        # The executor is left as it was.
        assert pool.submit(int, "3").result() == 3


def test_the_precision_of_the_caller_holds_in_every_thread():
    with enable_x64(False):
        single = sweep.run(work.draw, TASKS[:1], num_threads=1)[0]["jax"]
    assert single.dtype == np.float32
    assert sweep.run(work.draw, TASKS[:1], num_threads=1)[0]["jax"].dtype == np.float64


@pytest.mark.skipif("fork" not in get_all_start_methods(), reason="this system does not fork")
def test_a_pool_that_forks_is_refused_before_it_waits_for_the_threads_of_jax():
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        for call in (sweep.run, sweep.iterate):
            with pytest.raises(ValueError, match="executor: expected processes that are spawned"):
                call(square, [1.0], executor=pool)
        assert not pool._processes


@pytest.mark.slow
def test_processes_change_no_bit(expected, workers_alike, tmp_path):
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        assert_same_bits(sweep.run(work.draw, TASKS, executor=pool, folder=tmp_path), expected)
        # Called again in the other order: the results are those of other numbers, and equal.
        assert_same_bits(sweep.run(work.draw, TASKS[::-1], executor=pool), expected[::-1])
    assert_same_bits(sweep.run(work.draw, TASKS, folder=tmp_path), expected)


@pytest.mark.slow
def test_a_cluster_of_dask_changes_no_bit(expected, workers_alike, tmp_path):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        executor = client.get_executor()
        assert_same_bits(sweep.run(work.draw, TASKS, executor=executor, folder=tmp_path), expected)
        with pytest.raises(
            sweep.FailedTasks, match=r"2 of 8 .*task 6: ZeroDivisionError: seed 6; task 7: TimeoutError"
        ):
            sweep.run(work.draw, [*TASKS, Task(6, fate="raise"), Task(7, fate="hang")], executor=executor, time_limit=3)
    assert_same_bits(sweep.run(work.draw, TASKS, folder=tmp_path), expected)


class Breaking(Executor):
    """Two futures come back, then the pool is broken: one future with an exception, no more submissions."""

    def __init__(self):
        self._number = 0

    def submit(self, function, /, *args, **kwargs):
        self._number += 1
        if self._number > 3:
            raise RuntimeError("cannot schedule new futures after shutdown")
        future = Future()
        if self._number == 3:
            future.set_exception(RuntimeError("a process was ended"))
        else:
            future.set_result(function(*args, **kwargs))
        return future


def test_an_executor_that_breaks_loses_only_what_it_had(tmp_path):
    with pytest.raises(sweep.FailedTasks, match=r"3 of 5 tasks failed.*task 2: RuntimeError: a process was") as caught:
        sweep.run(square, [1, 2, 3, 4, 5], executor=Breaking(), folder=tmp_path)
    assert sorted(caught.value.results) == [0, 1]
    assert [int(r["square"]) for r in sweep.run(square, [1, 2, 3, 4, 5], folder=tmp_path)] == [1, 4, 9, 16, 25]


class Forgetful(Executor):
    """Computes, and loses the way back."""

    def submit(self, function, /, *args, **kwargs):
        function(*args, **kwargs)
        future = Future()
        future.set_exception(ConnectionError("lost"))
        return future


def test_what_a_worker_has_kept_counts_even_if_it_never_came_back(tmp_path):
    assert [int(r["square"]) for r in sweep.run(square, [1, 2], executor=Forgetful(), folder=tmp_path)] == [1, 4]
    with pytest.raises(sweep.FailedTasks, match="tasks 0, 1: ConnectionError: lost"):
        sweep.run(square, [1, 2], executor=Forgetful())


class Elsewhere(Executor):
    """A machine that sees another folder under the same path."""

    def __init__(self, folder):
        self._folder = folder

    def submit(self, function, /, *args, **kwargs):
        away = self._folder.with_name("away")
        self._folder.rename(away)
        self._folder.mkdir()
        future = Future()
        future.set_result(function(*args, **kwargs))
        shutil.rmtree(self._folder)
        away.rename(self._folder)
        return future


def test_results_of_a_worker_that_does_not_see_the_folder_are_kept_when_they_arrive(tmp_path):
    folder = tmp_path / "here"
    sweep.run(square, [1, 2], executor=Elsewhere(folder), folder=folder)
    assert sorted(path.name for path in tmp_path.rglob("*.npz")) == ["task-000000.npz", "task-000001.npz"]
    assert [int(r["square"]) for r in sweep.run(square, [1, 2], executor=Breaking(), folder=folder)] == [1, 4]


class Closed(Executor):
    """A cluster whose client was closed: nothing ever comes."""

    class _client:
        status = "closed"

    def submit(self, function, /, *args, **kwargs):
        return Future()


def test_a_cluster_that_is_gone_is_not_waited_for():
    with pytest.raises(sweep.FailedTasks, match=r"tasks 0, 1: .*the executor gave it up"):
        sweep.run(square, [1, 2], executor=Closed())


def test_a_disk_that_is_full_costs_no_result(tmp_path, monkeypatch):
    def full(self, k, arrays):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("spinbook.sweep.storage.Store.write", full)
    with pytest.raises(sweep.FailedTasks, match=r"tasks 0, 1: OSError: .*No space left on device") as caught:
        sweep.run(square, [1, 2], folder=tmp_path)
    assert sorted(caught.value.results) == [0, 1]


def test_an_exception_that_cannot_travel_is_told_in_words():
    import pickle

    from spinbook.sweep.engine import _Failure

    with pytest.raises(TypeError):
        pickle.loads(pickle.dumps(work.Unreadable(1, 2)))
    arrived = pickle.loads(pickle.dumps(_Failure(work.Unreadable(1, 2)))).error
    assert isinstance(arrived, RuntimeError)
    assert str(arrived) == "Unreadable: 1 and 2"
    arrived = pickle.loads(pickle.dumps(_Failure(ZeroDivisionError("why")))).error
    assert isinstance(arrived, ZeroDivisionError)
    assert "ZeroDivisionError: why" in arrived.__notes__[0]


def test_failures_survive_pickling():
    import pickle

    error = sweep.FailedTasks("two", {3: ValueError("a"), 5: KeyError("b")})
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert list(again.failures) == [3, 5]


def test_the_bar_says_what_is_waited_for_and_then_the_memory(capsys):
    sweep.run(square, [1.0, 2.0], progress=True, label="squares", note="compiling")
    shown = capsys.readouterr().err
    assert "squares:" in shown
    assert "compiling" in shown
    assert " MB" in shown.replace("\r", "\n").splitlines()[-1]


def test_closing_an_iterator_leaves_no_thread_behind():
    before = threading.active_count()
    results = sweep.iterate(square, range(50), num_threads=3)
    next(results)
    results.close()
    gc.collect()
    assert threading.active_count() == before
