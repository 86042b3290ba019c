"""Sweeps: what is kept on disk, what an interruption or a failure costs, and the same bits from any executor."""

import pickle
import signal
import subprocess
import sys
import threading
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from multiprocessing import get_all_start_methods, get_context

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spinbook import sweep
from spinbook.precision import enable_x64

SEEDS = [5, 3, 8, 1, 9, 2]


def draw(seed):
    """Numbers that follow from the seed, by NumPy and by JAX."""
    noise = np.random.default_rng(seed).normal(size=50)
    both = jnp.sin(jnp.asarray(noise)) + jax.random.normal(jax.random.key(seed), (50,))
    return {"numpy": np.cumsum(noise), "jax": both, "python": seed}


def fail_at_three(x):
    if x == 3:
        raise ZeroDivisionError("three")
    return {"x": x}


class Noting:
    """Squares, notes what was begun, and raises at one of them."""

    def __init__(self, stop=None):
        self.begun, self.stop = [], stop

    def __call__(self, x):
        self.begun.append(x)
        if x == self.stop:
            raise KeyboardInterrupt
        return {"square": np.square(x)}


def assert_same_bits(results, expected):
    for ours, theirs in zip(results, expected, strict=True):
        assert {name: (a.dtype, a.tobytes()) for name, a in ours.items()} == {
            name: (a.dtype, a.tobytes()) for name, a in theirs.items()
        }


@pytest.fixture(scope="module")
def expected():
    return sweep.run(draw, SEEDS, num_threads=1)


def test_results_are_handed_out_as_they_are_ready():
    gate, task = threading.Event(), Noting()
    results = sweep.iterate(lambda x: (gate.wait(10), task(x))[1] if x == 0 else task(x), range(40), num_threads=2)
    assert next(results)[0] > 0
    gate.set()
    assert len(list(results)) == 39
    assert sweep.run(task, []) == []


def test_an_interrupted_sweep_loses_nothing(tmp_path):
    options = {"folder": tmp_path, "identity": "squares", "num_threads": 1}
    with pytest.raises(KeyboardInterrupt):
        sweep.run(Noting(stop=6), range(10), **options)
    again = Noting()
    assert [int(result["square"]) for result in sweep.run(again, range(10), **options)] == [k * k for k in range(10)]
    # The thread may have begun another task before it was told to stop.
    assert set(again.begun) <= set(range(6, 10))


def test_a_process_that_is_killed_loses_only_what_was_running(tmp_path):
    program = f"""if True:
        import os, signal
        from spinbook import sweep
        def task(k):
            return {{"square": os.kill(os.getpid(), signal.SIGKILL) if k == 6 else k * k}}
        sweep.run(task, range(10), folder={str(tmp_path)!r}, identity="squares", num_threads=1)
    """
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -signal.SIGKILL
    again = Noting()
    sweep.run(again, range(10), folder=tmp_path, identity="squares", num_threads=1)
    assert again.begun == [6, 7, 8, 9]


def test_closing_the_iterator_keeps_what_is_finished_and_ends_the_threads(tmp_path):
    before, first, rest = threading.active_count(), Noting(), Noting()
    results = sweep.iterate(first, range(50), folder=tmp_path, identity="squares", num_threads=3)
    next(results)
    results.close()
    assert threading.active_count() == before
    sweep.run(rest, range(50), folder=tmp_path, identity="squares")
    assert sorted(first.begun + rest.begun) == list(range(50))


def test_a_damaged_file_is_run_again(tmp_path):
    sweep.run(Noting(), [1.0, 2.0], folder=tmp_path, identity="squares")
    path, again = tmp_path / "task-000001.npz", Noting()
    path.write_bytes(path.read_bytes()[:-50])
    assert float(sweep.run(again, [1.0, 2.0], folder=tmp_path, identity="squares")[1]["square"]) == 4
    assert again.begun == [2.0]


def test_results_are_the_same_whether_they_were_computed_or_read_again(tmp_path):
    values = {
        "float": 1.5, "text": "word", "list": [[1.0, 2.0]], "jax": jnp.arange(6.0).reshape(2, 3), "complex": 1j,
        "fortran": np.asfortranarray(np.ones((2, 3))), "big endian": np.arange(3, dtype=">i4"), "no": np.zeros((0, 3)),
    }  # fmt: skip
    computed = sweep.run(lambda x: values, [0], folder=tmp_path, identity="types")
    again = sweep.run(lambda x: 1 / 0, [0], folder=tmp_path, identity="types")
    assert_same_bits(again, computed)
    assert_same_bits(computed, [{name: np.asarray(value) for name, value in values.items()}])


def test_the_folder_of_another_sweep_is_refused(tmp_path):
    sweep.run(Noting(), [1.0, 2.0], folder=tmp_path, identity="mine")
    for tasks, identity in (([1.0, 2.0], "yours"), ([1.0], "mine"), ([1.0, 3.0], "mine")):
        with pytest.raises(ValueError, match=r"folder: expected an empty one or one with this very sweep, got .*mine"):
            sweep.iterate(Noting(), tasks, folder=tmp_path, identity=identity)
    with pytest.raises(ValueError, match="identity: expected words"):
        sweep.iterate(Noting(), [1.0, 2.0], folder=tmp_path)
    (tmp_path / "sweep.npz").unlink()
    with pytest.raises(ValueError, match="got results that nothing describes"):
        sweep.iterate(Noting(), [1.0, 2.0], folder=tmp_path, identity="mine")


