"""Runs of both frameworks are one experiment, failures come back with a reason, and nothing outside is touched."""

import dataclasses
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from experiments.comparison import tasks, training
from experiments.comparison.modules import MODULES
from experiments.comparison.training import Recipe
from spinbook.precision import enable_x64
from tests.experiments.comparison.test_blocks import maps_in_torch

TASK = tasks.recall(num_pairs=3, num_keys=6, num_values=4, num_train=120, num_test=60)
BY_NAME = {module.name: module for module in MODULES}
TINY = Recipe(num_updates=5, batch=8)


def test_the_rate_rises_for_a_tenth_of_the_updates_and_falls_to_zero():
    profile = training.rate_profile(100)
    assert profile.max() == profile[9] == 1
    assert (np.diff(profile[:10]) > 0).all()
    assert (np.diff(profile[11:]) < 0).all()
    assert profile[-1] < 1e-3


class _Parts(NamedTuple):
    ours: training._JaxProgram
    theirs: training._TorchProgram


@pytest.fixture(scope="module")
def parts():
    with enable_x64(False), jax.numpy_dtype_promotion("standard"):
        ours = training._JaxProgram(MODULES[0], TASK, 8, TINY)
    return _Parts(ours, training._TorchProgram(training._TORCH_VANILLA, TASK, 8, TINY))


def test_the_same_weights_and_batches_give_the_same_losses_in_both_frameworks(single, parts):
    plan, rate = training.batches(120, TINY, seed=0), 0.02
    profile = np.float32(rate) * training.rate_profile(len(plan))
    state = parts.ours.start(0)
    block = state[0].block
    losses = np.asarray(parts.ours.advance(state, parts.ours.data, jnp.asarray(plan), jnp.asarray(profile))[1][0])
    net, optimizer = parts.theirs.start(0)
    for name, array in training.shared_start(TASK, 8, seed=0).items():
        assert np.array_equal(getattr(net, name).detach().numpy(), array)
    # Both begin with the same norms.
    net.block.load_state_dict(maps_in_torch(block), strict=False)
    theirs = [
        parts.theirs.update((net, optimizer), chosen, float(now))[0] for chosen, now in zip(plan, profile, strict=True)
    ]
    # Adam divides gradients by their size: roundings of small ones are as large as the rate, once, in some weights.
    assert losses == pytest.approx(theirs, rel=1e-3)
    assert losses[-1] != pytest.approx(losses[0], rel=1e-2)


def test_accuracy_is_the_share_of_answers_that_are_right(parts):
    net = parts.theirs.start(4)[0]
    with torch.no_grad():
        logits = net(torch.from_numpy(TASK.test.features))[0].numpy()
    right = [
        int(np.argmax(logits[example, k]) == TASK.test.labels[example, k]) for example in range(60) for k in range(3)
    ]
    assert 0 < sum(right) < 180
    assert parts.theirs.score(net, TASK.test)[1:] == (pytest.approx(sum(right) / 180), 0.0)


@pytest.mark.parametrize(("name", "rate"), [("no feed-forward", 2e-2), ("adaptive TAP, Gaussian", 2e-3)])
def test_permuted_test_labels_give_chance(name, rate):
    # A table whose accuracies were those of examples that were learned would not notice.
    rng = np.random.default_rng(0)
    digits = tasks.classify_digits()
    shuffled = digits.test._replace(labels=rng.permutation(digits.test.labels))
    task = dataclasses.replace(digits, test=shuffled, validation=digits.test)
    outcome = training.train(BY_NAME[name], task, learning_rate=rate, seed=1, recipe=Recipe(num_updates=50), repeats=0)
    # Each of 360 answers is right by chance once in ten: four standard deviations.
    assert abs(outcome.accuracy - 0.1) < 4 * math.sqrt(0.09 / 360)
    assert outcome.validation_accuracy > 0.3


def test_an_update_without_a_finite_gradient_changes_nothing_and_is_counted(single, parts):
    arrays, moments = parts.ours.start(0)
    poisoned = arrays.__class__(
        arrays.embedding.at[0, 0].set(jnp.nan),
        *[getattr(arrays, f) for f in ("positions", "readout", "bias")],
        arrays.block,
        arrays.answer_sites,
        arrays.normalized,
    )
    plan = jnp.zeros((5, 8), jnp.int32), jnp.ones(5, jnp.float32)
    (after, _), (_, _, skipped) = parts.ours.advance((poisoned, moments), parts.ours.data, *plan)
    assert skipped.all()
    assert np.array_equal(np.asarray(after.readout), np.asarray(arrays.readout))


