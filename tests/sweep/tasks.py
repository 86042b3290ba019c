"""What the workers of these tests compute: functions of a module, as other processes need them."""

import os
import signal
import time
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


class Task(NamedTuple):
    """A seed, a pause, a place to note that it was begun, and what is to happen."""

    seed: int
    seconds: float = 0.0
    log: str = ""
    fate: str = ""


def draw(task):
    """Numbers that follow from the seed, by NumPy and by JAX, whatever happens on the way."""
    if task.log:
        with Path(task.log).open("a") as file:
            file.write(f"{task.seed} {os.getpid()}\n")
    time.sleep(task.seconds)
    if task.fate == "raise":
        raise ZeroDivisionError(f"seed {task.seed}")
    if task.fate == "hang":
        time.sleep(600)
    if task.fate == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if task.fate == "eat":
        # More than the limit of the tests, 8 GiB, and not more than there is: without the limit it would be given.
        return {"x": np.empty(9 * 2**27).size}
    if task.fate == "exit":
        raise SystemExit(3)
    noise = np.random.default_rng(task.seed).normal(size=50)
    return {
        "numpy": np.cumsum(noise),
        "jax": jnp.sin(jnp.asarray(noise)) + jax.random.normal(jax.random.key(task.seed), (50,)),
        "python": task.seed,
    }


def begun(log):
    """How often each seed was begun, in order."""
    return [int(line.split()[0]) for line in Path(log).read_text().splitlines()] if Path(log).exists() else []


def assert_same_bits(ours, expected):
    for mine, theirs in zip(ours, expected, strict=True):
        assert list(mine) == list(theirs)
        for name in mine:
            assert mine[name].dtype == theirs[name].dtype
            assert mine[name].tobytes() == theirs[name].tobytes()


def _refuse():
    raise TypeError("this cannot be read")


class Trap:
    """Written, and not read again."""

    def __reduce__(self):
        return _refuse, ()


class Unreadable(Exception):
    """An exception that can be written but not read again, even where a library mends how exceptions are read."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")
        self.trap = Trap()


def fail_unreadably(task):
    raise Unreadable(task, "more")
