"""Bad input is what no annotation allows: it goes through unchecked."""

import pytest


@pytest.fixture(autouse=True)
def _bad_input_is_wanted(unchecked):
    return unchecked
