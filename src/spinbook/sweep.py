"""Many independent tasks on one machine or a cluster, each result kept on disk as soon as it is there.

A sweep that is interrupted loses only the tasks that were running: called again with the same folder it loads what is
there and computes the rest.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import queue
import secrets
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor, as_completed, wait
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from tqdm.auto import tqdm

from spinbook.precision import enable_x64

__all__ = ["FailedTasks", "fingerprint", "iterate", "run"]

Result = dict[str, np.ndarray]


class FailedTasks(ExceptionGroup[Exception]):
    """Some tasks of a sweep failed, after all others were done; the message says which, and why."""


def _write(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """The arrays as a file that ``numpy.load`` reads, whole or not at all: it gets its name when it is on the disk."""
    unfinished = path.with_name(f".unfinished-{secrets.token_hex(8)}")
    with unfinished.open("xb") as file:
        np.savez(file, allow_pickle=False, **arrays)
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, path)


def _read(path: Path) -> Result | None:
    """The arrays of a file; None if it is missing or damaged, which the checksums of the archive show."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as arrays:
            return dict(arrays)
    except Exception:
        return None


def _open(folder: Path, identity: str, tasks: list[Any]) -> None:
    """Make the folder, or see that it is of this sweep."""
    if not identity:
        raise ValueError("identity: expected words that say which sweep is in the folder, got none")
    described: dict[str, Any] = {"identity": identity, "num_tasks": len(tasks)}
    # Tasks that are neither numbers nor text are for the identity to tell apart.
    with contextlib.suppress(TypeError):
        described["tasks"] = fingerprint(tasks)
    folder.mkdir(parents=True, exist_ok=True)
    path, expected = folder / "sweep.npz", json.dumps(described)
    if not any(folder.glob("*.npz")):
        _write(path, {"sweep": np.array(expected)})
    there = str((_read(path) or {}).get("sweep", "results that nothing describes"))
    if there != expected:
        raise ValueError(f"folder: expected an empty one or one with this very sweep, got {there[:200]} in {folder}")


def _compute(function: Callable[[Any], Any], double: bool, task: Any, path: Path | None) -> Result | Exception:
    """The result of a task, where the worker is, in the caller's precision, which other threads do not share."""
    try:
        # Only where they differ: entering the context makes JAX compile anew.
        with contextlib.nullcontext() if double == _in_double_precision() else enable_x64(double):
            result = {str(name): np.array(value, order="C") for name, value in dict(function(task)).items()}
    except Exception as error:
        # In words: an exception that cannot be read at the other end would take the executor with it.
        told = RuntimeError(f"{type(error).__name__}: {error}")
        told.add_note("".join(traceback.format_exception(error)))
        return told
    if path is not None:
        # A worker that does not see the folder sends its result to the process that does.
        with contextlib.suppress(OSError):
            _write(path, result)
    return result


def _in_double_precision() -> bool:
    return bool(jax.dtypes.canonicalize_dtype(float) == np.float64)


def _compute_within(seconds: float, *arguments: Any) -> Result | Exception:
    """The same in a thread that is left behind when the time is up: a thread cannot be ended."""
    box: queue.SimpleQueue[Result | Exception] = queue.SimpleQueue()
    threading.Thread(target=lambda: box.put(_compute(*arguments)), daemon=True).start()
    try:
        return box.get(timeout=seconds)
    except queue.Empty:
        return TimeoutError(f"took longer than {seconds:g} s and was left behind")


