"""Priors of a hidden unit: the name and range of their parameter, and the inputs t for which E[exp(t h)] is finite.

``cumulant_generating_functions``, ``hidden_sum`` and ``hidden_given_visible`` compute with them, each in its own way
and without common arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from spinbook import validate

__all__ = ["BERNOULLI", "CONSTANT", "EXPONENTIAL", "LAPLACE", "POISSON", "HiddenPrior"]


class HiddenPrior(NamedTuple):
    """A family of priors: its ``name`` with an article, its ``parameter``, the check of its values, and its ``domain``.

    ``inside(t, value)`` says whether E[e^{t h}] exists; None if it always does.
    """

    name: str
    parameter: str
    check: Callable[[Any, str], Array]
    domain: str = "any t"
    inside: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None

    def checked(self, value: Any) -> Array:
        """Values of the parameter, a number or one for each hidden unit; ``ValueError`` if they are not allowed.

        >>> POISSON.checked(2.0).tolist()
        2.0
        """
        return self.check(value, self.parameter)

    def arguments(self, t: Any, values: Array, beyond: str = "") -> tuple[Array, Array]:
        """Inputs t and the ``values`` that go with them; ``ValueError`` says what is true ``beyond`` the domain.

        >>> [x.tolist() for x in EXPONENTIAL.arguments([0.5, 1.0], EXPONENTIAL.checked(2.0), "the sum diverges")]
        [[0.5, 1.0], 2.0]
        """
        t = validate.finite(t, "t")
        validate.broadcastable(values, self.parameter, t.shape)
        values = values.astype(t.dtype)
        if values.ndim:
            values = jnp.expand_dims(values, tuple(range(t.ndim - values.ndim)))
        if self.inside is not None:
            validate.require(self.inside, t, "t", f"{self.domain} (beyond, {beyond})", (values,))
        return t, values


BERNOULLI = HiddenPrior("a Bernoulli prior", "probability", validate.probability)
POISSON = HiddenPrior("a Poisson prior", "rate", validate.positive)
EXPONENTIAL = HiddenPrior("an exponential prior", "rate", validate.positive, "t < rate", np.less)
LAPLACE = HiddenPrior(
    "a Laplace prior", "scale", validate.positive, "|t| < 1 / scale", lambda t, scale: np.abs(t) * scale < 1
)
CONSTANT = HiddenPrior("a constant", "value", validate.finite)
