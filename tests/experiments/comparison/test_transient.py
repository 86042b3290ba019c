"""Small language models: what stacks share, what a causal mask hides, and trainings that were recorded before."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments import records
from experiments.comparison import transient
from experiments.datasets import moby_dick

KEY = jax.random.key(3)
SMALL = 1, 16, 2

pytestmark = pytest.mark.usefixtures("single")


def size(model):
    return sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array)))


def test_stacks_begin_between_the_same_ends_and_have_as_many_weights():
    spins, *others = (transient.made(stack, 6, 128, 4, key=KEY) for stack in transient.STACKS)
    assert round(size(spins) / 1e6, 2) == 1.09
    for other in others:
        assert size(other) == pytest.approx(size(spins), rel=0.002)
        for name in ("embedding", "readout"):
            np.testing.assert_array_equal(getattr(other, name), getattr(spins, name))


def test_embeddings_are_the_fields_of_the_first_layer():
    model = transient.made("spins", *SMALL, beta=3.0, key=KEY)
    characters = jnp.asarray(moby_dick.encode("the whale"))
    arrays, rest = eqx.partition(model.stack.modules, eqx.is_array)
    module = eqx.combine(jax.tree.map(lambda a: a[0], arrays), rest)
    module = eqx.tree_at(lambda m: m.memory, module, None)
    x = model.bottom(characters)
    np.testing.assert_allclose(module.fields(x), model.embedding[characters], rtol=1e-5, atol=1e-6)
    lengths = jnp.linalg.norm(model.embedding.reshape(-1, 2, 8), axis=-1)
    np.testing.assert_allclose(lengths, np.sqrt(8 / 2 - 1), rtol=1e-6)


@pytest.mark.parametrize(
    ("stack", "use"), [("spins", "2"), ("spins", "inf"), ("vanilla", "once"), ("identity mixer", "once")]
)
def test_no_site_receives_from_later_characters(stack, use):
    model = transient.made(stack, 2, 16, 2, key=KEY)
    first, second = (jnp.asarray(moby_dick.encode(text)) for text in ("call me", "call mr"))
    a, b, other = (model(text, use)[0] for text in (first, second, first.at[0].set(0)))
    np.testing.assert_allclose(a[:-1], b[:-1], rtol=1e-4, atol=1e-5)
    assert float(jnp.max(jnp.abs(a[-1] - b[-1]))) > 1e-3
    # And the last one receives from the first, where sites are mixed at all.
    assert (float(jnp.max(jnp.abs(a[-1] - other[-1]))) > 1e-4) == (stack != "identity mixer")


def trained(model, **options):
    """After ten updates on one batch."""
    batches = np.broadcast_to(moby_dick.encode(moby_dick.sample()).astype(np.int32)[:18].reshape(2, 9), (10, 2, 9))
    return transient.train(model, batches, np.full(10, 3e-3), use="once", clip=1.0, every=5, **options)


def test_a_gradient_that_is_not_finite_changes_nothing():
    model = transient.made("vanilla", *SMALL, key=KEY)
    learnt, course = trained(model)
    assert course["skipped"] == [0, 0]
    assert course["losses"][1] < course["losses"][0]
    broken = eqx.tree_at(lambda m: m.gain, model, jnp.full_like(model.gain, jnp.inf))
    same, course = trained(broken)
    assert course["skipped"] == [1, 1]
    np.testing.assert_array_equal(same.readout, model.readout)
    assert not np.array_equal(learnt.readout, model.readout)


def test_what_disturbs_a_training_is_told_the_update_and_leaves_the_targets():
    model = transient.made("identity mixer", *SMALL, key=KEY)

    def blank(model, read, number):
        return model, jnp.where(number < 5, read, 0)

    looks = []
    _, course = trained(model, look=looks.append, disturb=blank)
    assert len(looks) == 3
    # The first half learns as if undisturbed, and in the second all sites are the same.
    assert course["losses"][0] == trained(model)[1]["losses"][0]
    assert course["losses"][1] > trained(model)[1]["losses"][1] + 0.01


@pytest.mark.slow
@pytest.mark.parametrize(("row", "stack", "use"), [("1", "spins", "1"), ("vanilla", "vanilla", "once")])
def test_a_training_comes_to_what_was_recorded(row, stack, use):
    """The sample of the record, made by another program: windows, losses on the way and at the end."""
    record = records.of_book("transient", "transient-sample")
    recorded = next(run for run in record["runs"] if (run["row"], run["beta"], run["seed"]) == (row, 1, 1))
    text = moby_dick.encode(moby_dick.sample()).astype(np.int32)
    learnt, rest = np.split(text, [len(text) * 9 // 10])
    starts = np.linspace(0, len(rest) - 9, 4).astype(int).reshape(2, 2).T
    held_out = jnp.asarray(rest[starts[..., None] + np.arange(9)])
    drawn = np.random.default_rng([1, 1]).integers(len(learnt) - 8, size=(20, 2))
    batches = learnt[drawn[..., None] + np.arange(9)]

    def losses(model):
        return [float(transient.loss(model, w[:, :-1], w[:, 1:], use)[0]) for w in held_out]

    model = transient.made(stack, *SMALL, key=jax.random.key(1))
    options = {"use": use, "clip": 10.0, "every": 10, "look": lambda model: losses(model)[0]}
    model, course = transient.train(model, batches, np.full(20, 1e-3), **options)
    assert course["looks"] == pytest.approx(recorded["looks"], rel=1e-3)
    assert course["losses"] == pytest.approx(recorded["losses"], rel=1e-3)
    assert np.mean(losses(model)) == pytest.approx(recorded["held_out"][recorded["uses"].index(use)], rel=1e-3)
