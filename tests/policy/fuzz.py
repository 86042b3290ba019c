"""Bad inputs for good arguments, and the verdict on what a function makes of them.

``python -m tests.policy.fuzz 1 MODULE...`` spoils every argument of every function of a module in every way, each in
turn (with another number N, every Nth of them), and prints one line of JSON for each: what the tests sample, in full.
A call that takes more than ``PATIENCE`` seconds counts as hung, and the rest goes on in a new process.
"""

from __future__ import annotations

import faulthandler
import json
import re
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.policy.registry import CASES, Case, Opaque

# Seconds of the processor, since seconds of the clock say nothing on a busy machine.
PATIENCE = 30

FINITE, CLEAR, UNCONVERGED, DOCUMENTED = "finite", "clear error", "not converged", "documented"
UNCLEAR, SILENT, HUNG = "unclear error", "silent", "hung"
ALLOWED = (FINITE, CLEAR, UNCONVERGED, DOCUMENTED)

TRACED = "traced"


def _numbers(value: Any) -> dict[str, Callable[[], Any]]:
    good = np.asarray(value, np.float64)
    signs = np.where(good < 0, -1.0, 1.0)

    def filled(number: float, dtype: Any = np.float64) -> Callable[[], Any]:
        return lambda: (signs * number).astype(dtype)

    def first(number: float) -> Callable[[], Any]:
        def make() -> Any:
            bad = np.atleast_1d(good).copy()
            bad.flat[0] = number
            return bad.reshape(good.shape)

        return make

    return {
        "nan": first(np.nan),
        "inf": first(np.inf),
        "huge": filled(1e300),
        "one huge": first(1e300),
        "huge float32": filled(3e38, np.float32),
        "large float32": filled(1e19, np.float32),
        "huge float16": filled(6e4, np.float16),
        "large float16": filled(300, np.float16),
        "tiny": filled(1e-300),
        "tiny float32": filled(1e-38, np.float32),
        "zero": lambda: np.zeros_like(good),
        "negative": lambda: -np.abs(good) - 1,
        "empty": lambda: np.zeros((0,) * max(good.ndim, 1)),
        "more axes": lambda: good[..., None, None, None],
        "fewer axes": lambda: np.ones(()) if good.ndim else np.ones(2),
        "too long": lambda: np.concatenate([np.atleast_1d(good)] * 2),
        "ragged": lambda: [[1.0], [1.0, 2.0]],
        "string": lambda: "word",
        "strings": lambda: np.full(good.shape, "word"),
        "None": lambda: None,
        "complex": lambda: good + 1j,
        "datetime": lambda: np.full(good.shape, "2020-01-01", "datetime64[D]"),
        "timedelta": lambda: np.full(good.shape, 1, "timedelta64[s]"),
        "masked": lambda: np.ma.masked_array(good, mask=np.ones(good.shape, bool)),
        "masked, nothing": lambda: np.ma.masked_array(good, mask=np.zeros(good.shape, bool)),
        "object": lambda: np.full(good.shape, object()),
        "bool": lambda: np.ones(good.shape, bool),
        "integers": lambda: np.ones(good.shape, np.int64),
        "float16": lambda: good.astype(np.float16),
        "float32": lambda: good.astype(np.float32),
        "long double": lambda: good.astype(np.longdouble),
        "big endian": lambda: good.astype(">f8"),
        "list": lambda: good.tolist(),
        "dictionary": lambda: {"a": 1.0},
        TRACED: lambda: TRACED,
        **({"too wide": lambda: np.concatenate([good] * 2, axis=-1)} if good.ndim > 1 else {}),
    }


_COUNTS: dict[str, Callable[[], Any]] = {
    "negative": lambda: -1,
    "zero": lambda: 0,
    "one": lambda: 1,
    "fraction": lambda: 2.5,
    "float": lambda: 2.0,
    "None": lambda: None,
    "string": lambda: "3",
    "nan": lambda: float("nan"),
    "huge": lambda: 10**15,
    "beyond": lambda: 10**30,
    "complex": lambda: 3 + 1j,
    "list": lambda: [3],
    "array": lambda: np.array([3, 4]),
    "datetime": lambda: np.datetime64("2020-01-01"),
    "masked": lambda: np.ma.masked,
    "bool": lambda: True,
    TRACED: lambda: TRACED,
}

_KEYS: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "number": lambda: 0,
    "string": lambda: "key",
    "floats": lambda: np.zeros(2),
    "several": lambda: jax.random.split(jax.random.key(0), 3),
    "old style": lambda: jax.random.PRNGKey(0),
}

_TEXTS: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "number": lambda: 1,
    "unknown": lambda: "no such name",
    "empty": lambda: "",
    "bytes": lambda: b"word",
    "list": lambda: ["word"],
    "array": lambda: np.ones(2),
}

_NETWORKS: dict[str, Callable[[], Any]] = {"None": lambda: None, "string": lambda: "network", "number": lambda: 3}


def spoilt(name: str, value: Any) -> dict[str, Callable[[], Any]]:
    """What to put in the place of a good argument, by label; nothing for one that is not data."""
    if isinstance(value, Opaque):
        return {"key": _KEYS, "network": _NETWORKS}.get(name, {})
    if isinstance(value, str):
        return _TEXTS
    if isinstance(value, int):
        return _COUNTS
    return _numbers(value)


