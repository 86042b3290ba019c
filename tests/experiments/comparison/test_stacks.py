"""Stacks of modules: their parameters, what each layer gets, and runs of them with their course."""

import math
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from experiments.comparison import blocks, modules, tasks, torch_blocks, training
from experiments.comparison.training import Recipe, Score
from experiments.datasets import mnist, moby_dick
from tests.experiments.comparison.test_blocks import maps_in_torch

IMAGES = tasks.classify_mnist(mnist.sample(), num_validation=40)
TEXT = tasks.fill_in(moby_dick.sample(), num_characters=8, num_gaps=2)


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_rows_of_one_depth_have_about_as_many_parameters(depth):
    for row, task in product(modules.ROWS, (IMAGES, TEXT)):
        module = modules.stacked(row, depth, task.grid)
        number = modules.num_parameters(module, task, modules.width(module, task))
        wanted = modules.num_parameters(modules.stacked("vanilla", depth), task, modules.VANILLA_WIDTH)
        assert number / wanted == pytest.approx(1, abs=0.12), (row, task.name)


def test_rows_are_the_same_object_when_asked_for_again_and_others_are_refused():
    assert modules.stacked("FNet", 2, (4, 4)) is modules.stacked("FNet", 2, (4, 4))
    with pytest.raises(ValueError, match=r"name: expected one of vanilla, .*, got 'attention'"):
        modules.stacked("attention", 2)
    with pytest.raises(ValueError, match="depth"):
        modules.stacked("vanilla", 0)


def test_layers_of_a_stack_differ_and_follow_each_other():
    stack = modules.stacked("no feed-forward", 3).make(jax.random.key(0), 4, 8)
    first, second, _ = (layer.mixer.to_output for layer in stack.layers)
    assert not np.array_equal(first, second)
    x = jax.random.normal(jax.random.key(1), (4, 8), jnp.float32)
    given = stack.inputs(x)
    assert np.array_equal(given[0], x)
    for layer, here, there in zip(stack.layers, given, given[1:], strict=False):
        np.testing.assert_allclose(layer(here).value, there, atol=1e-6)
    np.testing.assert_allclose(stack.layers[-1](given[-1]).value, stack(x).value, atol=1e-6)


class _Stubborn(torch.nn.Module):
    def forward(self, x):
        return torch_blocks.SettledBatch(x, torch.tensor([True, False]), torch.tensor([3, 7]))


def test_an_example_is_solved_where_every_layer_solved_it_and_steps_add_up():
    found = torch_blocks.Stack([torch_blocks.Vanilla(8, 2), _Stubborn(), _Stubborn()])(torch.ones(2, 3, 8))
    assert found.converged.tolist() == [True, False]
    assert found.num_steps.tolist() == [7, 15]

    def half(x):
        return blocks.Settled(x, jnp.asarray(False), jnp.asarray(4, jnp.int32))

    found = blocks.Stack((half, blocks.Block(8, blocks.Identity(), None)))(jnp.ones((3, 8), jnp.float32))
    assert not found.converged
    assert found.num_steps == 5


def test_scores_are_those_of_the_answers_that_were_asked_for():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(3, 4, 5))
    labels = np.array([[0, 1, -1, -1], [2, -1, -1, 4], [3, 3, 3, -1]])
    converged = np.array([True, False, True])
    right, losses = [], []
    for k, n in zip(*np.nonzero(labels >= 0), strict=True):
        p = np.exp(logits[k, n]) / np.exp(logits[k, n]).sum()
        # Without a steady state: a wrong answer, and the loss of a uniform guess.
        right.append(converged[k] and p.argmax() == labels[k, n])
        losses.append(-math.log(p[labels[k, n]]) if converged[k] else math.log(5))
    found = training.scored(logits, converged, labels)
    assert found == (pytest.approx(np.mean(losses)), pytest.approx(np.mean(right)), pytest.approx(1 / 3))
    logits[0, 0, 0] = np.nan
    assert math.isfinite(training.scored(logits, converged, labels).loss)


TINY = Recipe(num_updates=50, batch=4)


@pytest.mark.slow
@pytest.mark.parametrize("row", ["naive spins, one step, 4 heads", "adaptive TAP, Gaussian"])
def test_a_course_has_curves_and_what_each_layer_is_like(row):
    module = modules.stacked(row, 2, TEXT.grid)
    course = training.follow(module, TEXT, learning_rate=2e-3, seed=1, recipe=TINY, repeats=0, num_looks=2)
    assert course.outcome.failure == ""
    assert course.losses.shape == (2,)
    assert course.outcome.loss == pytest.approx(course.losses[-1], rel=1e-6)
    assert course.looks[0].tolist() == [25, 50]
    assert all(isinstance(score, Score) for score in (course.test, course.validation))
    assert course.outcome.accuracy == course.test.accuracy
    # The last look is at the first of the examples for validation, here all of them.
    assert course.looks[1:, -1] == pytest.approx([course.validation.accuracy, course.validation.loss], rel=1e-5)
    contraction = course.layers["contraction"]
    assert contraction.shape == (2, 2)
    assert (contraction > 0).all()
    assert contraction[0, 0] != contraction[0, 1]
    assert course.outcome.contraction_after == pytest.approx(contraction[1].mean())


def test_the_loss_of_a_text_counts_gaps_alone(single):
    module = modules.stacked("identity mixer", 1, TEXT.grid)
    program = training._JaxProgram(module, TEXT, 8, Recipe(1, 4))
    arrays = program.start(0)[0]
    features, labels = (jnp.asarray(part[:6]) for part in TEXT.train)
    loss = float(program._loss(arrays, features, labels)[0])
    logits = np.asarray(program._predict(arrays, features)[0])
    assert loss == pytest.approx(training.scored(logits, np.ones(6, bool), np.asarray(labels)).loss, rel=1e-5)


@pytest.mark.slow
def test_both_frameworks_give_the_same_loss_for_the_same_weights_of_a_stack(single):
    ours, theirs = modules.stacked("vanilla", 2, IMAGES.grid), training._torch_vanilla(2)
    program = training._JaxProgram(ours, IMAGES, 8, Recipe(1, 4))
    arrays = program.start(0)[0]
    logits = np.asarray(program._predict(arrays, jnp.asarray(IMAGES.test.features))[0])
    net = training._TorchNetwork(theirs, IMAGES, 8, 0)
    for layer, block in zip(net.block.layers, arrays.block.layers, strict=True):
        layer.load_state_dict(maps_in_torch(block), strict=False)
    with torch.no_grad():
        found = net(torch.from_numpy(IMAGES.test.features))[0].numpy()
    np.testing.assert_allclose(found, logits, rtol=1e-3, atol=1e-4)


def test_many_examples_are_answered_in_parts_as_few_are_at_once(single, monkeypatch):
    """Also where the last part is not full."""
    module = modules.stacked("no feed-forward", 1, TEXT.grid)
    program = training._JaxProgram(module, TEXT, 8, Recipe(1, 4))
    arrays, some = program.start(0)[0], training.Examples(*(part[:50] for part in TEXT.train))
    monkeypatch.setattr(training, "_AT_ONCE", 16)
    logits, converged = (np.asarray(a) for a in program._predict(arrays, jnp.asarray(some.features)))
    whole = training.scored(logits, converged, some.labels)
    found = program.score(arrays, some)
    assert program.predict[1] == 16
    assert found.accuracy == whole.accuracy
    assert found.loss == pytest.approx(whole.loss, rel=1e-4)
