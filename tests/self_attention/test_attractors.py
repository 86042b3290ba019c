"""Regimes decided by numbers: on synthetic evidence, and on the paper's six temperatures."""

import numpy as np
import pytest

from spinbook import self_attention as sa
from spinbook.self_attention.attractors import shortest_period, verdicts

STEPS, BLOCKS = 20_000, 20


def blocks(levels, noise, seed=0):
    """Exponents in blocks: `levels` is one number, or one for each block."""
    rng = np.random.default_rng(seed)
    return (np.broadcast_to(levels, BLOCKS) + noise * rng.normal(size=BLOCKS))[None]


def judged(levels, noise, period, **options):
    (regime,), (settled,) = verdicts(blocks(levels, noise), [period], **({"steps": STEPS, "map_period": 4} | options))
    return sa.REGIMES[regime], settled


HALVES = np.repeat([0.1, -0.02], BLOCKS // 2)


@pytest.mark.parametrize(
    ("levels", "noise", "period", "regime", "settled"),
    [
        (-0.1, 1e-6, 4, "fixed point", True),
        (-0.1, 1e-6, 2, "fixed point", True),
        (-0.1, 1e-6, 44, "periodic", True),
        (-0.1, 1e-6, 6, "periodic", True),
        (0.0, 1e-5, 0, "quasi-periodic", True),
        (-2e-4, 1e-5, 0, "quasi-periodic", True),
        (0.1, 0.02, 0, "chaotic", True),
        (0.002, 1e-4, 0, "chaotic", True),
        # Contracting, but no period found: too long a one, or not there yet.
        (-0.01, 1e-4, 0, "undecided", True),
        # Known too badly to be called zero.
        (0.0, 0.02, 0, "undecided", True),
        # Chaos that ended: with a period found, and without.
        (HALVES, 1e-3, 28, "periodic", False),
        (HALVES, 1e-3, 0, "undecided", False),
        # The same just before the end, when the mean over the second half is still positive.
        (np.append(np.full(BLOCKS - 1, 0.1), -0.02), 1e-3, 28, "periodic", False),
        # States that repeat against an exponent that says they should not.
        (0.1, 1e-3, 28, "undecided", False),
        (-np.inf, 0.0, 4, "fixed point", True),
    ],
)
def test_the_rules(levels, noise, period, regime, settled):
    assert judged(levels, noise, period) == (regime, settled)


def test_a_longer_run_resolves_weaker_chaos():
    assert judged(2e-4, 1e-6, 0)[0] == "quasi-periodic"
    assert judged(2e-4, 1e-6, 0, steps=10**6)[0] == "chaotic"


def test_the_period_of_the_map_decides_what_is_a_fixed_point():
    assert judged(-0.1, 1e-6, 8, map_period=8)[0] == "fixed point"
    assert judged(-0.1, 1e-6, 4, map_period=1)[0] == "periodic"


def test_the_shortest_period_is_found_in_all_components():
    rng = np.random.default_rng(0)
    for p in (1, 3, 12, 50):
        cycle = rng.normal(size=(p, 2))
        states = np.resize(cycle, (101, 2)) if p == 1 else cycle[np.arange(101) % p]
        noisy = states + 1e-8 * rng.normal(size=states.shape)
        periods, errors = shortest_period(noisy[None], tolerance=1e-6)
        assert periods[0] == p
        assert errors[0] == np.abs(noisy[p:] - noisy[:-p]).max()
    # One component repeats after 2 steps, the other after 3.
    t = np.arange(40)
    assert shortest_period(np.stack([t % 2, t % 3], axis=1)[None].astype(float))[0] == [6]


def test_what_does_not_repeat_twice_has_no_period():
    t = np.arange(100.0)
    turning = np.cos(2 * np.pi * t / ((1 + np.sqrt(5)) / 2))
    long = np.cos(2 * np.pi * t / 51)
    once = np.where(t < 99, 0.0, 1.0)
    periods, errors = shortest_period(np.stack([turning, long, once])[..., None])
    assert periods.tolist() == [0, 0, 0]
    assert np.isnan(errors).all()


def test_one_periodic_two_quasi_periodic_and_three_chaotic_as_the_paper_says(paper):
    # The list of June 2024, and the one temperature by which today's list differs; from the default token.
    betas = [1.255, 1.26405, 1.266, 1.27, 1.28, 1.4, 1.26451]
    diagram = sa.bifurcation(
        paper, betas, start=None, steps=20_000, num_exponents=2, observation=sa.DIAGRAM._replace(num_tail=200)
    )
    result = sa.classify_sweep(diagram)
    regimes = [sa.REGIMES[k] for k in result.regime.values]
    assert regimes[:6] == ["quasi-periodic", "quasi-periodic", "chaotic", "periodic", "chaotic", "chaotic"]
    assert regimes[6] == "periodic"
    assert diagram.period.values[[3, 6]].tolist() == [28, 44]
    assert result.settled.values.all()


def test_all_dimensions_of_a_sweep_are_classified(paper):
    diagram = sa.bifurcation(paper, [0.5, 1.28], gammas=[0.0, 127.0], steps=4000, transient=500, num_exponents=1)
    result = sa.classify_sweep(diagram)
    assert result.regime.dims == ("gamma", "beta")
    assert [sa.REGIMES[k] for k in result.regime.values.ravel()[[0, 2, 3]]] == ["fixed point", "fixed point", "chaotic"]