def choices(case: Case) -> list[tuple[str, str]]:
    """All pairs of an argument and a way to spoil it."""
    return [(name, label) for name, value in case.arguments.items() for label in spoilt(name, value)]


def good(case: Case) -> dict[str, Any]:
    return {name: value.make() if isinstance(value, Opaque) else value for name, value in case.arguments.items()}


def leaves(result: Any) -> list[np.ndarray]:
    """All floating numbers in a result, those of the properties that are computed when asked for left out."""
    if isinstance(result, dict):
        return [leaf for value in result.values() for leaf in leaves(value)]
    if hasattr(result, "data_vars"):
        return [leaf for value in result.data_vars.values() for leaf in leaves(value.values)]
    arrays = []
    for leaf in jax.tree.leaves(result):
        if isinstance(leaf, str | bytes | type(None)) or callable(leaf):
            continue
        try:
            array = np.asarray(leaf.detach() if hasattr(leaf, "detach") else leaf)
        except Exception:
            continue
        if array.dtype.kind == "f" or str(array.dtype) == "bfloat16":
            arrays.append(array.astype(np.float64))
    return arrays


def _says_not_converged(result: Any) -> bool:
    evidence = getattr(result, "converged", None)
    return evidence is not None and not bool(np.all(np.asarray(evidence)))


_CLEAR = re.compile(r"^[A-Za-z_][\w.]*(, \w+)*: expected .*, got .*", re.DOTALL)


def verdict(case: Case, call: Callable[[], Any]) -> tuple[str, str]:
    """What became of a call, and the words for it."""
    from spinbook.entropy_production import NotSteadyWarning

    # The signal ends the process, in the middle of compiled code too, after the traceback.
    faulthandler.register(signal.SIGPROF, chain=True)
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", NotSteadyWarning)
            result = call()
            finite = all(np.isfinite(leaf).all() for leaf in leaves(result))
    except ValueError as error:
        return (CLEAR if _CLEAR.match(str(error)) else UNCLEAR), f"{type(error).__name__}: {error}"
    except (RuntimeError, ArithmeticError) as error:
        says = any(words in str(error) for words in ("converge", "expected different starts", "saddle point within"))
        return (UNCONVERGED if says else UNCLEAR), f"{type(error).__name__}: {error}"
    except Exception as error:
        return UNCLEAR, f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    if finite:
        return FINITE, ""
    if _says_not_converged(result):
        return UNCONVERGED, ""
    return (DOCUMENTED, case.documented) if case.documented else (SILENT, "NaN or infinity")


def _traced(case: Case, arguments: dict[str, Any], name: str) -> Callable[[], Any]:
    """The call while JAX traces the argument, which shows its shape and hides its values. Nothing is compiled."""
    value = np.asarray(arguments[name])

    def call() -> Any:
        jax.eval_shape(lambda x: _without_objects(case.function(**{**arguments, name: x})), jnp.asarray(value))
        return None

    return call


def _without_objects(result: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf if isinstance(leaf, jax.Array) else None, result)


def judge(case: Case, name: str, label: str, *, replacement: Any = None) -> tuple[str, str]:
    """The verdict on the function with one argument spoilt in one way, or replaced by what is given."""
    arguments = good(case)
    if label == TRACED:
        return verdict(case, _traced(case, arguments, name))
    bad = spoilt(name, case.arguments[name])[label]() if replacement is None else replacement
    return verdict(case, lambda: case.function(**{**arguments, name: bad}))


def _jobs(names: list[str], every: int) -> list[tuple[str, str, str]]:
    return [(name, *choice) for name in names for choice in choices(CASES[name])][::every]


def _one_by_one(names: list[str], every: int, done: int) -> None:
    jobs = _jobs(names, every)
    for index, (name, argument, label) in enumerate(jobs):
        if index < done:
            continue
        print(json.dumps({"index": index, "name": name, "argument": argument, "label": label}), flush=True)
        kind, words = judge(CASES[name], argument, label)
        print(json.dumps({"index": index, "verdict": kind, "words": words[:300]}), flush=True)


def main(every: int, modules: list[str]) -> None:
    """All of it, or one call of so many, in processes that are replaced when they hang."""
    for module in modules:
        names = [name for name in CASES if name.startswith(module)]
        done, total = 0, len(_jobs(names, every))
        while done < total:
            command = [sys.executable, "-m", "tests.policy.fuzz", "--worker", str(every), str(done), *names]
            started: dict[int, Any] = {}
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
                assert process.stdout is not None
                for line in process.stdout:
                    row = json.loads(line)
                    started.setdefault(row["index"], {}).update(row)
                    if "verdict" in row:
                        print(json.dumps(started.pop(row["index"])), flush=True)
                        done = row["index"] + 1
            for row in started.values():
                print(json.dumps({**row, "verdict": HUNG}), flush=True)
                done = row["index"] + 1
            if not started and done < total:
                raise SystemExit(f"the worker ended before it began, at {done} of {total} of {module}")


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_numpy_dtype_promotion", "strict")
    if sys.argv[1:2] == ["--worker"]:
        _one_by_one(sys.argv[4:], int(sys.argv[2]), int(sys.argv[3]))
    else:
        main(int(sys.argv[1]), sys.argv[2:])
