"""Workers that die, hang and eat memory take nothing with them but their own task."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import BrokenExecutor
from pathlib import Path

import numpy as np
import pytest

from spinbook import sweep
from spinbook.sweep.processes import Processes
from tests.sweep import tasks as work
from tests.sweep.tasks import Task, assert_same_bits, begun

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_processes": 0}, "num_processes: expected an integer >= 1, got 0"),
        ({"memory_limit": -1}, f"memory_limit: expected an integer from 1 to {sys.maxsize}, got -1"),
    ],
)
def test_numbers_that_are_none_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Processes(**options)


def test_memory_may_be_more_than_a_count_of_32_bits():
    with Processes(1, memory_limit=8 * 2**30):
        pass


@pytest.mark.slow
def test_one_process_survives_every_kind_of_failure_and_keeps_the_rest(workers_alike, tmp_path):
    log = str(tmp_path / "log")
    fates = ["", "raise", "die", "hang", "eat", "exit", ""]
    tasks = [Task(k, 0.0, log, fate) for k, fate in enumerate(fates)]
    with Processes(1, memory_limit=8 * 2**30) as executor:
        # Started and ready before the clock of a task begins.
        executor.submit(abs, -1).result()
        with pytest.raises(sweep.FailedTasks) as caught:
            sweep.run(work.draw, tasks, folder=tmp_path / "kept", executor=executor, time_limit=5.0)
    failures = caught.value.failures
    assert {k: type(error) for k, error in failures.items()} == {
        1: ZeroDivisionError, 2: BrokenExecutor, 3: TimeoutError, 4: failures[4].__class__, 5: RuntimeError,
    }  # fmt: skip
    assert isinstance(failures[4], MemoryError)
    assert "its process died 2 times (exit code -9)" in str(failures[2])
    assert "was ended" in str(failures[3])
    assert_same_bits([caught.value.results[k] for k in (0, 6)], sweep.run(work.draw, [Task(0), Task(6)]))
    # Only the one whose process died was begun again.
    assert begun(log) == [0, 1, 2, 2, 3, 4, 5, 6]


def test_what_cannot_be_sent_is_told_and_harms_nothing():
    with Processes(1) as executor:
        with pytest.raises(sweep.FailedTasks, match=r"tasks 0, 1: .*([Pp]ickle|local object)"):
            sweep.run(lambda x: {"x": x}, [1, 2], executor=executor)
        with pytest.raises(sweep.FailedTasks, match="task 0: RuntimeError: Unreadable: 1 and more"):
            sweep.run(work.fail_unreadably, [1], executor=executor)
        assert executor.submit(divmod, 7, 2).result() == (3, 1)
        with pytest.raises(ZeroDivisionError):
            executor.submit(divmod, 7, 0).result()


SCRIPT = """
import signal
import sys
import jax
from spinbook import sweep
from spinbook.sweep import Processes
from tests.sweep.tasks import Task, draw

if __name__ == "__main__":
    # A shell has what runs in its background ignore Ctrl-C, and so whatever the tests start from there.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # In the parent only: the workers learn it from the sweep.
    jax.config.update("jax_enable_x64", True)
    folder, log, number, seconds = sys.argv[1:]
    with Processes(2) as executor:
        sweep.run(draw, [Task(k, float(seconds), log) for k in range(int(number))], folder=folder, executor=executor)
"""


def workers_of(process):
    children = [
        child for path in Path(f"/proc/{process}/task").glob("*/children") for child in path.read_text().split()
    ]
    # The helper of multiprocessing that tracks resources computes nothing.
    return [int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def wait_until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited for too long"
        time.sleep(0.02)


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    running = []

    def start(number=12, seconds=0.1):
        command = [sys.executable, str(path), str(tmp_path / "kept"), str(tmp_path / "log"), str(number), str(seconds)]
        with (tmp_path / "errors").open("ab") as errors:
            running.append(subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, stderr=errors))
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.wait()


def finished(tmp_path):
    return sorted(int(path.stem.split("-")[1]) for path in (tmp_path / "kept").glob("task-*.npz"))


@pytest.mark.slow
def test_a_killed_worker_costs_the_task_that_it_was_at(script, tmp_path):
    process = script(number=10, seconds=0.5)
    victims = {}
    while len(victims) < 3:
        wait_until(lambda: set(begun(tmp_path / "log")) - victims.keys())
        lines = (tmp_path / "log").read_text().splitlines()
        seed, worker = map(int, lines[-1].split())
        # Never the second attempt at a task: that would be its end.
        if seed not in victims:
            victims[seed] = worker
            os.kill(worker, signal.SIGKILL)
        time.sleep(0.6)
    assert process.wait(120) == 0
    assert finished(tmp_path) == list(range(10))
    # Every kill costs at most the one task, which is begun once more.
    assert sorted(begun(tmp_path / "log")) <= sorted([*range(10), *victims])


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes in /proc")
def test_workers_do_not_finish_a_long_task_for_a_client_that_was_killed(script, tmp_path):
    process = script(number=2, seconds=600)
    wait_until(lambda: len(begun(tmp_path / "log")) == 2)
    workers = workers_of(process.pid)
    assert len(workers) == 2
    process.kill()
    process.wait()
    wait_until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_killed_client_loses_what_was_in_flight_and_leaves_no_process(script, workers_alike, tmp_path, how):
    process = script(number=10, seconds=0.3)
    wait_until(lambda: len(begun(tmp_path / "log")) >= 5)
    workers = workers_of(process.pid)
    process.send_signal(how)
    assert process.wait(30) != 0
    wait_until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))
    before, done = begun(tmp_path / "log"), finished(tmp_path)
    assert len(before) - len(done) <= 2
    again = script(number=10, seconds=0.3)
    assert again.wait(60) == 0
    assert finished(tmp_path) == list(range(10))
    # Nothing that was done was computed again.
    assert sorted(begun(tmp_path / "log")[len(before) :]) == sorted(set(range(10)) - set(done))
    expected = sweep.run(work.draw, [Task(k, 0.3, str(tmp_path / "log")) for k in done], num_threads=10)
    for k, result in zip(done, expected, strict=True):
        with np.load(tmp_path / "kept" / f"task-{k:06d}.npz") as arrays:
            assert all(arrays[name].tobytes() == result[name].tobytes() for name in result)


@pytest.mark.slow
def test_a_script_without_the_line_that_processes_need_is_told_so(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT.replace('if __name__ == "__main__":', "if True:"))
    done = subprocess.run(
        [sys.executable, str(path), str(tmp_path / "kept"), "", "2", "0"],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode != 0
    assert 'needs the line if __name__ == "__main__"' in done.stderr


@pytest.mark.slow
def test_closing_an_iterator_ends_the_processes_after_their_tasks(tmp_path):
    before = threading.active_count()
    log = str(tmp_path / "log")
    with Processes(2) as executor:
        results = sweep.iterate(
            work.draw, [Task(k, 0.2, log) for k in range(20)], folder=tmp_path / "kept", executor=executor
        )
        next(results)
        results.close()
        # What was begun is kept.
        assert sorted(begun(log)) == finished(tmp_path)
        assert len(finished(tmp_path)) < 20
    assert threading.active_count() == before
