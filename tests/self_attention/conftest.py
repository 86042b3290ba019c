"""These tests compile many small functions and run each once: compiling them quickly saves time."""

import json
from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np
import pytest

from spinbook.self_attention import Network, paper_network


@pytest.fixture(autouse=True, scope="package")
def _compile_quickly() -> Iterator[None]:
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


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
