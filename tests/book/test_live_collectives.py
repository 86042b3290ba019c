"""The live model of collectives: mean spins and induced terms of a sum over states; it answers keys and buttons."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np

from chapters.live import collectives as live
from tests.book.live import Model, Opening

MODEL = Model(
    "collectives",
    lambda: live.markup(beta=1.0, coupling=0.6),
    {"fields": live.FIELDS.tolist(), "scores": live.SCORES.tolist()},
    lambda: Opening(["coupling 0.60", "β 1.00"], ["Each of them depends on all three fields."], handles=3),
    lambda: [
        ("press(0, 'ArrowLeft', true)",),
        ("slide(0, 0)", "follows its own field alone"),
        ("click(0)", "The longest response"),
    ],
)

ANGLES = 2 * np.pi * np.arange(24) / 24
CIRCLE = np.sqrt(2) * np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=-1)
SPINS = np.array(list(product(CIRCLE, repeat=3)))


def log_sum(J, h, beta):
    """ln Z / beta of three spins in the plane, but for a constant."""
    minus_energy = jnp.einsum("ij,kia,kja->k", J, SPINS, SPINS) + jnp.einsum("ia,kia->k", h, SPINS)
    return jax.nn.logsumexp(beta * minus_energy) / beta


def test_mean_spins_and_induced_terms_are_those_of_a_sum_over_states(each):
    rng = np.random.default_rng(3)
    cases = [
        {
            "fields": rng.normal(size=(3, 2)).tolist(),
            "beta": beta,
            "coupling": coupling,
            "reads": reads,
            "scores": rng.normal(size=(2, 2)).tolist(),
        }
        for beta, coupling, reads in [(0.1, 0.0, False), (0.7, 0.5, False), (1.0, 0.6, True), (2.0, 1.0, True)]
    ]
    for case, answer in zip(cases, each(cases, "m.response(c.fields, c)"), strict=True):
        h, scores, coupling = np.array(case["fields"]), np.array(case["scores"]), case["coupling"]

        def couplings(h, reads=case["reads"], scores=scores, coupling=coupling):
            read = jax.nn.softmax(h @ scores @ h.T, axis=1)
            return coupling * (read if reads else (1 - jnp.eye(3)) / 2)

        # The slope by the fields, and by those that the couplings read.
        slopes = jax.grad(lambda h, read, c=case: log_sum(couplings(read), h, c["beta"]), argnums=(0, 1))
        means, induced = slopes(jnp.asarray(h), jnp.asarray(h))
        assert np.abs(np.array(answer["means"], float) - means).max() < 1e-12
        assert np.abs(np.array(answer["induced"], float) - induced).max() < 1e-12
        assert np.abs(np.array(answer["response"], float) - means - induced).max() < 1e-12


def test_the_still_picture_ends_its_arrows_at_the_mean_spins_of_the_library():
    (ax,) = live.still(beta=1.0, coupling=0.6).axes
    means = jax.grad(log_sum, argnums=1)(0.6 * (1 - np.eye(3)) / 2, live.FIELDS, 1.0)
    ends = np.array([text.xy for text in ax.texts]).reshape(3, 2, 2)
    sites = np.array(live.SITES)
    assert np.allclose(ends[:, 0], sites + live.SCALE * live.FIELDS)
    assert np.allclose(ends[:, 1], sites + live.SCALE * np.asarray(means), atol=1e-6)
