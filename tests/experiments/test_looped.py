"""The network that is repeated, against independent routes."""

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from experiments import encoder, looped
from experiments.looped import mapping, network
from spinbook import lens


def small_layer(dim=16, wide=24):
    rng = np.random.default_rng(5)

    def linear(n, m):
        return jnp.asarray(rng.normal(size=(n, m)) / 4), jnp.asarray(rng.normal(size=m) / 4)

    def norm():
        return jnp.asarray(rng.uniform(0.5, 1.5, dim)), jnp.asarray(rng.normal(size=dim) / 4)

    maps = [linear(dim, dim) for _ in range(4)]
    return encoder.Layer(*maps, norm(), linear(dim, wide), linear(wide, dim), norm())


def test_padding_changes_nothing():
    layer, x = small_layer(), jnp.asarray(np.random.default_rng(6).normal(size=(7, 16)))
    alone = encoder.block(x, layer, heads=network.HEADS)
    after, attention, _ = network.apply(jnp.pad(x, ((0, 4), (0, 0)), constant_values=3.0), jnp.asarray(7), layer)
    np.testing.assert_allclose(after[:7], alone.outputs, atol=1e-12)
    np.testing.assert_allclose(attention[:, :7, :7], alone.attention, atol=1e-12)
    assert not np.any(np.asarray(after[7:]))
    assert not np.any(np.asarray(attention[..., 7:]))


def test_trajectory_is_the_block_again_and_again():
    layer, x = small_layer(), jnp.asarray(np.random.default_rng(7).normal(size=(1, 6, 16)))
    states, attention = network.trajectory(x, jnp.asarray([6]), layer, 3)
    y = x[0]
    for k in range(3):
        trace = encoder.block(y, layer, heads=network.HEADS)
        y = trace.outputs
        np.testing.assert_allclose(states[k, 0], y, atol=1e-11)
        np.testing.assert_allclose(attention[k, 0], trace.attention, atol=1e-11)


def test_tokens_of_a_reaction_put_together_are_the_reaction():
    for reaction in mapping.reactions():
        words = network.tokens(reaction.smiles)
        assert "".join(words[1:-1]) == reaction.smiles
        assert len(words) <= 48


def test_graph_has_the_bonds_of_anisole():
    found = mapping.graph("C>>COc1ccccc1")
    bonds = found.bonds[1:, 1:]
    assert found.elements.tolist() == ["C", "C", "O", "C", "C", "C", "C", "C", "C"]
    assert bonds[0, 1] == bonds[1, 2] == 1
    ring = bonds[2:, 2:]
    assert np.all(ring.sum(0) == 3)
    assert np.count_nonzero(ring) == 12


def test_every_reaction_is_mapped_from_distinct_atoms_of_one_element_with_few_new_bonds():
    for reaction in mapping.reactions():
        atoms, truth = mapping.graph(reaction.smiles), np.array(reaction.atoms)
        assert len(set(truth)) == len(truth) == atoms.product.sum(), reaction.name
        assert (atoms.elements[atoms.product] == atoms.elements[~atoms.product][truth]).all(), reaction.name
        new = atoms.bonds[np.ix_(atoms.product, atoms.product)] > 0
        old = atoms.bonds[np.ix_(~atoms.product, ~atoms.product)][np.ix_(truth, truth)] > 0
        assert np.triu(new & ~old).sum() <= 2, reaction.name
        assert np.triu(old & ~new).sum() <= 1, reaction.name


def test_a_perfect_attention_maps_all_atoms_and_a_wrong_one_is_seen():
    for reaction in mapping.reactions():
        atoms = mapping.graph(reaction.smiles)
        N = len(network.tokens(reaction.smiles))
        attention = np.full((N, N), 1e-4)
        new, old = atoms.places[atoms.product], atoms.places[~atoms.product]
        attention[new, old[reaction.atoms]] = 1
        for rule in (mapping.by_largest, mapping.by_neighbours):
            assert mapping.share_right(rule(attention, atoms), reaction.atoms, atoms) == 1
    ester = mapping.reactions()[0]
    wrong = ester.atoms.copy()
    # The oxygen of the acid in place of that of the alcohol.
    wrong[2] = 3
    assert mapping.share_right(wrong, ester.atoms, mapping.graph(ester.smiles)) == pytest.approx(5 / 6)


def test_equivalent_atoms_count_as_right():
    smiles, truth = "CI.Oc1ccccc1>>COc1ccccc1", [0, 2, 3, 4, 5, 6, 7, 8]
    mirrored = [0, 2, 3, 8, 7, 6, 5, 4]
    assert mapping.share_right(mirrored, truth, mapping.graph(smiles)) == 1
    shifted = [0, 2, 4, 5, 6, 7, 8, 3]
    assert mapping.share_right(shifted, truth, mapping.graph(smiles)) < 0.8


def test_orbits_part_where_the_exponent_says_chaos_and_stay_together_where_it_is_negative():
    record = looped.recorded()
    assert sorted(record["reactions"]) == sorted(reaction.name for reaction in mapping.reactions())
    apart = looped.values(record, "apart")
    exponent, error = (looped.values(record, name)[: len(apart)] for name in ("exponent", "exponent_error"))
    chaos = (exponent > 0.01) & (exponent > 4 * error)
    assert chaos.any()
    assert (apart[chaos, -1] > 0.1).all()
    assert (apart[exponent < 0, -1] < 1e-6).all()


def test_the_table_that_the_library_carries_is_that_of_the_record():
    made, carried = looped.by_pass(looped.recorded()), lens.repeated_block()
    pd.testing.assert_frame_equal(made[carried.columns], carried)