def test_a_run_is_measured_completely_and_leaves_the_process_as_it_was():
    torch.manual_seed(7)
    before, promotion = torch.get_rng_state(), jax.config.jax_numpy_dtype_promotion
    outcome = training.train(BY_NAME["free energy, symmetric"], TASK, learning_rate=1e-2, seed=1, recipe=TINY)
    assert torch.equal(torch.get_rng_state(), before)
    assert jax.config.jax_enable_x64
    assert jax.config.jax_numpy_dtype_promotion == promotion
    assert outcome.failure == ""
    assert outcome.production_before == outcome.production_after == 0
    assert outcome.steps_after >= 1
    assert outcome.time_ratio > 0
    assert outcome.memory_ratio > 0
    assert math.isnan(outcome.contraction_after)


def test_a_run_from_the_same_seed_is_the_same_and_from_another_is_not():
    module = BY_NAME["adaptive TAP, Gaussian"]

    def loss(seed):
        return training.train(module, TASK, learning_rate=1e-3, seed=seed, recipe=TINY, repeats=0).loss

    assert loss(1) == loss(1) != loss(2)


def test_a_model_that_cannot_be_normalised_is_a_row_with_its_reason():
    outcome = training.train(
        BY_NAME["adaptive TAP, Gaussian"], TASK, learning_rate=0.5, seed=0, recipe=Recipe(25, 8), repeats=0
    )
    assert outcome.failure.startswith("stopped after")
    assert "positive definite" in outcome.failure
    assert math.isnan(outcome.accuracy)


def test_a_solver_that_gives_up_is_counted_and_its_answers_are_wrong():
    module = BY_NAME["mean-field implicit"]._replace(
        make=lambda key, sites, dim: training.torch_blocks.MeanField(sites, dim, tol=1e-12, max_steps=1)
    )
    outcome = training.train(module, TASK, learning_rate=1e-3, seed=0, recipe=TINY, repeats=0)
    assert outcome.unsolved == outcome.unsolved_training == 1
    assert outcome.accuracy == 0
    # No example counts in the loss.
    assert outcome.loss == 0
    assert outcome.failure.startswith("not converged")


def test_a_run_with_updates_left_out_has_failed_beyond_what_is_allowed():
    assert training._failure(TINY, 0.1, 0.0, "") == ""
    assert training._failure(TINY, 0.2, 0.0, "").startswith("diverged: 20 %")
    assert training._failure(TINY, 0.0, 0.02, "").startswith("not converged: 2 %")
    assert training._failure(TINY, 0.0, math.nan, "").startswith("not converged")


def test_temporary_memory_of_an_update_grows_with_the_batch():
    small, large = (training._TorchProgram(training._TORCH_VANILLA, TASK, 8, Recipe(1, batch)) for batch in (8, 80))
    assert 5 < large.temporary_bytes / small.temporary_bytes <= 10.5


def test_updates_that_do_not_fill_whole_chunks_and_a_rate_of_zero_are_refused():
    with pytest.raises(ValueError, match="num_updates: expected a multiple of 25, got 30"):
        training.train(MODULES[0], TASK, learning_rate=1e-3, seed=0, recipe=Recipe(30))
    with pytest.raises(ValueError, match="learning_rate"):
        training.train(MODULES[0], TASK, learning_rate=0.0, seed=0, recipe=TINY)


@pytest.mark.slow
def test_a_block_that_mixes_nothing_answers_by_chance_and_attention_does_not():
    task = tasks.recall(num_train=4000)
    recipe = Recipe(100, 32)
    outcomes = {
        name: training.train(BY_NAME[name], task, learning_rate=2e-2, seed=1, recipe=recipe, repeats=0)
        for name in ("identity mixer", "vanilla")
    }
    # 4000 answers, eight of them to one example: at most eight times the variance of independent ones.
    error = math.sqrt(8 * task.chance * (1 - task.chance) / 4000)
    assert abs(outcomes["identity mixer"].accuracy - task.chance) < 4 * error
    assert outcomes["vanilla"].accuracy > 0.9
