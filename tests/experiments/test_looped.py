"""The network that is repeated, against independent routes; what needs its weights is skipped without them."""

import os
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from experiments import encoder, looped
from experiments.looped import mapping, network
from spinbook import lens

FOLDER = Path(os.environ.get("SPINBOOK_DATA", "."))
WHEEL = "rxnmapper-0.4.3-py3-none-any.whl"
HAS_WEIGHTS = any((folder / WHEEL).is_file() for folder in (FOLDER, FOLDER / "rxnmapper"))
needs_weights = pytest.mark.skipif(not HAS_WEIGHTS, reason="the wheel of rxnmapper is not in $SPINBOOK_DATA")


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


def test_load_says_how_to_get_the_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="pip download rxnmapper"):
        network.load(tmp_path)


@pytest.mark.slow
@needs_weights
def test_states_attention_and_logits_are_those_of_transformers():
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    import io

    folder = next(folder for folder in (FOLDER, FOLDER / "rxnmapper") if (folder / WHEEL).is_file())
    config = transformers.AlbertConfig(
        vocab_size=591,
        embedding_size=128,
        hidden_size=256,
        num_hidden_layers=12,
        num_attention_heads=8,
        intermediate_size=512,
        hidden_act="gelu",
        layer_norm_eps=1e-12,
        attn_implementation="eager",
    )
    model = transformers.AlbertForMaskedLM(config).double().eval()
    weights = torch.load(io.BytesIO(network._read(folder, network.FILES[0])), weights_only=True, map_location="cpu")
    lacking = model.load_state_dict(weights, strict=False)
    assert not [name for name in lacking.missing_keys if "position_ids" not in name]
    found = network.load()
    smiles = [reaction.smiles for reaction in mapping.reactions()[:3]]
    ids, numbers = network.padded(smiles, found.vocabulary, 48)
    x = jax.vmap(lambda i, n: network.embed(i, n, found))(jnp.asarray(ids), jnp.asarray(numbers))
    states, attention = network.trajectory(x, jnp.asarray(numbers), found.layer, 12)
    logits = network.filled_in(states[-1], found)
    for k, n in enumerate(numbers):
        with torch.no_grad():
            out = model(torch.tensor(ids[k : k + 1, :n]), output_attentions=True, output_hidden_states=True)
        for layer in range(12):
            np.testing.assert_allclose(states[layer, k, :n], out.hidden_states[layer + 1][0], atol=1e-9)
            np.testing.assert_allclose(attention[layer, k, :, :n, :n], out.attentions[layer][0], atol=1e-10)
        np.testing.assert_allclose(logits[k, :n], out.logits[0], atol=1e-8)


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
