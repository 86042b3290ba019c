"""Many independent tasks on any executor, each result kept as soon as it is there."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import pickle
import queue
import sys
import threading
import traceback
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from tqdm.auto import tqdm

from spinbook import validate
from spinbook.precision import enable_x64
from spinbook.sweep.identity import derived, fingerprint
from spinbook.sweep.processes import Processes
from spinbook.sweep.storage import Store, plain

__all__ = ["FailedTasks", "iterate", "run"]

Result = dict[str, np.ndarray]
# How often a sweep that waits looks whether its executor is still there, and moves its clock.
_HEARTBEAT_SECONDS = 1.0


class FailedTasks(ExceptionGroup[Exception]):
    """Some tasks of a sweep failed, after all others were done.

    ``failures``: the exception of each task that failed, by its number. ``results``: of the others, if ``run`` raised
    it. An ``ExceptionGroup``: ``except*`` takes out the exceptions of one type.
    """

    failures: dict[int, Exception]
    results: dict[int, Result]

    def __new__(cls, message: str, failures: Mapping[int, Exception]) -> FailedTasks:
        # A pool that breaks gives one and the same exception to all its tasks.
        self = super().__new__(cls, message, list({id(error): error for error in failures.values()}.values()))
        self.failures, self.results = dict(failures), {}
        return self

    def derive(self, excs: Sequence[Exception]) -> ExceptionGroup[Exception]:  # type: ignore[override]
        """A group of some of the exceptions, which ``except*`` asks for."""
        return ExceptionGroup(self.message, excs)

    def __reduce__(self) -> Any:
        return FailedTasks, (self.message, self.failures)


def _summary(failures: Mapping[int, Exception], num_tasks: int) -> str:
    by_reason = defaultdict(list)
    for k in sorted(failures):
        reason = f"{type(failures[k]).__name__}: {failures[k]}".partition("\n")[0][:200]
        by_reason[reason].append(k)
    reasons = []
    for reason, which in list(by_reason.items())[:10]:
        more = f" and {len(which) - 10} more" if len(which) > 10 else ""
        numbers = ", ".join(map(str, which[:10]))
        reasons.append(f"task{'s' * (len(which) > 1)} {numbers}{more}: {reason}")
    others = len(by_reason) - len(reasons)
    if others:
        reasons.append(f"{others} other reasons")
    return f"{len(failures)} of {num_tasks} tasks failed, the others are done; " + "; ".join(reasons)


class _Failure:
    """An exception on its way from a worker, with its traceback as a note."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __reduce__(self) -> Any:
        # An exception that cannot be read at the other end would take the executor with it.
        trace = "".join(traceback.format_exception(self.error))
        error = self.error
        try:
            error = pickle.loads(pickle.dumps(error))
        except Exception:
            error = RuntimeError(f"{type(error).__name__}: {error}")
        error.add_note(trace)
        return _Failure, (error,)


class _Outcome(NamedTuple):
    """What comes back from a worker: a result or a failure, whether it is in the folder, the peak memory in bytes."""

    result: Result | None
    failure: _Failure | None
    kept: bool
    peak: int


def _peak() -> int:
    try:
        import resource
    except ImportError:
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _within(seconds: float | None, compute: Callable[[], Any]) -> Any:
    """compute(), in a thread that is left alone when the time is up: a thread cannot be ended."""
    if seconds is None:
        return compute()
    box: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

    def fill() -> None:
        try:
            box.put((compute(), None))
        except BaseException as error:
            box.put((None, error))

    threading.Thread(target=fill, daemon=True).start()
    try:
        value, error = box.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(f"took longer than {seconds:g} s and was left behind") from None
    if error is not None:
        raise error
    return value


def _in_double_precision() -> bool:
    return jnp.zeros(0).dtype == np.float64


