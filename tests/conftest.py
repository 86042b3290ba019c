"""What all tests share: JAX in double precision, no silent mixing of dtypes, and annotations that are checked.

With ``SPINBOOK_TYPES=1`` every function of the package is wrapped by jaxtyping and beartype while it is imported, and a
call whose arguments or result are not what its annotations say fails. What a test expects to be refused goes through
unwrapped: there the library's own words are wanted.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jaxtyping
import pytest

CHECKED = bool(os.environ.get("SPINBOOK_TYPES"))


@contextmanager
def _unchecked() -> Iterator[None]:
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)


def pytest_configure() -> None:
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_numpy_dtype_promotion", "strict")
    if not CHECKED:
        return
    jaxtyping.install_import_hook("spinbook", "beartype.beartype")
    raises = pytest.raises

    @contextmanager
    def unchecked_raises(*args: Any, **kwargs: Any) -> Iterator[Any]:
        with raises(*args, **kwargs) as caught, _unchecked():
            yield caught

    pytest.raises = unchecked_raises


@pytest.fixture
def unchecked() -> Iterator[None]:
    """Calls with arguments that no annotation allows."""
    with _unchecked():
        yield
