"""What the library refuses by a decision, and in which words: one table for all packages.

Sizes, types and numbers of every argument are spoilt by ``test_policy``. Here stands what its spoilt arguments do not
meet: arguments that do not fit together, limits, and functions or networks in the place of others. So do numbers with
a wrong sign, from which a finite result could be computed.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from spinbook import entropy_production as ep
from spinbook import fixed_point, lyapunov, sphere, spin_transformer
from spinbook import self_attention as sa
from spinbook.adaptive_tap import attention, couplings, implicit, ising, priors, vector
from spinbook.adaptive_tap import exact as adaptive_exact
from spinbook.entropy_production import steady
from spinbook.free_energy import QueryKeyCouplings, VectorSpinAttention, VectorSpinModel, sampling
from spinbook.free_energy import exact as free_exact
from spinbook.ising import exact as ising_exact
from spinbook.ising import mean_field as ising_mean_field
from spinbook.ising import sherrington_kirkpatrick as sk
from spinbook.ising import stochastic as ising_stochastic
from spinbook.rbm import cumulant_generating_functions as K
from spinbook.rbm import effective_energy, gibbs, hidden_sum, joint_energy, mixture
from spinbook.rbm import exact as rbm_exact
from spinbook.rbm.visible_terms import linear
from spinbook.self_attention.window import start_window
from spinbook.spin_transformer import SpinTransformer, SpinTransformerModule, State
from spinbook.vector import mean_field as vector_mean_field
from spinbook.vector import stochastic as vector_stochastic

HALF = pytest.mark.half_precision
KEY = jax.random.key(0)
ONES = np.ones((4, 4))
ZEROS, FIFTEEN = np.zeros((2, 2)), np.zeros((15, 15))
DIRECTED = [[0.0, 1.0], [0.5, 0.0]]

# Spins of PyTorch: four of three components.
BLOCKS = torch.zeros(4, 4, 3, 3, dtype=torch.float64)
ONE_WAY, OWN = BLOCKS.clone(), BLOCKS.clone()
ONE_WAY[0, 1], OWN[1, 1, 0, 0] = 1.0, 0.3
SYMMETRIC = couplings.symmetrize(ONE_WAY)
FIVE = np.tile(np.eye(3), (5, 1, 1))
X = torch.ones(2, 4, 3, dtype=torch.float64)
H = torch.ones(4, 2, 3, dtype=torch.float64)
LEARNED, KEYED = attention.AdaptiveTAPAttention, QueryKeyCouplings(2, 3)


def _solver_of_ising(solve):
    return [
        (
            lambda: solve(np.triu(ONES, 1), 0),
            r"couplings: expected a symmetric matrix, got entries \(0, 1\) and \(1, 0\)",
        ),
        (lambda: solve(np.zeros((2, 3, 3)), np.zeros((5, 3))), "fields: expected leading axes"),
    ]


def _model(beta, couplings):
    return VectorSpinModel(2, 3, beta, couplings)


def _drawn(spins, couplings, fields, steps=1, **options):
    return sampling.simulate(spins, couplings, fields, steps=steps, generator=torch.Generator(), **options)


ADAPTIVE_TAP = [
    (lambda: LEARNED(4, 3, ONE_WAY), r"couplings: expected J_ij\^ab = J_ji\^ba"),
    (lambda: LEARNED(4, 3, 9 * SYMMETRIC), "couplings: .*smallest eigenvalue"),
    (lambda: LEARNED(4, 3, ONE_WAY, symmetry=couplings.unconstrained), r"couplings: expected J_ij\^ab = J_ji\^ba"),
    (lambda: attention.MeanFieldAttention(5, 3, BLOCKS), r"couplings: expected shape \(5, 5, 3, 3\), got"),
    (lambda: attention.MeanFieldAttention(4, 3, BLOCKS)(X[..., :2]), r"x: expected shape \(batch, 4, 3\)"),
    (lambda: LEARNED(1, 1)(X), r"x: expected shape \(batch, 1, 1\), got shape \(2, 4, 3\)"),
    (lambda: attention.EquilibriumAttention(attention.SoftmaxCouplings(3))(X[0]), r"x: .* \(batch, num_spins, dim\)"),
    (lambda: attention.SoftmaxCouplings(4, 3), "num_heads: expected a divisor of dim = 4, got 3"),
    (lambda: attention.FeedForward(3, 0), "hidden_dim: expected an integer >= 1"),
    (lambda: couplings.Bounded(inner=1.0), "inner: expected a number > 0 and < 1, got 1"),
    (lambda: couplings.Bounded()(torch.full((2, 2, 1, 1), torch.nan)), "couplings: expected finite numbers, got nan"),
    (lambda: adaptive_exact.moments(FIFTEEN, FIFTEEN[0]), r"couplings: .* got 15 \(that is 2\^15"),
    (lambda: implicit.solve(lambda y: y[:, :1], ZEROS), r"f: expected \(2, 2\) of torch.float64 as y0, got \(2, 1\)"),
    (lambda: implicit.solve(torch.cos, ZEROS, tol=0.0), "tol: expected a number > 0"),
    (lambda: implicit.solve(torch.cos, ZEROS, damping=2.0), "damping: expected a number > 0 and <= 1"),
    (lambda: adaptive_exact.states(15), "num_spins: expected an integer from 1 to 14"),
    (lambda: priors.Spherical(0.0), "radius: expected a number > 0"),
    *(row for name in ("", "_naive", "_tap") for row in _solver_of_ising(getattr(ising, f"solve{name}_ising"))),
    (lambda: priors.Gaussian([[1.0, 2.0], [2.0, 1.0]]), "covariance: .* positive definite, got smallest eigenvalue -1"),
    (lambda: priors.Gaussian([[1.0, 0.5], [0.0, 1.0]]), "covariance: expected a symmetric matrix"),
    (lambda: priors.Gaussian().moments(X[0, :2, 0], 1.5 * torch.eye(2)), r".* minus V .* smallest eigenvalue -0\.5"),
    (lambda: priors.Gaussian(np.eye(2)).moments(X[0, 0], BLOCKS[0, 0]), "covariance: expected matrices of 3 rows"),
    (lambda: priors.Binary().moments(torch.zeros(13), torch.zeros(13, 13)), r"fields: .* 12 .*, got 13 \(that is"),
    (lambda: vector.mean_response(BLOCKS, X[..., :2]), r"fields: expected shape \(..., 4, 3\)"),
    (lambda: vector.solve_gaussian(OWN, X), "couplings: expected J_ii = 0, got an entry of size 0.3 at spin 1"),
    (lambda: vector.solve(ONE_WAY, X, priors.Binary()), r"couplings: .* = J_ji\^ba, got entries that differ by 1"),
    (lambda: vector.solve_gaussian(BLOCKS, X, priors.Gaussian(FIVE)), "covariance: .* 4 spins, got 5"),
]
FREE_ENERGY = [
    (lambda: QueryKeyCouplings(0, 3), "num_spins: expected an integer >= 1, got 0"),
    (lambda: KEYED.channel_mixing(H, torch.ones(3, 3)), r"correlations: .* \(..., 2, 2\), got \(3, 3\)"),
    (lambda: VectorSpinAttention(2, 3)(H, t0=[-1.0]), r"t0: expected diag"),
    (lambda: sampling.uniform(2, 0, generator=torch.Generator()), r"shape: expected \(..., D\) with D >= 1"),
    (lambda: _drawn(H[..., :0], ZEROS, H[..., :0]), "spins: expected"),
    (lambda: free_exact.log_partition(H, DIRECTED), "couplings: expected a symmetric matrix"),
    (lambda: _model(1.0, DIRECTED), r"couplings: .* symmetric .* \(0, 1\) and \(1, 0\) that differ by 0.5"),
    (lambda: _model(1.0, torch.zeros(4, 2, 2)), "couplings: expected one matrix, or a function of the fields"),
    (
        lambda: _model(torch.ones(5), 0 * ONES[:2, :2]).free_energy(H),
        r"beta: .* broadcasts to that of the batch, \(4,\), got \(5,\)",
    ),
    (lambda: _model(1.0, lambda h: 1 + 0 * h @ h.mT).free_energy(H), "couplings: expected a zero diagonal, got 1"),
    (lambda: _model(1.0, lambda h: torch.zeros(4, 2, 2)).free_energy(H), "couplings: expected the dtype of the fields"),
    (lambda: _model(1.0, KEYED).double().log_prob(H), "couplings: expected a matrix for log_prob"),
    (lambda: _drawn(H, ZEROS, H), "spins: expected unit vectors, got a length of 1.73205"),
    (lambda: _drawn(torch.eye(2, 3).double(), DIRECTED, H[0]), "couplings: expected a symmetric matrix"),
    (lambda: _drawn(torch.eye(2, 3).double(), ZEROS, H[0], beta=-1.0), "beta: expected numbers > 0, got -1"),
    (lambda: _drawn(torch.eye(2, 3).double(), ZEROS, H[0], steps=0), "steps: expected an integer >= 1, got 0"),
    (lambda: _model(0.0, None), "beta: expected numbers > 0, got 0"),
]

W = np.full((4, 3), 9.0)
ONE = np.ones(4)
RBM = [
    (lambda: effective_energy(ONE, W, K.laplace()), r"t: expected \|t\| < 1 / scale"),
    (lambda: effective_energy(ONE, W, K.exponential()), "t: expected t < rate"),
    (lambda: effective_energy(ONE, W, K.poisson([1.0, 2.0])), "rate: expected a shape that broadcasts"),
    (lambda: effective_energy(ONE, W, jnp.sum), "cumulant_generating_function: expected values of shape"),
    (lambda: effective_energy(ONE, W, K.gaussian, lambda v: v[:2]), "visible_term: expected values of shape"),
    (lambda: effective_energy(ONE, W, K.gaussian, linear([1.0, 2.0])), "bias: expected a shape that"),
    (lambda: joint_energy(ONE, np.ones(3), W, None, lambda h: h[:2]), "hidden_term: expected values"),
    (lambda: rbm_exact.states(30), r"num_units: .* got 30 \(the states alone would need 30 \* 2\^3 GiB\)"),
    (lambda: gibbs.step(KEY, ONE, W, gibbs.hidden_given_visible.exponential(3.0), 0.0), "t: expected t < rate"),
    (lambda: hidden_sum.poisson(1.0, max_count=0), "max_count: expected an integer >= 1, got 0"),
]
ISING = [
    (lambda: ising_exact.states(15), r"num_spins: expected at most 14 spins, got 15 \(.* 8.59 GB"),
    (lambda: ising_exact.mean(np.full(2**15, 0.5**15)), "distribution: expected at most 14 spins"),
    (lambda: ising_exact.product_distribution(np.zeros(20)), "magnetizations: expected at most 14 spins, .* 8.8 TB"),
    (lambda: ising_exact.stationary_distribution(FIFTEEN, 0.0, beta=1.0), ".* 14 spins, got 15 .*8.59 GB"),
    (lambda: ising_exact.magnetizations(ZEROS, np.zeros((3, 2)), beta=1.0), "fields: expected a number or"),
    (lambda: ising_mean_field.collective_shift(np.zeros((3, 2)), ZEROS, beta=1.0), "magnetizations: expected shape"),
    (lambda: ising_stochastic.step(KEY, ONES[:2, :2], ZEROS, np.zeros((3, 2)), beta=1.0), "fields: .* broadcasts to"),
    (
        lambda: ising_stochastic.simulate(KEY, ONES, np.zeros((4, 4)), 0.0, beta=1.0, steps=2).delayed_correlations,
        "correlations: expected a simulation made with correlations=True",
    ),
]


def _step_of_vectors(step):
    J, x = np.zeros((5, 5)), np.zeros((5, 6))
    return [
        (lambda: step(x[:, :4], np.zeros((3, 5, 5)), x[:, :4], beta=1.0), "couplings: expected a number of heads"),
        (lambda: step(x[:, :2], J, x[:, :2], beta=1.0), ".*expected more than 2 dimensions"),
        (lambda: step(1 + x, J, x, beta=1.0), "magnetizations: expected vectors shorter"),
        (lambda: step(np.zeros((2, 5, 6)), J, np.ones((3, 5, 6)), beta=1.0), "fields: expected leading axes"),
        (lambda: step(x, J, x, beta=0.0), "beta: expected numbers > 0"),
    ]


def _before(before):
    return vector_mean_field.message_passing_step(
        np.zeros((5, 6)), np.zeros((5, 5)), np.ones((5, 6)), beta=1, before=before
    )


def _simulated(**lengths):
    return vector_stochastic.simulate(KEY, SPINS, np.eye(5), np.ones((5, 6)), beta=1.0, **lengths)


STEPS = ("naive_step", "tap_step", "flat_tap_step", "message_passing_step")
SPINS = np.zeros((3, 5, 6))
SPINS[..., 0] = sphere.radius(6)
TWO = np.ones((2, 4))
VECTOR = [
    *(row for name in STEPS for row in _step_of_vectors(getattr(vector_mean_field, name))),
    (lambda: _before(np.zeros((4, 6))), "before: expected shape"),
    (lambda: _before(np.zeros((3, 5, 6))), "before: expected leading axes"),
    (lambda: _before(np.ones((5, 6))), "before: expected vectors shorter"),
    (lambda: _before(np.full((5, 6), np.nan)), "before: expected finite"),
    (lambda: vector_stochastic.step(KEY, SPINS, np.eye(5), np.ones((2, 5, 6)), beta=1.0), "fields: .* that broadcasts"),
    (lambda: vector_stochastic.step(KEY, SPINS[:, :4], np.eye(5), np.ones((5, 6)), beta=1.0), "spins: expected"),
    (lambda: _simulated(steps=0, transient=0), "steps: expected an integer >= 1"),
    (lambda: _simulated(steps=5, transient=5), "transient: expected an integer from 0 to 4"),
    (lambda: sphere.radius(2), "dim: expected more than 2"),
    (lambda: sphere.bessel_ratio([1.0, 2.0], [1.0, 2.0, 3.0]), "x: expected a shape that broadcasts"),
]
ENTROPY_PRODUCTION = [
    (lambda: ep.vector_mean_field(ZEROS, ZEROS, ZEROS, beta=1.0), ".*more than 2"),
    (lambda: ep.vector_mean_field(ZEROS, TWO, np.ones((2, 5)), beta=1.0), "previous_fields: expected"),
    (lambda: ep.vector_mean_field(np.zeros((3, 2, 2)), TWO, TWO, beta=1.0), ".*number of heads"),
    (lambda: ep.vector_delayed_correlations(np.zeros((2, 2, 2)), TWO, TWO, beta=1.0), ".*got 2 heads"),
    (lambda: ep.divergence([1.0, 0.0], [1.0, 0.0], beta=1.0), ".*more than 2 dimensions"),
    (lambda: ep.contraction_factor(lambda m: m[:1], jnp.ones(3)), "step: expected a result of the shape"),
    (
        lambda: steady.from_simulation(
            ising_stochastic.simulate(KEY, np.ones((2, 2)), ZEROS, 0.0, beta=1.0, steps=1), ZEROS, beta=1.0
        ),
        "simulation: expected a simulation made with correlations=True",
    ),
]

PAPER = sa.paper_network()
WITHOUT_UNITS = sa.coupled_network(np.eye(2), np.zeros((4, 2, 2)))
FOUR_BITS = sa.Network(np.ones((4, 4, 4)), np.ones((4, 4, 1)), context=4)
FROZEN = {"beta": 0.0, "steps": 40, "transient": 8}


def _sweep(network=PAPER, betas=(1.0,), **options):
    return sa.bifurcation(network, betas, steps=100, transient=0, **options)


def _network(**changes):
    return sa.Network(**{"semantic_signs": np.ones((4, 3, 2)), "positional_signs": np.ones((4, 3, 2))} | changes)


def _window(size, length=1):
    return sa.Window(np.zeros((size, 3)), np.int64(length), np.int64(0))


def _sampled(network=PAPER, **options):
    return sa.sample_finite(KEY, network, **{"beta": 1.0, "num_spins": 30, "steps": 2} | options)


SELF_ATTENTION = [
    (lambda: sa.classify_sweep(_sweep()), "diagram: expected a sweep with num_exponents >= 1"),
    (lambda: _sweep([]), "network: expected at least one, got none"),
    (lambda: _sweep([PAPER, FOUR_BITS]), "network: expected networks with equally many features"),
    (lambda: _sweep(observation=sa.Observation("spin")), "observation.field: expected one of output_.*, got 'spin'"),
    (lambda: _sweep(observation=2000), "observation: expected an Observation, got int"),
    (lambda: _sweep(starts=[]), "starts: expected at least one window, got none"),
    (lambda: _sweep(starts=[None, np.zeros((4, 3))]), "starts: expected windows of the same length and position"),
    (lambda: _sweep(starts=np.zeros((2, 3, 3))), r"attention: expected shape \(4, 3\), 4 tokens"),
    (lambda: _sweep(start=np.zeros((5, 3))), r"attention: expected shape \(4, 3\), 4 tokens"),
    (lambda: sa.token_window(WITHOUT_UNITS), "network: expected a network of units, so that a token has signs"),
    (lambda: _sampled(WITHOUT_UNITS, start=np.zeros((4, 2))), "network: expected a network of units, got one of"),
    (lambda: sa.quad_correlations(WITHOUT_UNITS), "network: expected patterns that are -1 or 1"),
    (lambda: sa.correlated_network(np.zeros((4, 17, 17))), "pairs: expected at most 16 features, got 17"),
    (lambda: _network(semantic_signs=np.ones((4, 3, 0))), "semantic_signs: expected at least one segment"),
    (lambda: _network(positional_signs=np.ones((4, 2, 2))), r"positional_signs: expected shape \(4, 3, positions\)"),
    (lambda: _network(positional_signs=np.ones((4, 3, 0))), "epsilon: .* without positional bits"),
    (lambda: _network(correlation_order=0), "correlation_order: expected an integer >= 1, got 0"),
    (lambda: _network(gamma=-1.0), "gamma: expected a number >= 0, got -1"),
    (lambda: _sweep(gammas=[-1.0]), "gamma: expected a number >= 0, got -1"),
    (lambda: sa.attention_window(PAPER, np.zeros((4, 3)), position=-1), "position: expected an integer >= 0, got -1"),
    (lambda: sa.Network(np.ones((4, 17, 2)), np.ones((4, 17, 2))), r".*2\^16 = 65536"),
    (lambda: _network(patterns=np.ones((1, 3)), averages=np.zeros((4, 3, 1))), ".*neither segments nor a correlation"),
    (lambda: _network(positions=np.zeros((4, 4, 3))), ".*and 2 bits"),
    (lambda: _sampled(num_spins=2), "num_spins: expected enough for one unit in each of 3 segments, got 2"),
    (lambda: _sampled(start=np.zeros((3, 3))), "attention: expected shape"),
    (lambda: sa.lyapunov_exponents(PAPER, **FROZEN), r"beta: expected a number > 0 \(.*minus infinity\), got 0"),
    (lambda: sa.mean_log_determinant(PAPER, **FROZEN), r"beta: expected a number > 0 \(.*minus infinity\), got 0"),
    (lambda: sa.kaplan_yorke_dimension([0.5, -0.1]), "exponents: expected enough of them for a negative sum, got 2"),
    (lambda: sa.attention_window(PAPER, np.zeros((5, 3))), r"attention: .* \(4, 3\), 4 tokens .* got \(5, 3\)"),
    (lambda: sa.attention_window(PAPER, np.zeros((3, 3))), r"attention: .* \(4, 3\), 4 tokens .* got \(3, 3\)"),
    (lambda: sa.simulate(PAPER, beta=1.0, steps=5, start=_window(5)), r"start: .* \(4, 3\), .* got \(5, 3\)"),
    (lambda: sa.simulate(PAPER, beta=1.0, steps=5, start=_window(3)), r"start: .* \(4, 3\), .* got \(3, 3\)"),
    (lambda: start_window(PAPER, _window(4, length=5)), "start.length: expected an integer from 1 to 4, got 5"),
    (lambda: sa.token_window(PAPER, np.ones(99)), r"token: expected one number per segment, shape \(3,\), got \(99,\)"),
    (lambda: sa.token_window(PAPER, [1, 2, 1]), "token: expected numbers from -1 to 1, got 2"),
]


def _solve(f):
    return fixed_point.solve(f, np.zeros(2))


def _exponents(f=lambda x, p: x, start=(0.1, 0.1), parameters=1.0):
    return lyapunov.exponents(f, start, parameters, steps=100, transient=0)


OF_ANY_MAP = [
    (lambda: _solve(lambda y: y[:1]), r"f: expected the structure, shapes and dtypes of y0, float64\[2\]"),
    (lambda: _solve(lambda y: (y, y)), "f: expected the structure"),
    (lambda: _solve(lambda y: y.astype(jnp.float32)), r"f: .*got float32\[2\]"),
    (lambda: _exponents(3), "f: expected a function"),
    (lambda: _exponents(lambda x, p: x[:1]), r"f: expected a state of shape \(2,\)"),
    (lambda: _exponents(lambda x, p: (x, p)), r"f: expected a state of shape \(2,\) of float64, got tuple"),
    (lambda: _exponents(start=np.ones((2, 2)), parameters=np.ones(3)), "parameters: expected shapes that broadcast"),
]

SITES = np.ones((6, 16))


def _module(dim=16, num_heads=1, **options):
    plain = {"theory": spin_transformer.naive, "dynamics": spin_transformer.Unroll(2)}
    return SpinTransformerModule(dim, num_heads, key=KEY, **plain | options)


def _called(**arguments):
    return _module()(SITES, **arguments)


def _stack(dim=6):
    return SpinTransformer(2, dim, key=KEY)


def _carried(*shape, fill=0.0):
    return State(np.full(shape, fill))


SPIN_TRANSFORMER = [
    (lambda: _module(2), ".*more than 2 components for each head, got 2"),
    (lambda: _module(16, 8), "num_heads: expected more than 2 components for each head, got 2"),
    (lambda: _module(16, 3), "num_heads: expected a divisor of dim, 16, got 3"),
    (lambda: _called(mask=np.ones((6, 5), bool)), r"mask: expected booleans of shape \(6, 6\)"),
    (lambda: _called(mask=np.ones((6, 6))), "mask: expected booleans"),
    (lambda: _called(mask=np.ones((6, 6), bool), context=SITES[:4]), r"mask: expected booleans of shape \(6, 4\)"),
    (lambda: _module(sharpness=0.0), "sharpness: expected numbers > 0"),
    (lambda: _module(sharpness=float("nan")), "sharpness: expected finite"),
    (lambda: _module(feed_forward=0), "feed_forward: expected an integer >= 1"),
    (lambda: _module(inputs="fields"), "inputs: expected"),
    (lambda: _module(6, 2, query_key_maps=[spin_transformer.Rotary()]), "query_key_maps: expected an even number"),
    (lambda: _module(query_key_maps=(lambda a: a[..., :2],)), "query_key_maps: expected functions that keep"),
    (lambda: _module().under(3), "dynamics: expected"),
    (lambda: _called(state=np.zeros((6, 16))), "state: expected"),
    (lambda: _called(state=_carried(5, 16)), "state: expected 6 sites as in x, got 5"),
    (lambda: _called(state=_carried(6, 8)), "state: expected shape"),
    (lambda: _called(state=_carried(6, 16, fill=np.nan)), "state: expected finite"),
    (lambda: _carried(3).shifted(), "effective_fields: expected shape"),
    (lambda: _stack(16).readout(SITES, state=_carried(3, 6, 16)), "state: expected that of 2 modules, got 3"),
]

LONE, FAR = np.zeros((2, 4), np.float32), np.full((2, 4), 3e38, np.float32)
LONE[:, 0] = 1
TINY, HUGE = np.zeros((2, 2), np.float32), np.full((2, 2), 1e38, np.float32)
SK = {"field_width": 0.5, "coupling_mean": 1.0, "coupling_std": 0.1}
ROW_OF_ZEROS = np.diag([1.0, 0.0, 1.0]) @ np.ones((3, 6))
NOTHING = np.ma.masked_array([1.0, 2.0], [True, False])
# Once taken for others, or NaN, or without an end.
REVIEWED = [
    (lambda: sphere.magnetization(np.full(6, 1e19, "f4"), beta=1.0), "fields: expected .*got "),
    (lambda: sphere.magnetization_large_d(np.full(6, 1e20, "f4"), beta=1.0), "fields: expected .*got "),
    (lambda: mixture.mixture_weights(np.full((2, 3), 300, "f2")), "patterns: expected .*got ", HALF),
    (lambda: mixture.modern_hopfield_energy(*np.full((2, 1, 3), 300, "f2")), "visible: expected .*got ", HALF),
    (lambda: _sweep(betas=[1 + 5j]), "betas: expected .*got "),
    (lambda: _sweep(betas=np.array(["2020"], "datetime64[Y]")), "betas: expected .*got "),
    (lambda: _sweep(betas=NOTHING), "betas: expected .*got "),
    (lambda: sphere.magnetization([np.ma.masked_array([1.0] * 3, [True] * 3)], beta=1.0), "fields: expected .*got "),
    (lambda: sa.simulate(None, beta=1.0, steps=3), "network: expected .*got "),
    (lambda: sa.simulate(PAPER, beta=1.0, steps=10**15), "steps: expected .*got "),
    (lambda: sk.critical_beta(**SK | {"field_width": 1.0}), "coupling_mean: expected .*got "),
    (lambda: sk.order_parameters(1e4, **SK), "beta: expected .*got "),
    (lambda: sphere.sample(None, [1.0, 0.0, 0.0], beta=1.0), "key: expected .*got "),
    (
        lambda: vector_stochastic.step(KEY, LONE, TINY, FAR, beta=1.0),
        "fields: expected effective fields of length below",
    ),
    (lambda: vector_stochastic.simulate(KEY, LONE, HUGE, 0 * FAR, beta=1.0, steps=3), "couplings: .* of length below"),
    (lambda: _stack()(ROW_OF_ZEROS), "x: expected vectors that are not zero"),
    (lambda: _stack()(np.ones((3, 6)), context=ROW_OF_ZEROS), "context: expected vectors that are not zero"),
]

TABLE = {
    "adaptive TAP": ADAPTIVE_TAP,
    "free energy": FREE_ENERGY,
    "RBM": RBM,
    "Ising": ISING,
    "vector": VECTOR,
    "entropy production": ENTROPY_PRODUCTION,
    "self-attention": SELF_ATTENTION,
    "any map": OF_ANY_MAP,
    "spin transformer": SPIN_TRANSFORMER,
    "reviewed": REVIEWED,
}
CASES = [
    pytest.param(call, message, id=f"{name} {k}", marks=marks)
    for name, cases in TABLE.items()
    for k, (call, message, *marks) in enumerate(cases)
]


@pytest.mark.parametrize(("call", "message"), CASES)
def test_what_is_refused_is_named(call, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        call()