@dataclass(frozen=True)
class _Work:
    """One task from beginning to end, where the worker is; picklable if the function is."""

    function: Callable[[Any], Mapping[str, Any]]
    store: Store | None
    time_limit: float | None
    # A setting of the caller that changes what JAX computes and that other threads and processes do not know. Those of
    # the compiler change bits as well, but are of a whole process: all that begin with one environment have the same.
    double_precision: bool

    def _compute(self, task: Any) -> Result:
        # Only where they differ: entering the context makes JAX compile anew.
        same = _in_double_precision() == self.double_precision
        with contextlib.nullcontext() if same else enable_x64(self.double_precision):
            return plain(self.function(task))

    def __call__(self, k: int, task: Any) -> _Outcome:
        try:
            result = _within(self.time_limit, functools.partial(self._compute, task))
        except SystemExit as error:
            return _Outcome(None, _Failure(RuntimeError(f"SystemExit: {error}")), False, _peak())
        except Exception as error:
            return _Outcome(None, _Failure(error), False, _peak())
        kept = False
        # A worker that sees the folder writes there itself: the result then survives whatever happens on its way. If it
        # cannot, the process that called has the result soon and tries as well.
        with contextlib.suppress(OSError):
            if self.store is not None and self.store.is_here():
                self.store.write(k, result)
                kept = True
        return _Outcome(result, None, kept, _peak())


class _Lost(RuntimeError):
    """The executor went away with the tasks it had."""


def _forks(pool: ProcessPoolExecutor) -> bool:
    context = getattr(pool, "_mp_context", None)
    return context is not None and context.get_start_method() == "fork"


def _is_gone(executor: Executor) -> bool:
    """Whether nothing will come any more: a client of a cluster may close without saying so to its futures."""
    client = getattr(executor, "_client", None)
    return getattr(client, "status", "running") in ("closed", "closing")


class _Bar:
    """Progress on the terminal: tasks, time left, the largest memory of a process, failures."""

    def __init__(self, total: int, shown: bool, label: str, note: str) -> None:
        self._bar = tqdm(total=total, disable=not shown, unit="task", desc=label or None, smoothing=0.0)
        self._peak, self._failed = 0, 0
        if note:
            self._bar.set_postfix_str(note)

    def found(self) -> None:
        """One that was there already, which says nothing about the time that others take."""
        if not self._bar.disable:
            self._bar.initial += 1
        self._bar.update()

    def count(self, peak: int, failed: bool) -> None:
        self._peak, self._failed = max(self._peak, peak), self._failed + failed
        parts = [f"{self._peak / 2**20:.0f} MB"] if self._peak else []
        parts += [f"{self._failed} failed"] if self._failed else []
        self._bar.set_postfix_str(", ".join(parts), refresh=False)
        self._bar.update()

    def tick(self) -> None:
        self._bar.refresh()

    def close(self) -> None:
        self._bar.close()


