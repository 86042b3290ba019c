"""Every test here derives a central result again without the library, in arithmetic of many digits, and is slow."""

import mpmath
import pytest


def pytest_collection_modifyitems(items):
    for item in items:
        if __package__ in str(item.module.__name__):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def fifty_digits():
    with mpmath.workdps(50):
        yield
