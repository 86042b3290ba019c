"""Networks of given positions and couplings, against the authors' later programs and against networks with units."""

import json
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

from spinbook import self_attention as sa
from tests.self_attention import scan
from tests.self_attention.definition import exponents_by_definition, orbit_by_definition

FIELDS = ("output_semantic", "values", "queries", "keys", "attention")
DATA = json.loads((Path(__file__).parent / "data" / "authors_later_models.json").read_text(encoding="utf-8"))
SIGMAS = sa.positional_bits(3)
# Rows of the sigma model are query, key, value, output.
OURS = [3, 2, 0, 1]


def positions_of(run):
    """What the sigma model adds at each position: max(0, W p / P)."""
    W = np.array(run["positional"])[OURS]
    return np.maximum(0, np.einsum("xap,rp->rxa", W, sa.positional_bits(2)) / 2)


def with_units(run):
    """The sigma model with one segment for each combination of signs of its three patterns."""
    signs = SIGMAS.T[np.array(run["base"])[np.array(run["orders"])[OURS]]]
    none = np.zeros((4, 4, 0))
    return sa.Network(signs, none, epsilon=run["epsilon"], gamma=run["gamma"], positions=positions_of(run))


def with_couplings(run):
    """The same by its couplings: a pattern enters a field as often as the orders name it."""
    base, orders = np.array(run["base"]), np.array(run["orders"])[OURS]
    half = SIGMAS[SIGMAS[:, 0] > 0]
    patterns = np.zeros((len(half), 4))
    for k, source in enumerate(orders[0]):
        patterns[:, source] += half[:, base[k]]
    averages = half.T[base[orders]] / len(half)
    options = {"epsilon": run["epsilon"], "gamma": run["gamma"], "positions": positions_of(run)}
    return sa.coupled_network(patterns, averages, **options)


def token_of(run):
    """A window after one token."""
    attention = np.zeros((4, len(run["start"])))
    attention[0] = run["start"]
    return sa.Window(attention, np.int64(1), np.int64(0))


def correlated(run):
    positions = np.einsum("xap,rp->rxa", run["positional"], sa.positional_bits(2)) / 2
    options = {"epsilon": run["epsilon"], "gamma": run["gamma"], "positions": positions}
    return sa.correlated_network(run["pairs"], run["quads"], **options)


def stored(run):
    signs = np.array(run["semantic"]), np.array(run["positional"])
    context = 2 ** signs[1].shape[2]
    return sa.Network(*signs, context, 0.02, 2.2 * 100 / np.sqrt(3))


def allowed(network, beta, window):
    """Rounding of each step, gamma eps, as the steps until then magnify it; (steps, 1)."""
    nudged = window._replace(attention=window.attention + 1e-9 * np.random.default_rng(0).choice([-1, 1], (1, 1)))
    orbits = [
        np.asarray(orbit_by_definition(network, beta=beta, steps=40, start=w).attention) for w in (window, nudged)
    ]
    growth = np.maximum.accumulate(np.abs(orbits[1] - orbits[0]).max(axis=1) / 1e-9)
    rounding = 10 * max(network.gamma, 1) * np.finfo(np.float64).eps
    return rounding * (np.arange(1, 41) * np.maximum(growth, 1))[DATA["steps"], None]


def distance(orbit, run, bound):
    """The largest difference to the authors' numbers, in units of what rounding allows."""
    differences = [np.abs(np.asarray(getattr(orbit, name))[DATA["steps"]] - run[name]) / bound for name in FIELDS]
    return np.max(differences)


def window_of(run):
    return sa.attention_window(stored(run), run["attention_window"], position=run["position"])


CASES = [
    *((run["model"], with_couplings(run), token_of(run), run) for run in DATA["sigma"]),
    *((f"{run['model']}-units", with_units(run), token_of(run), run) for run in DATA["sigma"][:2]),
    *((f"correlated-{run['mode']}", correlated(run), token_of(run), run) for run in DATA["correlated"]),
    *((run["window"], stored(run), window_of(run), run) for run in DATA["stored"]),
]


