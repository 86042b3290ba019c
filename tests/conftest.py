"""What all tests share: JAX in double precision and strict about dtypes, and functions that are compiled once."""

import os
import shutil
import tempfile
from collections.abc import Iterator

import jax
import pytest

pytest_plugins = ["tests.budget"]

_COMPILED = "JAX_COMPILATION_CACHE_DIR"


def pytest_configure(config: pytest.Config) -> None:
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_numpy_dtype_promotion", "strict")
    # Tests compile thousands of functions and run most of them once: compiling them quickly saves more than it costs.
    jax.config.update("jax_disable_most_optimizations", True)
    _share_compiled_functions(config)


def _share_compiled_functions(config: pytest.Config) -> None:
    """What one process compiles, the others load: workers and the kernels that they start, which inherit the folder.

    The folder lives as long as the run. Whoever names one in the environment keeps it from run to run.
    """
    if _COMPILED not in os.environ:
        os.environ[_COMPILED] = tempfile.mkdtemp(prefix="compiled-")

        def forget() -> None:
            shutil.rmtree(os.environ.pop(_COMPILED), ignore_errors=True)

        config.add_cleanup(forget)
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    jax.config.update("jax_compilation_cache_dir", os.environ[_COMPILED])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


@pytest.fixture
def optimised() -> Iterator[None]:
    """For a test that computes longer than it compiles, or of what the compiler makes of the code."""
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", True)
