"""Sweeps: what is gathered against recorded orbits, where orbits start, and interruptions."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from spinbook import self_attention as sa

BETAS = [0.6, 1.255, 1.4, 2.0]
FAST = {"steps": 200, "transient": 30}


@pytest.mark.parametrize(("field", "component"), [("output_semantic", 0), ("keys", 2), ("attention", 1)])
def test_what_is_gathered_is_what_a_recorded_orbit_shows(paper, field, component):
    observation = sa.Observation(field, component, num_bins=50, num_tail=9)
    diagram = sa.bifurcation(paper, BETAS, start=None, observation=observation, num_blocks=7, **FAST)
    edges = np.linspace(-1, 1, 51)
    for k, beta in enumerate(BETAS):
        orbit = sa.simulate(paper, beta=beta, **FAST)
        values = getattr(orbit, field)
        here = diagram.isel(beta=k)
        counts = np.histogram(values[:, component], edges)[0]
        assert np.array_equal(here.histogram, counts)
        assert here.distinct_points == np.count_nonzero(counts)
        blocks = np.split(values, np.linspace(0, 200, 8).astype(int)[1:-1])
        assert np.array_equal(here.minimum, [block.min(axis=0) for block in blocks])
        assert np.array_equal(here.maximum, [block.max(axis=0) for block in blocks])
        assert np.array_equal(here.final_attention, orbit.attention[:-5:-1])
        assert here.final_position == 230 % 4
    assert np.allclose(diagram.bin, (edges[1:] + edges[:-1]) / 2, atol=1e-15)


def test_exponents_in_a_sweep_are_those_of_single_orbits(paper):
    diagram = sa.bifurcation(paper, BETAS, start=None, num_exponents=3, num_blocks=10, **FAST)
    for k, beta in enumerate(BETAS):
        single = sa.lyapunov_exponents(paper, beta=beta, num_exponents=3, num_blocks=10, **FAST)
        assert np.array_equal(diagram.block_exponents[k], single.blocks)
        # The same numbers, added in another order.
        assert np.abs(diagram.exponents[k] - single.exponents).max() < 1e-14
        assert np.abs(diagram.standard_errors[k] - single.standard_errors).max() < 1e-14


def test_continuation_starts_from_the_end_of_the_highest_beta(paper):
    # An order that is not sorted: the highest is found by its value.
    betas = [1.4, 2.0, 0.9, 1.3]
    diagram = sa.bifurcation(paper, betas, **FAST)
    top = sa.simulate(paper, beta=2.0, steps=1, transient=229)
    for k, beta in enumerate(betas):
        begun = None if beta == 2.0 else top
        expected = sa.simulate(paper, beta=beta, steps=1, transient=229, start=begun).attention[0]
        assert np.array_equal(diagram.final_attention[k, 0], expected)
    assert diagram.final_position.values.tolist() == [(2 * 230) % 4, 230 % 4, (2 * 230) % 4, (2 * 230) % 4]
    assert sa.bifurcation(paper, [1.3], **FAST).sizes["beta"] == 1


def test_every_combination_of_parameters_is_the_network_with_these_parameters(paper):
    networks = [paper, sa.random_network(jax.random.key(11))]
    gammas = [5.0, 127.0]
    diagram = sa.bifurcation(networks, [0.8, 1.4], gammas=gammas, start=None, **FAST)
    assert diagram.histogram.dims == ("network", "gamma", "beta", "bin")
    assert diagram.final_attention.shape == (2, 2, 2, 4, 3)
    for i, j, b in [(0, 0, 0), (1, 1, 1), (0, 1, 0)]:
        network = replace(networks[i], gamma=gammas[j])
        expected = sa.simulate(network, beta=[0.8, 1.4][b], steps=1, transient=229).attention[0]
        # The other network may have more sign classes, and zeros are added then.
        assert np.abs(diagram.final_attention[i, j, b, 0] - expected).max() < 1e-9


def test_many_starts_at_once_are_as_many_single_ones(paper):
    starts = np.random.default_rng(0).uniform(-1, 1, (3, 4, 3))
    diagram = sa.bifurcation(paper, [0.8, 1.4], starts=starts, **FAST)
    assert diagram.period.dims == ("start", "beta")
    for k in range(3):
        for b, beta in enumerate([0.8, 1.4]):
            expected = sa.simulate(paper, beta=beta, steps=1, transient=229, start=starts[k]).attention[0]
            assert np.array_equal(diagram.final_attention[k, b, 0], expected)
    positions = sa.bifurcation(paper, [0.8], starts=[sa.attention_window(paper, A, position=3) for A in starts], **FAST)
    assert np.all(positions.final_position == (3 + 230) % 4)


def test_a_sweep_from_a_window_continues_a_trajectory(paper):
    begun = sa.simulate(paper, beta=1.4, steps=9)
    diagram = sa.bifurcation(paper, [1.4], start=begun, **FAST)
    expected = sa.simulate(paper, beta=1.4, steps=1, transient=9 + 229).attention[0]
    assert np.array_equal(diagram.final_attention[0, 0], expected)


def test_periods_are_multiples_of_that_of_the_positions(paper):
    diagram = sa.bifurcation(paper, [0.0, 0.5, 1.25], start=None, steps=2000, transient=12_000)
    assert diagram.period.values.tolist() == [4, 4, 16]
    assert diagram.recurrence_error.max() < 1e-6


@pytest.mark.parametrize("num_threads", [1, 2])
def test_a_folder_and_threads_change_nothing_and_the_folder_is_of_one_sweep(paper, tmp_path, num_threads):
    betas, options = np.linspace(0.5, 2.5, 40), {**FAST, "num_exponents": 1}
    whole = sa.bifurcation(paper, betas, **options)
    assert sa.bifurcation(paper, betas, folder=tmp_path, num_threads=num_threads, **options).identical(whole)
    finished = sorted(tmp_path.rglob("task-*.npz"))
    assert len(finished) == 3
    finished[-1].unlink()
    assert sa.bifurcation(paper, betas, folder=tmp_path, **options).identical(whole)
    for network, other in ((paper, {"steps": 201}), (replace(paper, gamma=1.0), {})):
        with pytest.raises(ValueError, match="folder: expected an empty one or one with this very sweep"):
            sa.bifurcation(network, betas, folder=tmp_path, **(options | other))
