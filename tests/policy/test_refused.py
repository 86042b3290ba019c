"""Arguments that do not fit together, and numbers from which a wrong result could be computed in silence."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from spinbook import entropy_production as ep
from spinbook import fixed_point, lyapunov, sphere, spin_transformer
from spinbook import self_attention as sa
from spinbook.adaptive_tap import attention, couplings, ising, priors, vector
from spinbook.free_energy import QueryKeyCouplings, VectorSpinModel, sampling
from spinbook.ising import exact, stochastic
from spinbook.ising import sherrington_kirkpatrick as sk
from spinbook.rbm import effective_energy
from spinbook.spin_transformer import SpinTransformer, SpinTransformerModule
from spinbook.vector import mean_field

KEY = jax.random.key(0)
DIRECTED = [[0.0, 1.0], [0.5, 0.0]]
BLOCKS = torch.zeros(4, 4, 3, 3, dtype=torch.float64)
ONE_WAY, OWN = BLOCKS.clone(), BLOCKS.clone()
ONE_WAY[0, 1], OWN[1, 1, 0, 0] = 1.0, 0.3
X, H = torch.ones(2, 4, 3, dtype=torch.float64), torch.ones(4, 2, 3, dtype=torch.float64)
FIVE, FIVE_SITES, W, ONE, TWO = np.zeros((5, 5)), np.zeros((5, 6)), np.full((4, 3), 9.0), np.ones(4), np.ones((2, 4))
PAPER = sa.paper_network()


def _module(dim=16, num_heads=1, **options):
    plain = {"theory": spin_transformer.naive, "dynamics": spin_transformer.Unroll(2)}
    return SpinTransformerModule(dim, num_heads, key=KEY, **plain | options)


def _drawn(couplings, **options):
    start, field = torch.eye(2, 3).double(), H[0]
    return sampling.simulate(start, couplings, field, generator=torch.Generator(), **{"steps": 1} | options)


CASES = [
    ("couplings", lambda: ising.solve_ising(np.triu(np.ones((4, 4)), 1), 0)),
    ("fields", lambda: ising.solve_ising(np.zeros((2, 3, 3)), np.zeros((5, 3)))),
    ("couplings", lambda: attention.AdaptiveTAPAttention(4, 3, ONE_WAY)),
    ("couplings", lambda: attention.AdaptiveTAPAttention(4, 3, 9 * couplings.symmetrize(ONE_WAY))),
    ("x", lambda: attention.MeanFieldAttention(4, 3, BLOCKS)(X[..., :2])),
    ("num_heads", lambda: attention.SoftmaxCouplings(4, 3)),
    ("covariance", lambda: priors.Gaussian([[1.0, 2.0], [2.0, 1.0]])),
    ("covariance", lambda: priors.Gaussian([[1.0, 0.5], [0.0, 1.0]])),
    ("couplings", lambda: vector.solve_gaussian(OWN, X)),
    ("couplings", lambda: vector.solve(ONE_WAY, X, priors.Binary())),
    ("correlations", lambda: QueryKeyCouplings(2, 3).channel_mixing(H, torch.ones(3, 3))),
    ("t0", lambda: VectorSpinModel(2, 3).free_energy(H, t0=[-1.0])),
    ("couplings", lambda: VectorSpinModel(2, 3, 1.0, DIRECTED)),
    ("beta", lambda: VectorSpinModel(2, 3, 0.0)),
    ("couplings", lambda: VectorSpinModel(2, 3, 1.0, lambda h: 1 + 0 * h @ h.mT).free_energy(H)),
    ("couplings", lambda: _drawn(DIRECTED)),
    ("beta", lambda: _drawn(np.zeros((2, 2)), beta=-1.0)),
    ("cumulant_generating_function", lambda: effective_energy(ONE, W, jnp.sum)),
    ("num_spins", lambda: exact.states(15)),
    ("fields", lambda: stochastic.step(KEY, TWO[:, :2], np.zeros((2, 2)), np.zeros((3, 2)), beta=1.0)),
    ("coupling_mean", lambda: sk.critical_beta(field_width=1.0, coupling_mean=1.0, coupling_std=0.1)),
    ("dim", lambda: sphere.radius(2)),
    ("couplings", lambda: mean_field.tap_step(FIVE_SITES[:, :4], np.zeros((3, 5, 5)), FIVE_SITES[:, :4], beta=1.0)),
    ("magnetizations", lambda: mean_field.tap_step(1 + FIVE_SITES, FIVE, FIVE_SITES, beta=1.0)),
    ("fields", lambda: mean_field.tap_step(np.zeros((2, 5, 6)), FIVE, np.ones((3, 5, 6)), beta=1.0)),
    ("previous_fields", lambda: ep.vector_mean_field(np.zeros((2, 2)), TWO, np.ones((2, 5)), beta=1.0)),
    ("network", lambda: sa.bifurcation([], [1.0], steps=100, transient=0)),
    ("attention", lambda: sa.attention_window(PAPER, np.zeros((5, 3)))),
    ("num_spins", lambda: sa.sample_finite(KEY, PAPER, beta=1.0, num_spins=2, steps=2)),
    ("beta", lambda: sa.lyapunov_exponents(PAPER, beta=0.0, steps=40, transient=8)),
    ("f", lambda: fixed_point.solve(lambda y: y[:1], np.zeros(2))),
    ("f", lambda: lyapunov.exponents(lambda x, p: x[:1], (0.1, 0.1), 1.0, steps=100, transient=0)),
    ("num_heads", lambda: _module(16, 3)),
    ("num_heads", lambda: _module(16, 8)),
    ("mask", lambda: _module()(np.ones((6, 16)), mask=np.ones((6, 5), bool))),
    ("mask", lambda: _module()(np.ones((6, 16)), mask=np.ones((6, 6)))),
    ("state", lambda: _module().readout(np.ones((6, 16)), state=np.zeros((5, 16)))),
    ("x", lambda: SpinTransformer(2, 6, key=KEY)(np.diag([1.0, 0.0, 1.0]) @ np.ones((3, 6)))),
]


@pytest.mark.parametrize(("argument", "call"), CASES)
def test_what_does_not_fit_is_refused_by_name(argument, call):
    with pytest.raises(ValueError, match=f"^{argument}: expected .*, got "):
        call()
