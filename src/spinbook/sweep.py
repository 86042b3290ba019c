"""Many independent tasks in threads, each result kept on disk as soon as it is there. Knows not what they compute.

A sweep that is interrupted, by an exception, by the user or by the machine, loses only the tasks that were running:
called again with the same folder it loads what is there and computes the rest. This is the local form: a task is an
argument, the work a plain function of it that returns arrays by name.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from spinbook import validate

__all__ = ["fingerprint", "iterate", "run"]

_DESCRIPTION = "sweep.json"


def fingerprint(*values: Any) -> str:
    """SHA-256 of arrays, numbers, strings, ``None``, and lists, tuples and dictionaries of them.

    Equal for equal values of equal types, and for nothing else.

    >>> fingerprint([1.0, "a"], {"x": np.arange(3)}) == fingerprint([1.0, "a"], {"x": np.arange(3)})
    True
    >>> fingerprint(np.float32(1)) == fingerprint(np.float64(1))
    False
    """
    digest = hashlib.sha256()

    def add(value: Any) -> None:
        if value is None or isinstance(value, str):
            # The length keeps neighbouring strings apart.
            digest.update(f"{type(value).__name__} {len(value or '')} {value}".encode())
        elif isinstance(value, Mapping):
            add([item for key in sorted(value) for item in (key, value[key])])
        elif isinstance(value, (list, tuple)):
            digest.update(f"list {len(value)}".encode())
            for item in value:
                add(item)
        else:
            array = np.ascontiguousarray(value)
            if array.dtype.hasobject:
                raise ValueError(f"values: expected arrays, numbers and strings, got {type(value).__name__}")
            digest.update(f"array {array.dtype.str} {np.shape(value)}".encode())
            digest.update(array.tobytes())

    add(values)
    return digest.hexdigest()


def _write(path: Path, write: Callable[[Any], Any]) -> None:
    """The whole file or none: it gets its name only when it is complete."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".unfinished-", delete=False) as file:
        try:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            os.unlink(file.name)
            raise
    os.replace(file.name, path)


def _read(path: Path) -> dict[str, np.ndarray] | None:
    """The arrays of a finished task, or nothing if there are none that can be read."""
    try:
        # Opened here, because np.load leaves a damaged file open.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, EOFError, ValueError, zipfile.BadZipFile):
        return None


def _prepare(folder: Path, identity: str, num_tasks: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    description = folder / _DESCRIPTION
    wanted = {"identity": identity, "num_tasks": num_tasks}
    if not description.exists():
        _write(description, lambda file: file.write(json.dumps(wanted).encode()))
    elif json.loads(description.read_text(encoding="utf-8")) != wanted:
        raise ValueError(f"folder: expected an empty one or one with this very sweep, got another sweep in {folder}")


def iterate(
    function: Callable[[Any], Mapping[str, np.ndarray]],
    tasks: Sequence[Any],
    *,
    identity: str = "",
    folder: str | os.PathLike[str] | None = None,
    num_threads: int | None = None,
    progress: bool = False,
) -> Iterator[tuple[int, dict[str, np.ndarray]]]:
    """(k, function(tasks[k])) for all k, in the order in which they are ready; nothing is held back in memory.

    ``function`` returns arrays by name; for threads to help it should release the interpreter while it computes.
    ``folder``: where each result is kept, in a file of its own that is written completely or not at all. Results that
    are there already come first and are not computed again; a file that cannot be read is. ``identity`` says which
    sweep this is (see ``fingerprint``), and a folder with another one is refused with ``ValueError``. ``num_threads``:
    one per processor by default. ``progress``: show a bar. An exception in a task, Ctrl-C, and closing the iterator
    stop the sweep once the running tasks are through, which are kept as well.

    >>> squares = iterate(lambda x: {"square": np.square(x)}, [1.0, 2.0, 3.0])
    >>> sorted((k, float(result["square"])) for k, result in squares)
    [(0, 1.0), (1, 4.0), (2, 9.0)]
    """
    threads = validate.count(os.cpu_count() if num_threads is None else num_threads, "num_threads", minimum=1)
    paths: list[Path | None] = [None] * len(tasks)
    if folder is not None:
        _prepare(Path(folder), identity, len(tasks))
        paths = [Path(folder) / f"task-{k:06d}.npz" for k in range(len(tasks))]

    def compute(k: int) -> dict[str, np.ndarray]:
        result: dict[str, Any] = dict(function(tasks[k]))
        if (path := paths[k]) is not None:
            _write(path, lambda file: np.savez(file, **result))
        return result

    missing = []
    with tqdm(total=len(tasks), disable=not progress, unit="task") as bar, ThreadPoolExecutor(threads) as pool:
        for k, path in enumerate(paths):
            found = None if path is None else _read(path)
            if found is None:
                missing.append(k)
            else:
                bar.update()
                yield k, found
        index = {pool.submit(compute, k): k for k in missing}
        try:
            while index:
                for future in wait(index, return_when=FIRST_COMPLETED).done:
                    k = index.pop(future)
                    result = future.result()
                    bar.update()
                    yield k, result
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def run(
    function: Callable[[Any], Mapping[str, np.ndarray]], tasks: Sequence[Any], **options: Any
) -> list[dict[str, np.ndarray]]:
    """[function(task) for task in tasks]: all results of ``iterate``, in order, with its options.

    >>> [float(result["square"]) for result in run(lambda x: {"square": np.square(x)}, [1.0, 2.0, 3.0])]
    [1.0, 4.0, 9.0]
    """
    results = dict(iterate(function, tasks, **options))
    return [results[k] for k in range(len(tasks))]