@pytest.mark.parametrize("routine", [orbit_by_definition, pytest.param(sa.simulate, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("network", "window", "run"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_the_definition_and_the_fast_routine_follow_the_authors_programs(network, window, run, routine):
    bound = allowed(network, run["beta"], window)
    assert bound.max() < 1e-6
    orbit = routine(network, beta=run["beta"], steps=40, start=window)
    assert distance(orbit, run, bound) < 1


@pytest.mark.parametrize("run", DATA["stored"], ids=lambda run: run["window"])
def test_the_stored_values_are_those_of_the_stored_attention(run):
    # The token of age j was made by the attention of age j + 1 and carries the position of its own.
    network, attention = stored(run), np.array(run["attention_window"])
    made = sa.mean_field.couplings(network, beta=run["beta"])
    for age in range(network.context - 1):
        m = sa.mean_field.overlaps(made, attention[age + 1], run["position"] - 1 - age)
        assert np.abs(np.asarray(m)[1] - run["values_of_window"][age]).max() < 1e-15


def test_a_negative_positional_term_is_another_model():
    run = DATA["sigma"][0]
    network, window = with_units(run), token_of(run)
    signed = np.einsum("xap,rp->rxa", np.array(run["positional"])[OURS], sa.positional_bits(2)) / 2
    orbit = orbit_by_definition(replace(network, positions=signed), beta=run["beta"], steps=40, start=window)
    assert distance(orbit, run, allowed(network, run["beta"], window)) > 1e6


@pytest.mark.slow
def test_units_and_their_couplings_are_one_map():
    run = DATA["sigma"][0]
    units, given = with_units(run), with_couplings(run)
    assert np.abs(sa.pair_correlations(units) - sa.pair_correlations(given)).max() < 1e-15
    assert np.abs(sa.quad_correlations(units) - sa.quad_correlations(given)).max() < 1e-15
    window = token_of(run)
    orbits = [sa.simulate(x, beta=run["beta"], steps=60, start=window).attention for x in (units, given)]
    assert np.abs(orbits[0] - orbits[1]).max() < 1e-12


def test_the_paper_is_known_by_its_correlations(paper):
    # Of three features there is no correlation beyond the fourth order.
    positions = np.einsum("xap,rp->rxa", paper.positional_signs, sa.positional_bits(2)) / 2
    options = {"epsilon": paper.epsilon, "gamma": paper.gamma, "positions": positions}
    same = sa.correlated_network(sa.pair_correlations(paper), sa.quad_correlations(paper), **options)
    start = sa.token_window(paper)
    orbits = [orbit_by_definition(x, beta=1.1, steps=50, start=start).attention for x in (paper, same)]
    assert np.abs(orbits[0] - orbits[1]).max() < 1e-12
    pairs_only = sa.correlated_network(sa.pair_correlations(paper), **options)
    truncated = replace(paper, correlation_order=1)
    orbits = [orbit_by_definition(x, beta=1.1, steps=50, start=start).attention for x in (pairs_only, truncated)]
    assert np.abs(orbits[0] - orbits[1]).max() < 1e-12


def test_exponents_of_given_couplings_are_those_of_the_definition():
    # The pattern that counts twice: the field's patterns are no signs.
    run = DATA["sigma"][2]
    network, window = with_couplings(run), token_of(run)
    assert np.abs(sa.mean_field.couplings(network, beta=1.0).class_signs).max() == 2
    options = {"beta": run["beta"], "num_exponents": 2, "start": window}
    fast = sa.lyapunov_exponents(network, steps=4000, transient=1000, **options)
    plain = exponents_by_definition(network, steps=4000, **options)
    # The start of the second counts, and each differs from its limit by the logarithm of a bounded factor over T.
    assert np.abs(fast.exponents - plain).max() < 20 / 4000 + 5 * fast.standard_errors.max()


def test_a_sweep_says_what_it_was_given_and_counts_what_leaves_the_histogram():
    # Mean fields of up to three, where those of units stay within one.
    network = sa.coupled_network(np.eye(2), 3 * np.stack([-np.eye(2)] * 4), context=2, gamma=0.1)
    for run in ({}, {"run": scan.run}):
        diagram = sa.bifurcation(network, [2.0], steps=40, transient=0, start=[[1.0, -1.0], [-1.0, 1.0]], **run)
        assert int(diagram.histogram.sum()) == 40
        assert np.abs(diagram.minimum.values).max() > 1
    (written,) = json.loads(diagram.attrs["networks"])
    again = sa.Network(**written)
    assert np.array_equal(again.averages, network.averages)
    assert again.period == network.period == 1


def test_a_finite_network_with_given_positions_approaches_its_mean_field():
    run = DATA["sigma"][0]
    network, window = with_units(run), np.full((4, 4), 0.1)
    expected = sa.simulate(network, beta=0.5, steps=8, start=window).attention
    keys = jax.random.split(jax.random.key(0), 200)
    options = {"beta": 0.5, "num_spins": 8000, "steps": 8, "start": window}
    sampled = jax.vmap(lambda key: sa.sample_finite(key, network, **options))(keys)
    attention = np.asarray(sampled.attention)
    errors = attention.std(axis=0, ddof=1) / np.sqrt(len(keys))
    # The mean itself is off by some 1/N.
    assert np.all(np.abs(attention.mean(axis=0) - expected) < 5 * errors + 100 / 8000)