def iterate(
    function: Callable[[Any], Mapping[str, Any]],
    tasks: Iterable[Any],
    *,
    identity: str | None = None,
    folder: str | os.PathLike[str] | None = None,
    executor: Executor | None = None,
    num_threads: int | None = None,
    time_limit: float | None = None,
    progress: bool = False,
    label: str = "",
    note: str = "",
) -> Iterator[tuple[int, Result]]:
    """(k, function(tasks[k])) for all k, in the order in which they are ready.

    Results do not pile up in memory: without an executor, tasks begin as those before them are read.

    ``function`` returns arrays by name, which come back as NumPy arrays whether they were computed now or read again.
    What it draws at random should follow from the task: then every executor gives the same bits.

    ``executor``: any of ``concurrent.futures``: ``Processes``, whose processes end with this one, a
    ``ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn"))``, which leaves them behind if this one is
    killed, ``get_executor()`` of a client of dask. A pool that forks, the default on Linux before Python 3.14, raises
    ``ValueError``: its processes would wait for ever for the threads of JAX, which are not forked. Without one,
    ``num_threads`` threads, one per processor by default; for threads to help, the function should release the
    interpreter while it computes. For other processes the function has to be picklable. The executor is not shut down.

    ``folder``: where each result is kept, in a sealed file of its own that is written completely or not at all, by the
    worker if it sees the folder, otherwise when the result arrives. Results that are there already come first and are
    not computed again; a damaged one is. ``identity`` says which sweep this is (see ``fingerprint``); by default it
    follows from the function, the tasks and the code. A folder with another sweep, or with results of nobody knows
    what, is refused with ``ValueError``; so are other tasks under a given ``identity``, if they are arrays, numbers and
    strings.

    A task that raises does not stop the others: at the end ``FailedTasks`` names all that failed. ``time_limit``, in
    seconds: a task that takes longer counts as failed. ``Processes`` ends it; a thread, a standard pool or a cluster
    leaves it behind, and it should then release the interpreter now and then. If the executor breaks, what it has not
    given back counts as failed, and the same call goes on from the folder.

    Ctrl-C, also when a task raises it, and closing the iterator stop the sweep once the running tasks are through,
    which are kept as well. ``progress``: show a bar, named ``label``, with ``note`` until the first result.

    >>> squares = iterate(lambda x: {"square": np.square(x)}, [1.0, 2.0, 3.0])
    >>> sorted((k, float(result["square"])) for k, result in squares)
    [(0, 1.0), (1, 4.0), (2, 9.0)]
    """
    if not callable(function):
        raise ValueError(f"function: expected a function of one task, got {type(function).__name__}")
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise ValueError(f"executor: expected one of concurrent.futures, got {type(executor).__name__}")
    if isinstance(executor, ProcessPoolExecutor) and _forks(executor):
        raise ValueError(
            "executor: expected processes that are spawned, because forked ones wait for ever for the threads of JAX, "
            'got a pool that forks; take sweep.Processes(), or mp_context=multiprocessing.get_context("spawn")'
        )
    if executor is not None and num_threads is not None:
        raise ValueError(f"num_threads: expected none beside an executor, got {num_threads}")
    threads = validate.count(os.cpu_count() if num_threads is None else num_threads, "num_threads", minimum=1)
    if time_limit is not None and not (isinstance(time_limit, (int, float)) and 0 < time_limit < math.inf):
        raise ValueError(f"time_limit: expected a number of seconds > 0, got {time_limit!r}")
    tasks = list(tasks)
    store = None if folder is None else Store.opened(folder, _about(function, tasks, identity))
    bar = functools.partial(_Bar, len(tasks), progress, label, note)
    return _results(function, tasks, store, executor, threads, time_limit, bar)


def _about(function: Callable[..., Any], tasks: Sequence[Any], identity: str | None) -> dict[str, Any]:
    """What tells a sweep from others, for its folder."""
    if not identity:
        parts = derived(function, tasks)
        identity = fingerprint(parts)
    else:
        parts = {}
        # Tasks of other kinds are for the identity to tell apart.
        with contextlib.suppress(ValueError, TypeError):
            parts["tasks"] = fingerprint(tasks)
    return {"identity": identity, "num_tasks": len(tasks)} | parts


