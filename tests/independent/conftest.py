"""Every test here derives a central result again without the library, in arithmetic of many digits, and is slow."""

from pathlib import Path

import mpmath
import pytest


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def fifty_digits():
    with mpmath.workdps(50):
        yield
