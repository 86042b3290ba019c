"""Exponents against eigenvalues of closed orbits, against automatic differentiation, and against the determinant."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spinbook import self_attention as sa
from tests.self_attention.definition import exponents_by_definition


@jax.jit
def jacobian_and_step(c, window):
    def attention(A):
        after = sa.mean_field.step(c, window._replace(attention=A))[0]
        return after.attention, after

    J, after = jax.jacfwd(attention, has_aux=True)(window.attention)
    size = window.attention.size
    return J.reshape(size, size), after


def jacobians(network, beta, window, steps):
    """Of successive steps, by automatic differentiation of the definition."""
    c, window = sa.couplings(network, beta=beta), sa.Window(*map(jnp.asarray, window))
    found = []
    for _ in range(steps):
        J, window = jacobian_and_step(c, window)
        found.append(np.asarray(J))
    return np.array(found)


@pytest.mark.parametrize(("beta", "period"), [(0.5, 4), (1.2, 4), (1.25, 16), (1.27, 28)])
def test_on_a_closed_orbit_the_exponents_are_logarithms_of_eigenvalues(paper, beta, period):
    end = sa.simulate(paper, beta=beta, steps=1, transient=20_000).window
    product = np.linalg.multi_dot(jacobians(paper, beta, end, period)[::-1])
    multipliers = np.sort(np.abs(np.linalg.eigvals(product)))[::-1]
    steps = 28_000
    result = sa.lyapunov_exponents(paper, beta=beta, steps=steps, transient=2000, num_exponents=6, start=end)
    # Complex pairs turn, so that the sums over T steps differ from the limits by the log of a bounded factor over T.
    # The sixth multiplier of the product is at least 1e-7 of the first, so that rounding leaves it 8 digits.
    expected = np.log(multipliers[:6]) / period
    assert np.abs(result.exponents - expected).max() < 10 / steps
    assert np.all(np.diff(result.exponents) <= 0)


@pytest.mark.parametrize(("name", "beta"), [("paper", 1.26), ("paper", 1.4), ("other", 2.0)])
def test_the_spectrum_is_that_of_the_differentiated_definition(name, beta, request):
    network = request.getfixturevalue(name)
    size = network.context * network.num_features
    steps, transient, E = 400, 40, 3
    begun = sa.simulate(network, beta=beta, steps=1, transient=1000).window
    Q = np.linalg.qr(np.random.default_rng(1).normal(size=(size, E)))[0]
    logs = np.zeros(E)
    for t, J in enumerate(jacobians(network, beta, begun, transient + steps)):
        Q, R = np.linalg.qr(J @ Q)
        logs += np.log(np.abs(np.diag(R))) * (t >= transient)
    result = sa.lyapunov_exponents(
        network, beta=beta, steps=steps, transient=transient, num_exponents=E, start=begun, num_blocks=4
    )
    # Other tangents to begin with and another norm: the logarithm of a bounded factor, over the number of steps.
    assert np.abs(result.exponents - np.sort(logs / steps)[::-1]).max() < 10 / steps


@pytest.mark.parametrize("name", ["paper", "other"])
def test_the_determinant_is_that_of_the_differentiated_definition(name, request):
    network = request.getfixturevalue(name)
    begun = sa.simulate(network, beta=1.26, steps=1, transient=500)
    K = network.context
    # The measure starts when the window is full of known tokens, K + 1 steps later.
    later = sa.simulate(network, beta=1.26, steps=1, transient=K, start=begun).window
    expected = np.linalg.slogdet(jacobians(network, 1.26, later, 30)).logabsdet
    result = sa.mean_log_determinant(network, beta=1.26, steps=30, start=begun, num_blocks=30)
    assert np.abs(result.blocks - expected).max() < 1e-9 * np.abs(expected).max()
    assert result.value == pytest.approx(expected.mean(), rel=1e-9)
    assert result.standard_error == pytest.approx(expected.std(ddof=1) / np.sqrt(30), rel=1e-6)


@pytest.mark.parametrize(("beta", "rounding"), [(0.5, 0.0), (1.0, 0.0), (1.255, 0.0), (2.0, 30.0)])
def test_the_exponents_sum_to_the_mean_log_determinant_where_rounding_allows(paper, beta, rounding):
    options = {"beta": beta, "steps": 8000, "transient": 4000}
    spectrum = sa.lyapunov_exponents(paper, **options, num_exponents=12)
    determinant = sa.mean_log_determinant(paper, **options)
    gap = spectrum.exponents.sum() - determinant.value
    if rounding:
        # At beta = 2 the softmax extinguishes whole directions within one step: the trailing exponents are noise.
        assert gap > rounding
    else:
        error = np.hypot(np.linalg.norm(spectrum.standard_errors), determinant.standard_error)
        assert abs(gap) < 3 * error + 12 * 10 / 8000
    leading = sa.lyapunov_exponents(paper, **options, num_exponents=3, orthonormalise_every=1)
    errors = 3 * np.hypot(leading.standard_errors, spectrum.standard_errors[:3]) + 10 / 8000
    assert np.all(np.abs(leading.exponents - spectrum.exponents[:3]) < errors)


# The slope of the hyperbolic tangents, 1 - tanh^2, has a mean logarithm of 1e-6 at beta = 1 and of 0.03 at 1.27. Every
# way from one attention vector to one of the four after it has it as a factor, so that an exponent feels a quarter of
# that at least: six times the bound.
@pytest.mark.parametrize("beta", [1.0, 1.27])
def test_on_a_cycle_the_compiled_exponents_are_those_of_the_definition(paper, beta):
    steps = 8000
    begun = sa.simulate(paper, beta=beta, steps=1, transient=20_000).window
    compiled = sa.lyapunov_exponents(paper, beta=beta, steps=steps, transient=0, num_exponents=2, start=begun)
    defined = exponents_by_definition(paper, beta=beta, steps=steps, num_exponents=2, start=begun)
    # Other tangents to begin with and another norm: the logarithm of a bounded factor, over the number of steps.
    assert np.all(np.abs(compiled.exponents - defined) < 10 / steps)


def test_in_chaos_the_compiled_growth_is_that_of_the_definition_on_the_same_stretches(paper):
    # Two programs follow one chaotic orbit for some 200 steps, so both are started anew on many stretches of it. In
    # ``turn`` steps their tangents find the same direction, to exp(-turn (lambda_1 - lambda_2)) = 1e-6. What is left is
    # the ratio of two norms at the ends of the stretch: on average over the attractor it cancels, and its scatter is
    # measured. The scatter of the exponent itself, ten times as large, cancels in every pair.
    beta, turn, steps, number = 1.28, 60, 80, 60
    orbit = sa.simulate(paper, beta=beta, steps=200 * number, transient=3000).attention
    found = np.zeros((2, number))
    for k in range(number):
        options = {"beta": beta, "start": orbit[200 * k : 200 * k + 4][::-1]}
        compiled = sa.lyapunov_exponents(paper, steps=steps, transient=turn, num_blocks=2, **options)
        late, early = (T * exponents_by_definition(paper, steps=T, **options)[0] for T in (turn + steps, turn))
        found[:, k] = compiled.exponents[0], (late - early) / steps
    difference = found[0] - found[1]
    allowed = 4 * difference.std(ddof=1) / np.sqrt(number)
    assert abs(difference.mean()) < allowed
    assert allowed < 0.02 * found[1].mean()


def test_the_first_exponents_do_not_depend_on_how_many_are_asked_for(paper):
    options = {"beta": 1.4, "steps": 1000, "transient": 100}
    few, many = (sa.lyapunov_exponents(paper, **options, num_exponents=n) for n in (2, 5))
    assert np.abs(few.blocks - many.blocks[:, :2]).max() < 1e-9
    assert few.exponents.shape == few.standard_errors.shape == (2,)
    assert np.array_equal(few.exponents, few.blocks.mean(axis=0))


def test_neighbouring_orbits_separate_at_the_rate_of_the_largest_exponent(paper):
    # Many pairs from points along one chaotic orbit: the mean logarithm of their distance grows by lambda a step.
    beta, apart, steps = 1.4, 1e-11, 60
    starts = sa.simulate(paper, beta=beta, steps=4 * 400, transient=2000).attention.reshape(400, 4, 3)[:, ::-1]
    nudges = np.random.default_rng(0).normal(size=starts.shape)
    distance = np.zeros((len(starts), steps))
    for k, (A, nudge) in enumerate(zip(starts, nudges, strict=True)):
        one, two = (sa.simulate(paper, beta=beta, steps=steps, start=B).attention for B in (A, A + apart * nudge))
        distance[k] = np.linalg.norm(one - two, axis=1)
    grown = np.log(distance[:, 50:54].mean(axis=1) / distance[:, 20:24].mean(axis=1)) / 30
    result = sa.lyapunov_exponents(paper, beta=beta, steps=50_000, transient=2000)
    error = np.hypot(grown.std(ddof=1) / np.sqrt(len(grown)), result.standard_errors[0])
    assert abs(grown.mean() - result.exponents[0]) < 4 * error + 0.01


def test_the_dimension_of_kaplan_and_yorke():
    # The attractor of the Henon map, a line that repels, a cycle, a point that attracts.
    assert sa.kaplan_yorke_dimension([0.41922, -1.62319]) == pytest.approx(1 + 0.41922 / 1.62319)
    assert sa.kaplan_yorke_dimension([-0.5, 0.3, -0.1]) == pytest.approx(2 + 0.2 / 0.5)
    assert sa.kaplan_yorke_dimension([0.0, -1.0]) == 1.0
    assert sa.kaplan_yorke_dimension([-0.1, -0.2]) == 0.0
