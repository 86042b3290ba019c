"""Runs of both frameworks are one experiment, failures come back with a reason, and nothing outside is touched."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from experiments import records
from experiments.comparison import blocks, modules, tasks, torch_blocks, training
from experiments.comparison.modules import MODULES
from experiments.comparison.training import Recipe
from experiments.datasets import moby_dick
from spinbook.precision import enable_x64
from tests.experiments.comparison.test_blocks import maps_in_torch

TASK = tasks.recall(num_pairs=3, num_keys=6, num_values=4, num_train=120, num_test=60)
TEXT = tasks.fill_in(moby_dick.sample(), num_characters=8, num_gaps=2)
BY_NAME = {module.name: module for module in MODULES}
TINY = Recipe(num_updates=5, batch=8)


def train(name, rate, recipe=TINY, *, task=TASK, seed=0, **options):
    return training.train(BY_NAME[name], task, learning_rate=rate, seed=seed, recipe=recipe, repeats=0, **options)


def test_the_rate_rises_for_a_tenth_of_the_updates_and_falls_to_zero():
    profile = training.rate_profile(100)
    assert profile.max() == profile[9] == 1
    assert (np.diff(profile[:10]) > 0).all()
    assert (np.diff(profile[11:]) < 0).all()
    assert profile[-1] < 1e-3


@pytest.fixture(scope="module")
def ours():
    with enable_x64(False), jax.numpy_dtype_promotion("standard"):
        return training._JaxProgram(MODULES[0], TASK, 8, TINY)


@pytest.fixture(scope="module")
def theirs():
    return training._TorchProgram(training._reference("torch", 1), TASK, 8, TINY)


def test_the_same_weights_and_batches_give_the_same_losses_in_both_frameworks(single, ours, theirs):
    plan, rates = training.batches(120, TINY, seed=0), np.float32(0.02) * training.rate_profile(5)
    state, others = ours.start(0), theirs.start(0)
    for name, array in training.shared_start(TASK, 8, seed=0).items():
        assert np.array_equal(getattr(others[0], name).detach().numpy(), array)
    # Both begin with the same norms.
    others[0].block.layers[0].load_state_dict(maps_in_torch(state[0].block), strict=False)
    losses, expected = (program.advance(s, plan, rates)[1][:, 0] for program, s in ((ours, state), (theirs, others)))
    # Adam divides gradients by their size: roundings of small ones are as large as the rate, once, in some weights.
    assert losses == pytest.approx(expected, rel=1e-3)
    assert losses[-1] != pytest.approx(losses[0], rel=1e-2)


def test_an_update_without_a_finite_gradient_changes_nothing_and_is_counted(single, ours):
    arrays, moments = ours.start(0)
    poisoned = dataclasses.replace(arrays, embedding=arrays.embedding.at[0, 0].set(jnp.nan))
    (after, _), record = ours.advance((poisoned, moments), np.zeros((5, 8), np.int32), np.ones(5, np.float32))
    assert record[:, 2].all()
    assert np.array_equal(np.asarray(after.readout), np.asarray(arrays.readout))


def test_accuracy_is_the_share_of_answers_that_are_right(theirs):
    state = theirs.start(4)
    with torch.no_grad():
        logits = state[0](torch.from_numpy(TASK.test.features))[0].numpy()
    right = [int(np.argmax(logits[k, n]) == TASK.test.labels[k, n]) for k in range(60) for n in range(3)]
    assert 0 < sum(right) < 180
    assert theirs.score(state, TASK.test)[1:] == (pytest.approx(sum(right) / 180), 0.0)


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


def test_the_loss_of_a_text_counts_gaps_alone_and_examples_are_answered_in_parts(single, monkeypatch):
    monkeypatch.setattr(training, "_AT_ONCE", 16)
    program = training._JaxProgram(modules.stacked("identity mixer", 1, TEXT.grid), TEXT, 8, Recipe(1, 4))
    state = program.start(0)
    some = training.Examples(*(part[:50] for part in TEXT.train))
    logits, converged = (np.asarray(a) for a in program._predicting(state[0], jnp.asarray(some.features)))
    whole = training.scored(logits, converged, some.labels)
    assert float(program._loss(state[0], *map(jnp.asarray, some))[0]) == pytest.approx(whole.loss, rel=1e-5)
    assert program.score(state, some) == (pytest.approx(whole.loss, rel=1e-4), whole.accuracy, 0.0)


@pytest.mark.parametrize(("name", "rate"), [("no feed-forward", 2e-2), ("adaptive TAP, Gaussian", 2e-3)])
def test_permuted_test_labels_give_chance(name, rate):
    # A table whose accuracies were those of examples that were learned would not notice.
    rng = np.random.default_rng(0)
    digits = tasks.classify_digits()
    shuffled = digits.test._replace(labels=rng.permutation(digits.test.labels))
    task = dataclasses.replace(digits, test=shuffled, validation=digits.test)
    outcome = train(name, rate, Recipe(num_updates=50), task=task, seed=1)
    # Each of 360 answers is right by chance once in ten: four standard deviations.
    assert abs(outcome.accuracy - 0.1) < 4 * math.sqrt(0.09 / 360)
    assert outcome.validation_accuracy > 0.3


def test_a_run_is_measured_completely_and_leaves_the_process_as_it_was():
    torch.manual_seed(7)
    before, promotion = torch.get_rng_state(), jax.config.jax_numpy_dtype_promotion
    outcome = training.train(BY_NAME["free energy, symmetric"], TASK, learning_rate=1e-2, seed=1, recipe=TINY)
    assert torch.equal(torch.get_rng_state(), before)
    assert jax.config.jax_enable_x64
    assert jax.config.jax_numpy_dtype_promotion == promotion
    assert outcome.failure == ""
    assert outcome.time_ratio > 0


def test_a_run_from_the_same_seed_is_the_same_and_from_another_is_not():
    first, again, other = (train("adaptive TAP, Gaussian", 1e-3, seed=seed).loss for seed in (1, 1, 2))
    assert first == again != other


def test_failures_come_back_with_their_reason(monkeypatch):
    outcome = train("adaptive TAP, Gaussian", 0.5, Recipe(25, 8))
    assert outcome.failure.startswith("stopped after")
    assert "positive definite" in outcome.failure
    assert math.isnan(outcome.accuracy)
    lazy = BY_NAME["mean-field implicit"]._replace(
        make=lambda key, sites, dim: torch_blocks.MeanField(sites, dim, tol=1e-12, max_steps=1)
    )
    monkeypatch.setitem(BY_NAME, "lazy", lazy)
    outcome = train("lazy", 1e-3)
    assert outcome.unsolved == outcome.unsolved_training == 1
    # No example counts in the loss, and all answers are wrong.
    assert outcome.accuracy == outcome.loss == 0
    assert outcome.failure.startswith("not converged")
    assert training._failure(TINY, 0.1, 0.0, "") == ""
    assert training._failure(TINY, 0.2, 0.0, "").startswith("diverged: 20 %")
    assert training._failure(TINY, 0.0, 0.02, "").startswith("not converged: 2 %")
    assert training._failure(TINY, 0.0, math.nan, "").startswith("not converged")
    with pytest.raises(ValueError, match="num_updates: expected a multiple of 25, got 30"):
        train("vanilla", 1e-3, Recipe(30))


def test_a_course_of_a_stack_has_curves(single):
    recipe = Recipe(num_updates=50, batch=4)
    module = modules.stacked("adaptive TAP, Gaussian", 2, TEXT.grid)
    course = training.follow(module, TEXT, learning_rate=2e-3, seed=1, recipe=recipe, repeats=0, num_looks=2)
    assert course.outcome.failure == ""
    assert course.losses.shape == (2,)
    assert course.outcome.loss == pytest.approx(course.losses[-1], rel=1e-6)
    assert course.looks[0].tolist() == [25, 50]
    # The last look is at the first of the examples for validation, here all of them.
    assert course.looks[1:, -1] == pytest.approx([course.validation.accuracy, course.validation.loss], rel=1e-5)
    with torch.no_grad():
        logits, found = course.network(torch.from_numpy(TEXT.test.features))
    assert training.scored(logits.numpy(), found.converged.numpy(), TEXT.test.labels) == course.test


def test_a_course_hands_over_the_network_that_was_scored(single):
    with jax.numpy_dtype_promotion("standard"):
        course = training.follow(MODULES[0], TASK, learning_rate=2e-3, seed=1, recipe=TINY, repeats=0)
        logits, found = jax.vmap(course.network)(TASK.test.features)
    assert training.scored(np.asarray(logits), np.asarray(found.converged), TASK.test.labels) == pytest.approx(
        course.test, rel=1e-5
    )


def test_layers_of_a_stack_differ_and_follow_each_other():
    stack = modules.stacked("no feed-forward", 2).make(jax.random.key(0), 4, 8)
    first, second = stack.layers
    assert not np.array_equal(first.mixer.to_output, second.mixer.to_output)
    x = jax.random.normal(jax.random.key(1), (4, 8), jnp.float32)
    np.testing.assert_allclose(second(first(x).value).value, stack(x).value, atol=1e-6)


class _Stubborn(torch.nn.Module):
    def forward(self, x):
        return torch_blocks.SettledBatch(x, torch.tensor([True, False]))


def test_an_example_is_solved_where_every_layer_solved_it():
    found = torch_blocks.Stack([torch_blocks.Vanilla(8, 2), _Stubborn(), _Stubborn()])(torch.ones(2, 3, 8))
    assert found.converged.tolist() == [True, False]

    def half(x):
        return blocks.Settled(x, jnp.asarray(False))

    found = blocks.Stack((half, blocks.Block(8, blocks.Identity(), None)))(jnp.ones((3, 8), jnp.float32))
    assert not found.converged


@pytest.mark.slow
def test_a_run_of_the_record_made_again_is_within_its_spread():
    rows = records.of_book("comparison")["rows"]
    row = next(row for row in rows if (row["module"], row["task"]) == ("vanilla", "digits"))
    again = train("vanilla", row["learning_rate"], Recipe(), task=tasks.classify_digits(), seed=1)
    accuracies = np.array([run["accuracy"] for run in row["runs"]])
    # Rounding differs between machines and grows: another machine is like another seed.
    assert abs(again.accuracy - accuracies.mean()) < 4 * accuracies.std(ddof=1) * math.sqrt(1 + 1 / accuracies.size)


def test_every_example_is_drawn_once_a_round_and_in_another_order_for_another_seed():
    plan, other = (training.batches(10, Recipe(num_updates=5, batch=4), seed=seed).ravel() for seed in (0, 1))
    assert sorted(plan[:10]) == sorted(plan[10:]) == list(range(10))
    assert (plan != other).any()
