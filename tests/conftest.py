"""What all tests share: double precision in JAX, no silent mixing of dtypes, annotations that may be checked, orders.

With ``SPINBOOK_TYPES=1`` every function of the package is wrapped by jaxtyping and beartype while it is imported, and a
call whose arguments or result are not what its annotations say fails. What a test expects to be refused goes through
unwrapped: there the library's own words are wanted. With ``SPINBOOK_SHUFFLE=SEED`` the order is shuffled.
"""

import os
import random
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Modules run in a random order, and so do the tests of each, if that is asked for: none may need another."""
    if seed := os.environ.get("SPINBOOK_SHUFFLE"):
        rng = random.Random(seed)
        modules = sorted({str(item.path) for item in items})
        rng.shuffle(modules)
        place = {module: index for index, module in enumerate(modules)}
        rng.shuffle(items)
        items.sort(key=lambda item: place[str(item.path)])
