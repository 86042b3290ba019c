"""Shares out work on many pages over the processors; what is given and returned goes between processes."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

from companion.running import environment

Each = Callable[[Callable[..., Any], Sequence[Any]], list[Any]]
"""Calls a function of a module with every item; returns the results in the order of the items."""

FEW = 40
"""So many pages are done before other processes have started."""
_LOOK_SECONDS = 1.0


def alone(function: Callable[..., Any], items: Sequence[Any]) -> list[Any]:
    """``Each`` in this process."""
    return [function(item) for item in items]


@contextmanager
def shared(many: int) -> Iterator[Each]:
    """``Each`` over as many processes as this one may use processors, or ``alone`` for ``many`` up to ``FEW``.

    The processes end with this one, however it ends.
    """
    processes = len(environment.processors())
    if many <= FEW or processes < 2:
        yield alone
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, initializer=_end_with, initargs=(os.getpid(),)) as pool:
        yield lambda function, items: list(pool.map(function, items))


def _end_with(parent: int) -> None:
    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
