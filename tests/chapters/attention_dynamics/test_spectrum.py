"""All exponents against arithmetic of many digits, against the determinant, and against the routine of 53 bits."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from chapters.attention_dynamics.spectrum import derivatives, lyapunov_spectrum
from spinbook.self_attention import (
    Window,
    couplings,
    lyapunov_exponents,
    mean_field,
    mean_log_determinant,
    paper_network,
    simulate,
)
from spinbook.self_attention.sign_classes import sign_classes


@pytest.fixture(scope="module")
def paper():
    return paper_network()


def steps_of(network, beta, steps, transient=2000):
    """The derivatives of successive steps, and the window before the first."""
    K = network.context
    window = simulate(network, beta=beta, steps=1, transient=transient).window
    orbit = simulate(network, beta=beta, steps=steps, start=window)
    made_by = np.concatenate([window.attention[::-1], orbit.attention[:-1]])
    phases = (int(window.position) + np.arange(1 - K, steps)) % network.period
    options = {"beta": beta, "gamma": network.gamma, "context": K}
    return derivatives(sign_classes(network), made_by, phases, **options), window


def test_a_step_is_differentiated_as_by_jax(paper):
    local, window = steps_of(paper, 1.28, 30)
    c, window = couplings(paper, beta=1.28), Window(*map(jnp.asarray, window))

    @jax.jit
    def advance(window):
        def attention(A):
            after = mean_field.step(c, window._replace(attention=A))[0]
            return after.attention[0], after

        return jax.jacfwd(attention, has_aux=True)(window.attention)

    for t in range(30):
        J, window = advance(window)
        expected = np.asarray(J).reshape(3, 12)
        np.testing.assert_allclose(local.top[t], expected, rtol=1e-7, atol=1e-9 * np.abs(expected).max())
        through = np.exp(local.log_weight[t]) * local.oldest[t]
        np.testing.assert_allclose(through, local.top[t, :, 9:], rtol=1e-12)


def with_many_digits(local, Q, bits):
    """log R_kk of every step for the tangents that are the rows of Q."""
    with mpmath.workprec(bits):
        tangents = [[mpmath.mpf(float(x)) for x in row] for row in Q]
        found = []
        for top, oldest, log_weight in zip(*local, strict=True):
            M = len(top)
            weight = mpmath.exp(mpmath.mpf(float(log_weight)))
            rows = [
                [mpmath.mpf(float(x)) for x in top[a, :-M]] + [weight * mpmath.mpf(float(x)) for x in oldest[a]]
                for a in range(M)
            ]
            tangents = [[mpmath.fdot(row, x) for row in rows] + x[:-M] for x in tangents]
            logs = []
            for k, x in enumerate(tangents):
                for q in tangents[:k]:
                    overlap = mpmath.fdot(q, x)
                    x = [a - overlap * b for a, b in zip(x, q, strict=True)]
                length = mpmath.sqrt(mpmath.fdot(x, x))
                logs.append(float(mpmath.log(length)))
                tangents[k] = [a / length for a in x]
            found.append(logs)
    return np.array(found)


@pytest.mark.parametrize("beta", [1.28, 1.4])
def test_both_routes_agree_with_arithmetic_of_many_digits(paper, beta):
    from chapters.attention_dynamics import extended

    T, turned = 60, 40
    local, _ = steps_of(paper, beta, T)
    Q = np.linalg.qr(np.random.default_rng(1).normal(size=(12, 12)))[0]
    expected = with_many_digits(local, Q, 700)
    D = np.zeros((12, 2, 12))
    D[:, 0] = Q
    Y = D[::-1].copy()
    forward, inverse = np.zeros((2, T, 12))
    for t in range(T):
        one = slice(t, t + 1)
        extended.forward(local.top[one], D, forward[t], False)
        extended.inverse(local.top[one], local.oldest[one], local.log_weight[one], Y, inverse[t], False)
    # The first route knows the leading exponents, from the first step on for the same tangents.
    assert np.abs(forward - expected)[:, :6].max() < 1e-9
    # The second knows the last, once its tangents have turned into the complement of the others.
    assert np.abs(-inverse[:, ::-1] - expected)[turned:, 9:].max() < 1e-9
    # Neither knows everything with 53 bits: what a double leaves beside one is lost.
    D[:, 0], D[:, 1], rounded = Q, 0, np.zeros((T, 12))
    for t in range(T):
        extended.forward(local.top[t : t + 1], D, rounded[t], True)
    assert np.abs(rounded - expected)[:, 9:].max() > 1


@pytest.mark.parametrize("beta", [1.0, 1.28, 1.4, 2.0, 2.9])
def test_the_exponents_add_up_to_the_determinant_within_their_bounds(paper, beta):
    found = lyapunov_spectrum(paper, beta=beta, steps=1000, transient=3000)
    determinant = mean_log_determinant(paper, beta=beta, steps=1000, transient=3000)
    # The same orbit, and of each step the same determinant by another formula.
    assert found.log_determinant == pytest.approx(determinant.value, rel=1e-10)
    assert abs(found.exponents.sum() - found.log_determinant) < 2 * found.bounds.sum()
    assert np.all(np.diff(found.exponents) <= 0)
    if beta < 1.3:
        assert found.bounds.max() < 1e-6
        assert np.abs(found.forward - found.inverse).max() < (1e-6 if beta > 1.2 else 20 / 1000)
    if beta == 2.0:
        assert found.bounds[:3].max() < 1e-9
        assert found.bounds[6:9].min() > 0.05


def test_the_leading_exponents_are_those_of_the_fast_routine_and_the_last_are_not(paper):
    options = {"beta": 1.28, "steps": 2000, "transient": 3000}
    found = lyapunov_spectrum(paper, **options)
    fast = lyapunov_exponents(paper, num_exponents=12, orthonormalise_every=1, **options)
    spread = 4 * np.hypot(found.standard_errors, fast.standard_errors)
    assert np.all(np.abs(found.exponents - fast.exponents)[:6] < spread[:6])
    assert np.all(fast.exponents[9:] - found.exponents[9:] > 0.05)


def test_what_cannot_be_computed_is_refused(paper):
    options = {"steps": 100, "transient": 100}
    with pytest.raises(ValueError, match=r"beta: expected a number > 0"):
        lyapunov_spectrum(paper, beta=0.0, turning=10, **options)
    with pytest.raises(ValueError, match=r"turning: expected an integer from 0 to 100, got 1000"):
        lyapunov_spectrum(paper, beta=1.0, **options)
    alike = replace(paper, semantic_signs=np.ones((4, 3, 1)), segment_weights=None)
    with pytest.raises(ValueError, match=r"network: expected a map whose steps can be inverted"):
        lyapunov_spectrum(alike, beta=1.0, turning=10, **options)
