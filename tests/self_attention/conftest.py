"""Networks that these tests share, and what the authors' program prints."""

import json
from pathlib import Path

import numpy as np
import pytest

from spinbook.self_attention import Network, paper_network


@pytest.fixture(scope="session")
def paper() -> Network:
    return paper_network()


@pytest.fixture(scope="session")
def other() -> Network:
    """Nothing is as in the paper: 2 features, segments of unequal size, 3 tokens, 8 positions."""
    rng = np.random.default_rng(6)
    return Network(
        rng.choice([-1, 1], (4, 2, 5)),
        rng.choice([-1, 1], (4, 2, 3)),
        context=3,
        epsilon=0.1,
        gamma=9.0,
        segment_weights=[1.0, 2.0, 0.5, 3.0, 1.5],
    )


@pytest.fixture(scope="session")
def authors() -> dict:
    """See `what` and `recipe` in the file."""
    return json.loads((Path(__file__).parent / "data" / "authors_first_steps.json").read_text(encoding="utf-8"))
