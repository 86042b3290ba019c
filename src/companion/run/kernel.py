"""Gives a page's kernel its environment, and holds what runs in it before, between and after the cells.

A page must not depend on the settings of whoever builds it, such as a MATPLOTLIBRC or JAX_ENABLE_X64: a variable that
is not listed here does not reach a page.
"""

from __future__ import annotations

import gc
import hashlib
import inspect
import json
import linecache
import os
import platform
import resource
import sys
import traceback
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

_PROGRAMS = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH")
_FOLDERS = ("HOME", "USER", "LOGNAME", "TMPDIR", "TEMP", "TMP", "XDG_CACHE_HOME", "MPLCONFIGDIR")
"""Variables that are passed on. Settings of matplotlib that are in MPLCONFIGDIR are not read."""
_FIXED = {
    "LC_ALL": "C.UTF-8",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "PYTHONUTF8": "1",
    "PYTHONHASHSEED": "0",
    "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    "JUPYTER_PREFER_ENV_PATH": "1",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.05",
}
"""Variables that have the same value wherever the book is built."""
_THREADS = ("OMP", "OPENBLAS", "MKL", "NUMEXPR")
"""Libraries whose threads are limited."""


def compiler() -> dict[str, str]:
    """Settings with which XLA compiles in half of the time: plain loops, in one piece, at LLVM's first level.

    A page compiles hundreds of small functions and runs most of them once. With plain loops LLVM's usual level takes
    1.3 seconds for each draw of random numbers, and the first level .06. Empty for versions of jaxlib whose flags are
    not known here, since a flag that XLA does not know ends the process.
    """
    try:
        known = metadata.version("jaxlib").startswith("0.10.")
    except metadata.PackageNotFoundError:
        known = False
    flags = ["cpu_use_fusion_emitters=false", "cpu_parallel_codegen_split_count=1", "backend_optimization_level=1"]
    return {"XLA_FLAGS": " ".join(f"--xla_{flag}" for flag in flags)} if known else {}


def clean() -> dict[str, str]:
    """The variables of this process that are allowed, those that are fixed, and those of the compiler."""
    return {name: os.environ[name] for name in (*_PROGRAMS, *_FOLDERS) if name in os.environ} | _FIXED | compiler()


def environment(root: Path, private: Path, threads: int) -> dict[str, str]:
    """The variables of a kernel; ``private`` is a folder for settings, in the place of those of the user."""
    (private / "matplotlibrc").touch()
    return {
        **clean(),
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "IPYTHONDIR": str(private / "ipython"),
        "MATPLOTLIBRC": str(private / "matplotlibrc"),
        **{f"JUPYTER_{kind}_DIR": str(private / "jupyter") for kind in ("CONFIG", "DATA", "RUNTIME")},
        "NUMBA_CACHE_DIR": str(private / "numba"),
        "JAX_COMPILATION_CACHE_DIR": str(compiled(root)),
        **{f"{library}_NUM_THREADS": str(threads) for library in _THREADS},
        "NPROC": str(threads),
    }


def compiled(root: Path) -> Path:
    """Where XLA keeps the programs that it compiled for a processor like this one."""
    described = Path("/proc/cpuinfo")
    lines = described.read_text(encoding="utf-8").splitlines() if described.exists() else []
    kind = f"{platform.machine()} {[line for line in lines if line.startswith('flags')][:1]}"
    return root / "_build" / "compiled" / hashlib.sha256(kind.encode()).hexdigest()[:16]


# What follows runs in the kernel: the engine asks for it by `call` between the cells of the page.


_last: Any = None
"""The result of the last cell."""


def call(function: str, *arguments: Any) -> str:
    """The expression that calls a function of this module in a kernel, and leaves no name on the page."""
    given = ", ".join(map(repr, arguments))
    return f"__import__({__name__!r}, fromlist=[{function!r}]).{function}({given})"


