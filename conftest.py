"""What all tests share: strict double precision in JAX, functions compiled once, annotations to check.

With ``SPINBOOK_TYPES=1`` every function of the package is wrapped by jaxtyping and beartype while it is imported, and a
call whose arguments or result are not what its annotations say fails. What a test expects to be refused goes through
unwrapped: there the library's own words are wanted.
"""

import gc
import inspect
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jaxtyping
import pytest

import chapters
import companion
import experiments
import spinbook
from companion.run import kernel

pytest_plugins = ["tests.press.toybook"]

# Before PyTorch is imported. A second thread that waits for work does so at full speed, and the other core is that of
# the other worker.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

CHECKED = bool(os.environ.get("SPINBOOK_TYPES"))
_COMPILED = "JAX_COMPILATION_CACHE_DIR"
_KNOWS_IT = bool(kernel.compiler())


@contextmanager
def _unchecked() -> Iterator[None]:
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)


def pytest_configure(config: pytest.Config) -> None:
    for package in (companion, spinbook, experiments, chapters):
        if not Path(str(package.__file__)).resolve().is_relative_to(config.rootpath.resolve()):
            # As in a copied folder, whose environment still leads to the folder that it was copied from.
            raise pytest.UsageError(f"{package.__name__}: expected that of {config.rootpath}, got {package.__file__}")
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_numpy_dtype_promotion", "strict")
    # Tests compile thousands of functions and run most of them once: compiling them quickly saves more than it costs.
    jax.config.update("jax_disable_most_optimizations", True)
    if _KNOWS_IT:
        # A test waits for every result: to hand each operation to another thread and back only costs.
        jax.config.update("jax_cpu_enable_async_dispatch", False)
        # Nothing is compiled yet; workers, and the processes that tests start, get it from the environment.
        # Of two settings of one flag the last one holds.
        os.environ["XLA_FLAGS"] = " ".join([*kernel.compiler().values(), os.environ.get("XLA_FLAGS", "")])
    _share_compiled_functions(config)
    if CHECKED:
        _check_annotations()


def _share_compiled_functions(config: pytest.Config) -> None:
    """What one process compiles, the others load: workers and the kernels that they start, which are given the folder.

    The folder lives as long as the run. Whoever names one in the environment keeps it from run to run.
    """
    if _COMPILED not in os.environ:
        os.environ[_COMPILED] = tempfile.mkdtemp(prefix="compiled-")

        def forget() -> None:
            shutil.rmtree(os.environ.pop(_COMPILED), ignore_errors=True)

        config.add_cleanup(forget)
    # To keep a small program costs more than to compile it again.
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.5"
    jax.config.update("jax_compilation_cache_dir", os.environ[_COMPILED])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)


def _check_annotations() -> None:
    jaxtyping.install_import_hook(["spinbook", "experiments", "chapters"], "beartype.beartype")
    raises = pytest.raises

    @contextmanager
    def unchecked_raises(*args: Any, **kwargs: Any) -> Iterator[Any]:
        with raises(*args, **kwargs) as caught, _unchecked():
            yield caught

    pytest.raises = unchecked_raises
    _compile_functions_as_they_were_written()


def _compile_functions_as_they_were_written() -> None:
    """numba reads the code of a function, which that of its wrapper is not."""
    import numba

    njit = numba.njit

    def unwrapped(*functions: Any, **options: Any) -> Any:
        if functions:
            return njit(*map(inspect.unwrap, functions), **options)
        compiled = njit(**options)
        return lambda function: compiled(inspect.unwrap(function))

    numba.njit = unwrapped


_CROWDED = 20_000
_checked_at = 0.0


def pytest_runtest_teardown() -> None:
    """Close figures, which other tests count, and forget compiled functions before they fill the table of memory maps.

    Each compiled function holds some maps of the process; Linux allows 65,530, and beyond them compiled code can only
    crash. Counting them takes milliseconds, so it is done every two seconds.
    """
    global _checked_at
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
    maps = Path("/proc/self/maps")
    if time.monotonic() - _checked_at < 2 or not maps.exists():
        return
    _checked_at = time.monotonic()
    if maps.read_bytes().count(b"\n") > _CROWDED:
        jax.clear_caches()
        gc.collect()


def pytest_collection_finish() -> None:
    """What is loaded by now stays: to look through it for rubbish again and again takes a tenth of the time."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


_ROOM = re.compile(r"^(?:(?:src|tests)/|(?:from|import) )(?:benchmarks|chapters|experiments|policy)\b", re.MULTILINE)


@cache
def _tests_a_room(path: Path, root: Path) -> bool:
    """Whether a file is of the code beside the library, or imports it: its networks add biases to rows."""
    return _ROOM.search(f"{path.relative_to(root).as_posix()}\n{path.read_text('utf-8')}") is not None


def pytest_runtest_setup(item: pytest.Item) -> None:
    strict = not _tests_a_room(item.path, item.config.rootpath)
    jax.config.update("jax_numpy_rank_promotion", "raise" if strict else "allow")
    jax.config.update("jax_debug_nans", strict and not item.get_closest_marker("documented_nan"))


@pytest.fixture
def optimised() -> Iterator[dict[str, bool]]:
    """For a test that computes longer than it compiles, or of what the compiler makes of the code.

    The latter passes what it is given to `jax.jit` as `compiler_options`, and has the compiler that a reader has.
    """
    jax.config.update("jax_disable_most_optimizations", False)
    usual = {"xla_cpu_use_fusion_emitters": True, "xla_backend_optimization_level": 3}
    yield usual if _KNOWS_IT else {}
    jax.config.update("jax_disable_most_optimizations", True)


@pytest.fixture
def unchecked() -> Iterator[None]:
    """Calls with arguments that no annotation allows."""
    with _unchecked():
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests begin before all others, so that no worker is left alone with one of them at the end."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)
