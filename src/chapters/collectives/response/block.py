"""The output of a spin-transformer module as a sum of the terms of a transformer block."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from spinbook.annotations import ArrayLike, Bool, Float
from spinbook.spin_transformer import SpinTransformerModule, one_sphere

__all__ = ["BlockTerms", "of_module"]


class BlockTerms(NamedTuple):
    """theta_i = ``residual``_i + ``token_mixing``_i + ``channel_mixing``_i, and the output m_i = ``gain``_i theta_i.

    The three are effective fields (N, D): the input, the field of the neighbours through the couplings, and the rest,
    the Onsager reaction. ``gain`` (N, 1) is a number for each site, the normalisation.
    """

    residual: Float[Array, "N D"]
    token_mixing: Float[Array, "N D"]
    channel_mixing: Float[Array, "N D"]
    gain: Float[Array, "N 1"]

    @property
    def output(self) -> Float[Array, "N D"]:
        """m = gain (residual + token_mixing + channel_mixing).

        >>> one = jnp.ones((2, 3))
        >>> BlockTerms(one, one, one, jnp.full((2, 1), 0.5)).output[0].tolist()
        [1.5, 1.5, 1.5]
        """
        return self.gain * (self.residual + self.token_mixing + self.channel_mixing)


def of_module(
    module: SpinTransformerModule, x: Float[ArrayLike, "N D"], mask: Bool[ArrayLike, "N N"] | None = None
) -> BlockTerms:
    """m_i = g_i (x_i + sum_j J_ij m_j + the rest), for the output m of a ``module`` with one spin for each site.

    g_i follows from |m_i| alone, x_i is the input as a field (scaled to the radius, unless the module has other
    ``inputs``), J the module's softmax couplings; the third term is the difference. In a steady state it is the field
    of the feed-forward network, if the module has one, and with TAP the Onsager field; otherwise it vanishes.
    NaN where the module did not converge. Raises ``ValueError`` for a module with several spins for a site, and as the
    module does. Source: Bal (2021), Collectives, section "recognizing the transformer module".

    >>> import jax
    >>> module = SpinTransformerModule(8, key=jax.random.key(0))
    >>> of_module(module, jax.random.normal(jax.random.key(1), (5, 8))).gain.shape
    (5, 1)
    """
    if module.spheres(module.num_heads) != 1:
        raise ValueError(f"module: expected one spin for each site ({one_sphere.__name__}), got {module.spheres}")
    m = module(x, mask)
    J = module.couplings(x, mask)
    n, d = m.shape
    inputs = module.input_fields(x, mask)
    slices = m.reshape(n, len(J), d // len(J))
    mixing = jnp.einsum("hij,jha->iha", J, slices).reshape(n, d)
    beta = jnp.asarray(module.beta, m.dtype)
    inverse_gain = module.response.inverse_gain(jnp.sum(m * m, axis=-1, keepdims=True), d, beta)
    return BlockTerms(inputs, mixing, inverse_gain * m - inputs - mixing, 1 / inverse_gain)