def begin() -> None:
    """Before the first cell: warnings are errors, and results are kept for claims."""
    from IPython import get_ipython

    # Not by PYTHONPATH, which cannot hold every name of a folder.
    sys.path.insert(0, str(Path(os.environ["COMPANION_ROOT"], "src")))
    # What a page holds is large, and Python would look through it for rubbish every few moments.
    gc.set_threshold(20_000, 20, 50)
    # A warning in a book is an error; what third parties deprecate among themselves is theirs.
    warnings.filterwarnings("error")
    for category in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
        warnings.filterwarnings("ignore", category=category)
    # Another process was still writing what this one wanted to load, which is then compiled here.
    warnings.filterwarnings("ignore", message="Error (reading|writing) persistent compilation cache entry")
    get_ipython().events.register("post_run_cell", _remember)


def _remember(result: Any) -> None:
    global _last
    _last = result.result


def hold(wanted: bool) -> None:
    """Let the figures of the cells to come stay open when the cell ends, also after ``plt.show()``, or no longer.

    Meanwhile pyplot does not draw them by itself: `take` does.
    """
    import matplotlib.pyplot as plt
    from matplotlib_inline.config import InlineBackend

    InlineBackend.instance().close_figures = not wanted
    plt.switch_backend(plt.get_backend())  # which makes pyplot interactive if it is the first time
    plt.interactive(not wanted)


def take(name: str) -> None:
    """Save and close the figure that the cell left open."""
    from companion import figures

    try:
        figures.take(name)
    finally:
        hold(False)


def claim(id: str) -> str:
    """Record what the last expression of a claim's cell measured; returns it in words."""
    from companion import claims

    noted = claims.note(Path(os.environ["COMPANION_OUT"]), id, claims.of_cell(id, _last))
    return f"Claim {id}: {claims.with_error(noted.value, noted.uncertainty)}"


def check(path: str, measures: Mapping[str, str], tests: Sequence[str]) -> None:
    """Call the checks of a page with its variables: record the ``measures`` (function -> claim), and run the ``tests``.

    Raises ``AssertionError`` that names every function that failed, with its line.
    """
    from IPython import get_ipython

    from companion import claims

    defined: dict[str, Any] = {"__name__": "checks"}
    exec(compile(Path(path).read_text(encoding="utf-8"), path, "exec"), defined)
    failed = []
    for name in [*measures, *tests]:
        try:
            result = _applied(defined[name], get_ipython().user_ns)
            if name in measures:
                if not isinstance(result, claims.Measurement):
                    raise TypeError(f"expected a Measurement, got {result!r}")
                claims.note(Path(os.environ["COMPANION_OUT"]), measures[name], result)
        except Exception as error:
            lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
            place = f"{Path(path).name}:{lines[-1]}: " if lines else ""
            said = str(error) or (linecache.getline(path, lines[-1] or 0).strip() if lines else "")
            failed.append(f"{place}{name}: {type(error).__name__}: {said}")
    if failed:
        raise AssertionError("; ".join(failed))


def _applied(function: Any, variables: Mapping[str, Any]) -> Any:
    """Call a function with the variables that its arguments name."""
    wanted = inspect.signature(function).parameters.values()
    if absent := [one.name for one in wanted if one.name not in variables and one.default is one.empty]:
        raise NameError(f"the page has no variable {', '.join(absent)}")
    return function(**{one.name: variables[one.name] for one in wanted if one.name in variables})


def facts() -> str:
    """Peak memory in bytes, and the versions of the packages that the kernel has loaded, as JSON."""
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    # ru_maxrss is in kilobytes on Linux and in bytes on macOS.
    peak = max(resource.getrusage(one).ru_maxrss for one in who) * (1 if sys.platform == "darwin" else 1024)
    versions = {}
    for name in sorted({name.partition(".")[0] for name in list(sys.modules)} - sys.stdlib_module_names):
        with suppress(metadata.PackageNotFoundError, ValueError):
            versions[name] = metadata.version(name)
    return json.dumps({"peak_bytes": peak, "packages": versions})
