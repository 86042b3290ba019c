"""What tests of experiments share: the precision of the runs."""

from collections.abc import Iterator

import jax
import pytest

from spinbook.precision import enable_x64


@pytest.fixture
def single() -> Iterator[None]:
    """As the runs are."""
    with enable_x64(False), jax.numpy_dtype_promotion("standard"):
        yield