def test_a_task_that_fails_stops_no_other(tmp_path):
    options = {"folder": tmp_path, "identity": "failing"}
    with pytest.raises(sweep.FailedTasks, match=r"1 of 5 tasks failed, .*; task 3: ZeroDivisionError: three") as caught:
        sweep.run(fail_at_three, range(5), **options)
    assert "in fail_at_three" in caught.value.exceptions[0].__notes__[0]
    assert [int(result["square"]) for result in sweep.run(Noting(), [3], time_limit=60.0)] == [9]
    assert len(list(tmp_path.glob("task-*.npz"))) == 4


def test_a_task_out_of_time_stops_no_other():
    gate = threading.Event()
    with pytest.raises(sweep.FailedTasks, match=r"1 of 3 .*task 0: took longer than 0.2 s"):
        sweep.run(lambda x: {"x": gate.wait(60) if x == 0 else x}, range(3), num_threads=1, time_limit=0.2)
    gate.set()


class Unreadable(Exception):
    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")
        self.lock = threading.Lock()


def fail_unreadably(task):
    raise Unreadable(task, "more")


def test_an_exception_that_cannot_travel_is_put_in_words():
    with pytest.raises(TypeError):
        pickle.loads(pickle.dumps(Unreadable(1, 2)))
    with pytest.raises(sweep.FailedTasks, match="task 0: Unreadable: 1 and more"):
        sweep.run(fail_unreadably, [1])


def test_the_precision_of_the_caller_holds_in_every_thread(expected):
    with enable_x64(False):
        assert sweep.run(draw, SEEDS[:1], num_threads=1)[0]["jax"].dtype == np.float32
    assert expected[0]["jax"].dtype == np.float64


class Breaking(Executor):
    """Gives two results in the folder's absence, loses the third, and then takes no more."""

    def __init__(self, folder):
        self.folder, self.number = folder, 0

    def submit(self, function, /, *args):
        self.number += 1
        if self.number > 3:
            raise RuntimeError("cannot schedule new futures after shutdown")
        future = Future()
        away = self.folder.with_name("away")
        self.folder.rename(away)
        result = function(*args)
        away.rename(self.folder)
        if self.number == 3:
            future.set_exception(RuntimeError("a process was ended"))
        else:
            future.set_result(result)
        return future


def test_an_executor_that_breaks_and_does_not_see_the_folder_loses_only_what_it_had(tmp_path):
    folder = tmp_path / "here"
    options = {"folder": folder, "identity": "squares"}
    with pytest.raises(sweep.FailedTasks, match=r"3 of 5 tasks failed.*task 2: a process was ended"):
        sweep.run(Noting(), range(5), executor=Breaking(folder), **options)
    rest = Noting()
    assert len(sweep.run(rest, range(5), **options)) == 5
    assert sorted(rest.begun) == [2, 3, 4]


@pytest.mark.skipif("fork" not in get_all_start_methods(), reason="this system does not fork")
def test_a_pool_that_forks_is_refused_before_it_waits_for_the_threads_of_jax():
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        with pytest.raises(ValueError, match="executor: expected processes that are spawned"):
            sweep.iterate(draw, SEEDS, executor=pool)
        assert not pool._processes


def test_fingerprints_tell_apart_what_differs_and_nothing_else():
    values = [
        1, 1.0, np.float32(1.0), True, "1", None, [1], [[1]], [1, 1], {"a": 1}, {"b": 1}, ["a", 1], ["a", "bc"], "",
        np.ones(2), np.ones((1, 2)), np.ones((2, 1)), np.ones(2, np.float32), np.zeros(2), [], ["ab", "c"],
    ]  # fmt: skip
    assert len({sweep.fingerprint(value) for value in values}) == len(values)
    assert sweep.fingerprint({"a": np.ones(2), "b": (2,)}) == sweep.fingerprint({"b": [2], "a": np.ones(2)})
    with pytest.raises(TypeError, match="values: expected arrays, numbers and text"):
        sweep.fingerprint(object())


@pytest.mark.slow
def test_processes_and_a_cluster_of_dask_change_no_bit(expected, monkeypatch, tmp_path):
    # The processes compile as this one does, which changes bits.
    monkeypatch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
    distributed = pytest.importorskip("distributed")
    with ProcessPoolExecutor(2, get_context("spawn")) as executor:
        assert_same_bits(sweep.run(draw, SEEDS, executor=executor, folder=tmp_path, identity="draws"), expected)
    assert_same_bits(sweep.run(draw, SEEDS, folder=tmp_path, identity="draws"), expected)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        options = {"executor": client.get_executor(), "folder": tmp_path / "dask", "identity": "draws"}
        assert_same_bits(sweep.run(draw, SEEDS, **options), expected)
        with pytest.raises(sweep.FailedTasks, match=r"1 of 5 .*task 3: ZeroDivisionError"):
            sweep.run(fail_at_three, range(5), executor=options["executor"], time_limit=60)
    assert_same_bits(sweep.run(draw, SEEDS, folder=tmp_path / "dask", identity="draws"), expected)
