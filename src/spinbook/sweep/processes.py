"""Worker processes that may die: an executor of ``concurrent.futures`` that knows which call each of them was at.

The standard library's pool is broken for good as soon as one process is killed, and cannot stop a call that hangs.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import pickle
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from typing import Any

from spinbook import validate

__all__ = ["Processes"]

_ATTEMPTS = 2


def _end_with_parent() -> None:
    """Leave as soon as the parent is gone, whatever is being computed: nobody else would end a call that hangs."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)


def _limit_memory(limit: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def _sendable(error: BaseException) -> bytes:
    with contextlib.suppress(Exception):
        data = pickle.dumps((False, error))
        pickle.loads(data)
        return data
    return pickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))


def _serve(connection: multiprocessing.connection.Connection, memory_limit: int | None) -> None:
    """Answer calls until the other end is closed."""
    # Ctrl-C reaches all processes of a terminal; what to do about it is decided by the first of them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if memory_limit is not None:
        _limit_memory(memory_limit)
    connection.send_bytes(b"ready")
    while True:
        try:
            data = connection.recv_bytes()
        except EOFError:
            return
        try:
            function, arguments, options = pickle.loads(data)
            reply = pickle.dumps((True, function(*arguments, **options)))
        except BaseException as error:
            reply = _sendable(error)
        connection.send_bytes(reply)


class _Worker:
    """One process and the line to it."""

    def __init__(self, memory_limit: int | None) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, memory_limit), daemon=True)
        self._process.start()
        theirs.close()

    def wait_until_ready(self) -> None:
        try:
            self._connection.recv_bytes()
        except (EOFError, ConnectionError):
            self.kill()
            raise BrokenExecutor(
                "a worker process ended before its first task; a script that starts processes needs the line "
                'if __name__ == "__main__"'
            ) from None

    def call(self, data: bytes, seconds: float | None) -> Any:
        """The result or exception of the call; ``EOFError`` if the process died, ``queue.Empty`` if time is up."""
        try:
            self._connection.send_bytes(data)
            if not self._connection.poll(seconds):
                raise queue.Empty
            fine, value = pickle.loads(self._connection.recv_bytes())
        except ConnectionError:
            raise EOFError from None
        if fine:
            return value
        raise _Raised(value)

    def exit_code(self) -> int | None:
        self._process.join(1)
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
        self._connection.close()

    def dismiss(self) -> None:
        """The process ends by itself once nobody is at the other end of the line."""
        self._connection.close()
        self._process.join(5)
        self._process.kill()
        self._process.join()


class _Raised(Exception):
    """What the function raised, told apart from what became of its process."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


class Processes(Executor):
    """``num_processes`` worker processes, one per processor by default, each replaced when it dies.

    A process that dies (is killed, runs out of memory, crashes in compiled code) takes nothing with it but its call,
    which is begun once more in a new process and fails with ``BrokenExecutor`` if that dies too. A call that takes
    longer than allowed is ended with its process. ``memory_limit``, in bytes: what a process may take; beyond it,
    ``MemoryError`` is raised there (Linux only). The processes end when this one does, even if it is killed.

    Functions and arguments are pickled: take functions of a module, not of a notebook. They are started afresh
    ("spawn"), so a script that uses them needs ``if __name__ == "__main__":``.
    """

    def __init__(self, num_processes: int | None = None, *, memory_limit: int | None = None) -> None:
        number = os.cpu_count() if num_processes is None else num_processes
        self._number = validate.count(number, "num_processes", minimum=1)
        self._memory_limit = None
        if memory_limit is not None:
            self._memory_limit = validate.count(memory_limit, "memory_limit", minimum=1, maximum=sys.maxsize)
        self._threads = ThreadPoolExecutor(self._number, thread_name_prefix="spinbook-processes")
        self._idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """``function(*args, **kwargs)`` in one of the processes."""
        return self.submit_within(None, function, *args, **kwargs)

    def submit_within(
        self, seconds: float | None, function: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Future[Any]:
        """The same, ended with ``TimeoutError`` if it takes longer than ``seconds``."""
        return self._threads.submit(self._run, seconds, function, args, kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the running calls finish, and end the processes."""
        self._threads.shutdown(wait=wait, cancel_futures=cancel_futures)
        if wait:
            with contextlib.suppress(queue.Empty):
                while True:
                    self._idle.get_nowait().dismiss()

    def _worker(self) -> _Worker:
        with contextlib.suppress(queue.Empty):
            return self._idle.get_nowait()
        worker = _Worker(self._memory_limit)
        worker.wait_until_ready()
        return worker

    def _run(self, seconds: float | None, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        data = pickle.dumps((function, args, kwargs))
        problem = BrokenExecutor("")
        for _ in range(_ATTEMPTS):
            try:
                worker = self._worker()
            except BrokenExecutor as error:
                problem = error
                continue
            begun = time.monotonic()
            try:
                value = worker.call(data, seconds)
            except queue.Empty:
                worker.kill()
                raise TimeoutError(f"took longer than {time.monotonic() - begun:.3g} s and was ended") from None
            except EOFError:
                problem = BrokenExecutor(f"its process died {_ATTEMPTS} times (exit code {worker.exit_code()})")
                worker.kill()
                continue
            except _Raised as raised:
                self._idle.put(worker)
                raise raised.error from None
            except BaseException:
                worker.kill()
                raise
            self._idle.put(worker)
            return value
        raise problem
