"""What all tests share: JAX in double precision, no silent mixing of dtypes, and an order that may be shuffled."""

import os
import random

import jax
import pytest


def pytest_configure() -> None:
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_numpy_dtype_promotion", "strict")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With SPINBOOK_SHUFFLE=SEED modules run in a random order, and so do the tests of each: none may need another."""
    if seed := os.environ.get("SPINBOOK_SHUFFLE"):
        rng = random.Random(seed)
        modules = sorted({str(item.path) for item in items})
        rng.shuffle(modules)
        place = {module: index for index, module in enumerate(modules)}
        rng.shuffle(items)
        items.sort(key=lambda item: place[str(item.path)])