def iterate(
    function: Callable[[Any], Mapping[str, Any]],
    tasks: Iterable[Any],
    *,
    identity: str = "",
    folder: str | os.PathLike[str] | None = None,
    executor: Executor | None = None,
    num_threads: int | None = None,
    time_limit: float | None = None,
    progress: bool = False,
    label: str | None = None,
) -> Iterator[tuple[int, Result]]:
    """(k, function(tasks[k])) for all k, in the order in which they are ready, as NumPy arrays by name.

    ``executor``: any of ``concurrent.futures``, such as ``get_executor()`` of a client of Dask, or a pool of processes
    that are spawned: in one that forks, JAX would wait for ever for its threads. Without one, ``num_threads`` threads,
    by default as many as processors. What a function draws at random should follow from its task: then every executor
    gives the same bits.

    ``folder``: where each result is kept, in a file of its own, by the worker if it sees the folder, otherwise when the
    result arrives. Results that are there come first and are not computed again; a damaged one is. ``identity`` says
    which sweep this is, with all that the function depends on beside its task. Raises ``ValueError`` for a folder with
    another identity or other tasks.

    A task that raises or takes longer than ``time_limit`` seconds stops no other: at the end ``FailedTasks`` names all
    that failed. Ctrl-C, ``SystemExit`` and closing the iterator stop the sweep once the running tasks are through,
    which are kept. ``progress``: show a bar with this ``label``.

    >>> squares = iterate(lambda x: {"square": np.square(x)}, [1.0, 2.0, 3.0])
    >>> sorted((k, float(result["square"])) for k, result in squares)
    [(0, 1.0), (1, 4.0), (2, 9.0)]
    """
    context = getattr(executor, "_mp_context", None)
    if context is not None and context.get_start_method() == "fork":
        raise ValueError("executor: expected processes that are spawned (mp_context), got a pool that forks")
    tasks = list(tasks)
    paths: list[Path | None] = [None] * len(tasks)
    if folder is not None:
        place = Path(folder).absolute()
        _open(place, identity, tasks)
        paths = [place / f"task-{k:06d}.npz" for k in range(len(tasks))]
    compute = partial(_compute if time_limit is None else partial(_compute_within, time_limit), function)
    calls = [partial(compute, _in_double_precision(), *both) for both in zip(tasks, paths, strict=True)]
    bar = tqdm(total=len(tasks), disable=not progress, unit="task", desc=label)
    return _results(calls, paths, executor, num_threads or os.cpu_count() or 1, bar)


def _results(
    calls: list[partial[Any]], paths: list[Path | None], executor: Executor | None, threads: int, bar: tqdm[Any]
) -> Iterator[tuple[int, Result]]:
    running: dict[Future[Any], int] = {}
    missing: list[int] = []
    failures: dict[int, Exception] = {}

    def kept(future: Future[Any], k: int) -> Result:
        outcome, path = future.result(), paths[k]
        if isinstance(outcome, Exception):
            raise outcome
        if path is not None and not path.exists():
            _write(path, outcome)
        return outcome

    with contextlib.closing(bar), contextlib.ExitStack() as stack:
        for k, path in enumerate(paths):
            result = None if path is None else _read(path)
            if result is None:
                missing.append(k)
            else:
                bar.update()
                yield k, result
        pool = executor or stack.enter_context(ThreadPoolExecutor(threads))
        try:
            for k in missing:
                if path := paths[k]:
                    path.unlink(missing_ok=True)
                try:
                    # As a single object: a cluster would look into arguments for futures of its own.
                    running[pool.submit(calls[k])] = k
                except Exception as error:
                    failures[k] = error
            for future in as_completed(running):
                k = running.pop(future)
                bar.update()
                try:
                    result = kept(future, k)
                except Exception as error:
                    failures[k] = error
                else:
                    yield k, result
        finally:
            # Begin no more, and keep what is on its way.
            through = {future: k for future, k in running.items() if not future.cancel()}
            wait(through)
            for future, k in through.items():
                with contextlib.suppress(BaseException):
                    kept(future, k)
    if failures:
        said = [f"task {k}: {error}".partition("\n")[0][:200] for k, error in sorted(failures.items())]
        said[10:] = [f"and {len(said) - 10} more"] if len(said) > 10 else []
        message = f"{len(failures)} of {len(calls)} tasks failed, the others are done; {'; '.join(said)}"
        raise FailedTasks(message, list(failures.values()))


def run(function: Callable[[Any], Mapping[str, Any]], tasks: Iterable[Any], **options: Any) -> list[Result]:
    """[function(task) for task in tasks]: all results of ``iterate``, in order, with its options.

    >>> [float(result["square"]) for result in run(lambda x: {"square": np.square(x)}, [1.0, 2.0, 3.0])]
    [1.0, 4.0, 9.0]
    """
    results = dict(iterate(function, tasks, **options))
    return [results[k] for k in range(len(results))]


def fingerprint(*values: Any) -> str:
    """SHA-256 of arrays, numbers, text, ``None``, and lists and dictionaries of them: equal for equal ones alone.

    >>> fingerprint([1.0, "a"], np.arange(3)) == fingerprint([1.0, "a"], np.arange(3.0))  # exact
    False
    """

    def described(value: Any) -> Any:
        array = np.asarray(value, order="C")
        if array.dtype.hasobject:
            raise TypeError(f"values: expected arrays, numbers and text, got {type(value).__name__}")
        return {"array": [array.dtype.str, array.shape, hashlib.sha256(array.tobytes()).hexdigest()]}

    return hashlib.sha256(json.dumps(values, sort_keys=True, default=described).encode()).hexdigest()