def _results(
    function: Callable[[Any], Mapping[str, Any]],
    tasks: Sequence[Any],
    store: Store | None,
    executor: Executor | None,
    threads: int,
    time_limit: float | None,
    new_bar: Callable[[], _Bar],
) -> Iterator[tuple[int, Result]]:
    missing: deque[int] = deque()
    failures: dict[int, Exception] = {}
    with contextlib.ExitStack() as stack:
        bar = stack.enter_context(contextlib.closing(new_bar()))
        for k in range(len(tasks)):
            found = None if store is None else store.read(k)
            if found is None:
                missing.append(k)
            else:
                bar.found()
                yield k, found
        if not missing:
            return
        pool = executor or stack.enter_context(ThreadPoolExecutor(threads))
        arrived: queue.SimpleQueue[Future[_Outcome]] = queue.SimpleQueue()
        running: dict[Future[_Outcome], int] = {}
        work = _Work(function, store, time_limit, _in_double_precision())
        submit = pool.submit
        if isinstance(pool, Processes):
            submit = functools.partial(pool.submit_within, time_limit)
            work = replace(work, time_limit=None)
        stack.callback(_stop, running, store)
        # Our own threads begin no more than whoever reads the results keeps up with: else all would wait in memory.
        most = len(missing) if executor else 4 * threads
        while missing or running:
            while missing and len(running) < most:
                k = missing.popleft()
                try:
                    # As one object: a cluster would look into arguments for futures of its own.
                    future = submit(functools.partial(work, k, tasks[k]))
                except Exception as error:
                    # A pool that is broken or shut down; the others of its futures tell the same.
                    failures[k] = error
                    bar.count(0, failed=True)
                    continue
                running[future] = k
                # Waiting for a queue costs the same however many are running.
                future.add_done_callback(arrived.put)
            if not running:
                break
            try:
                future = arrived.get(timeout=_HEARTBEAT_SECONDS)
            except queue.Empty:
                bar.tick()
                if not _is_gone(pool):
                    continue
                for future in running:
                    # Cancelled, it comes back by the same way as all others.
                    future.cancel()
                continue
            k = running.pop(future)
            result, failure, peak = _taken(future, k, store)
            if failure is not None:
                failures[k] = failure
            bar.count(peak, failed=failure is not None)
            if result is not None:
                yield k, result
    if failures:
        failures = {k: failures[k] for k in sorted(failures)}
        for one in {id(error): error for error in failures.values()}.values():
            which = [k for k in failures if failures[k] is one]
            more = f", and {len(which) - 1} more" if len(which) > 1 else ""
            one.add_note(f"task {which[0]}: {tasks[which[0]]!r:.200}{more}")
        raise FailedTasks(_summary(failures, len(tasks)), failures)


def _taken(future: Future[_Outcome], k: int, store: Store | None) -> tuple[Result | None, Exception | None, int]:
    """The result of a future that is done, kept if it was not, and what went wrong; a result may have come too."""
    try:
        outcome = future.result()
    except Exception as error:
        # The worker may have finished, and only the way back failed.
        found = None if store is None else store.read(k)
        if isinstance(error, CancelledError):
            error = _Lost("the executor gave it up, as when its scheduler or its workers are gone")
        return found, (error if found is None else None), 0
    if outcome.failure is not None:
        return None, outcome.failure.error, outcome.peak
    try:
        if store is not None and not outcome.kept:
            store.write(k, outcome.result or {})
    except OSError as error:
        error.add_note("it was computed, but could not be kept")
        return outcome.result, error, outcome.peak
    return outcome.result, None, outcome.peak


def _stop(running: dict[Future[_Outcome], int], store: Store | None) -> None:
    """Begin no more, and keep what is on its way."""
    through = [future for future in running if not future.cancel()]
    wait(through)
    for future in through:
        if not future.cancelled() and future.exception() is None:
            _taken(future, running[future], store)


def run(function: Callable[[Any], Mapping[str, Any]], tasks: Iterable[Any], **options: Any) -> list[Result]:
    """[function(task) for task in tasks]: all results of ``iterate``, in order, with its options.

    If tasks failed, ``FailedTasks`` has the results of the others in ``results``.

    >>> [float(result["square"]) for result in run(lambda x: {"square": np.square(x)}, [1.0, 2.0, 3.0])]
    [1.0, 4.0, 9.0]
    """
    results: dict[int, Result] = {}
    try:
        for k, result in iterate(function, tasks, **options):
            results[k] = result
    except FailedTasks as error:
        error.results = results
        raise
    return [results[k] for k in range(len(results))]
