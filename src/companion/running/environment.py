"""What a chapter's kernel and the renderer get: environment variables, by an allow-list and fixed values; processors.

A page must not depend on the settings of whoever builds it, such as a MATPLOTLIBRC or JAX_ENABLE_X64. What is not
listed here does not reach a page.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import metadata

ALLOWED = (
    # Where programs, shared libraries and the user's folders are.
    "PATH",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "DYLD_FALLBACK_LIBRARY_PATH",
    "HOME",
    "USER",
    "LOGNAME",
    # Where temporary files and caches may be written. Settings of matplotlib that lie there are not read.
    "TMPDIR",
    "TEMP",
    "TMP",
    "XDG_CACHE_HOME",
    "MPLCONFIGDIR",
)
"""Variables that are passed on as they are."""

FIXED: Mapping[str, str] = {
    "LC_ALL": "C.UTF-8",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "PYTHONUTF8": "1",
    "PYTHONHASHSEED": "0",
    "PYDEVD_DISABLE_FILE_VALIDATION": "1",
}
"""Variables that have the same value wherever the book is built."""


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
    return {name: os.environ[name] for name in ALLOWED if name in os.environ} | dict(FIXED) | compiler()


def processors() -> list[int]:
    """The processors that this process may use."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
