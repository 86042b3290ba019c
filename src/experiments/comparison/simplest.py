"""What the simplest method gets on a task of the comparison of stacks, beside its rows. Has no modules and no depth.

On images that is a linear classifier of all pixels, trained like every row. On the text it is counting: what stands
between two neighbours, how often.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from experiments import records
from experiments.comparison import training
from experiments.comparison.tasks import NOT_ASKED, Examples, Task
from experiments.comparison.training import Recipe, Score
from spinbook import validate
from spinbook.precision import enable_x64

__all__ = ["compare", "count_neighbours", "recorded", "train_linear"]

_ARTIFACT = "simplest.json.gz"
_STRENGTHS = (1.0, 3.0, 10.0, 30.0, 100.0)


def _logits(weights: Array, features: Array) -> Array:
    return features @ weights[:-1] + weights[-1]


def _flat(examples: Examples) -> Float[np.ndarray, "n D"]:
    return examples.features.reshape(len(examples.features), -1)


def train_linear(task: Task, recipe: Recipe, *, learning_rate: float, seed: int) -> tuple[Score, Score]:
    """Scores of softmax(W x + b) of all features x of an example, in the test and in validation.

    From W = 0, with the batches, the profile of rates, Adam and the clipped gradients of every row of the comparison.
    Raises ``ValueError`` for a task that asks more than one thing of an example.

    >>> from experiments.comparison.tasks import classify_mnist
    >>> from experiments.datasets import mnist
    >>> task = classify_mnist(mnist.sample(), num_validation=50)
    >>> train_linear(task, Recipe(num_updates=50, batch=8), learning_rate=1e-2, seed=1)[0].accuracy > 0.5
    True
    """
    if task.train.labels.shape[1] != 1:
        raise ValueError(f"task: expected one with one answer to an example, got {task.train.labels.shape[1]}")
    rate = float(validate.positive(learning_rate, "learning_rate", ndim=0))
    # As in training: single precision, whatever the process is set to.
    with enable_x64(False), jax.numpy_dtype_promotion("standard"):
        weights = _trained(task, recipe, rate, seed)

        def score(examples: Examples) -> Score:
            logits = np.asarray(_logits(weights, jnp.asarray(_flat(examples))))[:, None]
            return training.scored(logits, np.ones(len(logits), bool), examples.labels)

        return score(task.test), score(task.validation)


def _trained(task: Task, recipe: Recipe, rate: float, seed: int) -> Array:
    features, labels = jnp.asarray(_flat(task.train)), jnp.asarray(task.train.labels[:, 0])
    optimizer = optax.chain(
        optax.clip_by_global_norm(training._CLIP), optax.scale_by_adam(*training._BETAS, training._EPSILON)
    )

    def loss(weights: Array, chosen: Array) -> Array:
        logits = _logits(weights, features[chosen])
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels[chosen]).mean()

    def update(state: Any, now: tuple[Array, Array]) -> tuple[Any, None]:
        weights, moments = state
        chosen, size = now
        change, moments = optimizer.update(jax.grad(loss)(weights, chosen), moments)
        return (weights - size * change, moments), None

    plan = jnp.asarray(training.batches(len(labels), recipe, seed=seed))
    sizes = jnp.asarray(np.float32(rate) * training.rate_profile(recipe.num_updates))
    start = jnp.zeros((features.shape[1] + 1, task.num_classes), jnp.float32)
    found: Array = jax.lax.scan(update, (start, optimizer.init(start)), (plan, sizes))[0][0]
    return found


def _neighbours(examples: Examples) -> np.ndarray:
    """(n, sites, 2): what is seen at the left and at the right of each site; the last symbol where nothing is."""
    seen = examples.features.argmax(axis=-1)
    nothing = examples.features.shape[-1] - 1
    padded = np.pad(seen, ((0, 0), (1, 1)), constant_values=nothing)
    return np.stack([padded[:, :-2], padded[:, 2:]], axis=-1)


def _log_probabilities(
    task: Task, strength: float, examples: Examples, counts: Float[np.ndarray, "V V V"]
) -> Float[np.ndarray, "n sites V"]:
    """log P(c | l, r), (n(l, c, r) + k B(c)) / (n(l, r) + k), where B(c) goes with P(c | l) P(c | r) / P(c).

    k is the ``strength`` with which the pairs of neighbours are drawn to what each neighbour says alone; P(c | l) is
    drawn to P(c) in the same way, and a neighbour that is not seen says nothing.
    """
    alone = (counts.sum(axis=(0, 2)) + 1) / (counts.sum() + len(counts))

    def given(pairs: np.ndarray) -> np.ndarray:
        """log P(c | neighbour) / P(c), a row of zeros at the end for a neighbour that is not seen."""
        smooth = (pairs + strength * alone) / (pairs.sum(axis=1, keepdims=True) + strength)
        return np.vstack([np.log(smooth / alone), np.zeros(len(alone))])

    left, right = np.moveaxis(_neighbours(examples), -1, 0)
    base = np.log(alone) + given(counts.sum(axis=2))[left] + given(counts.sum(axis=0).T)[right]
    base = np.exp(base - base.max(axis=-1, keepdims=True))
    base /= base.sum(axis=-1, keepdims=True)
    # Nothing was counted beside a neighbour that is not seen, which leaves what the other one says.
    between = np.pad(counts, ((0, 1), (0, 0), (0, 1)))[left, :, right]
    found: np.ndarray = np.log((between + strength * base) / (between.sum(axis=-1, keepdims=True) + strength))
    return found


def count_neighbours(task: Task) -> tuple[Score, float]:
    """The score in the test of P(c | left, right) by counts in training, and the strength of the back-off.

    The strength is the best in validation out of five. Raises ``ValueError`` for a task that hides nothing.

    >>> from experiments.comparison.tasks import fill_in
    >>> from experiments.datasets import moby_dick
    >>> task = fill_in(moby_dick.sample())
    >>> count_neighbours(task)[0].loss < task.blind.loss
    True
    """
    labels, classes = task.train.labels, task.num_classes
    if task.num_features != classes + 1:
        raise ValueError(f"task: expected {classes + 1} features, one for a gap, got {task.num_features}")
    whole = np.where(labels == NOT_ASKED, task.train.features.argmax(axis=-1), labels)
    counts = np.zeros((classes,) * 3)
    np.add.at(counts, (whole[:, :-2], whole[:, 1:-1], whole[:, 2:]), 1)

    def score(strength: float, examples: Examples) -> Score:
        logits = _log_probabilities(task, strength, examples, counts)
        return training.scored(logits, np.ones(len(logits), bool), examples.labels)

    best = min(_STRENGTHS, key=lambda strength: score(strength, task.validation).loss)
    return score(best, task.test), best


def compare(
    task: Task,
    text: Task,
    *,
    folder: str | os.PathLike[str],
    recipe: Recipe,
    learning_rates: Sequence[float],
    num_seeds: int,
) -> dict[str, Any]:
    """The record of both methods, also written to ``simplest.json.gz`` in ``folder``.

    The rate of the classifier is the best in validation from seed 0, as for every row; what counts are the seeds 1 to
    ``num_seeds``, whose batches are those of the rows. Counting has no seed.
    """
    growing = records.Growing.at(folder, _ARTIFACT)
    trials = [train_linear(task, recipe, learning_rate=rate, seed=0)[1].accuracy for rate in learning_rates]
    rate = learning_rates[int(np.argmax(trials))]
    seeds = list(range(1, num_seeds + 1))
    scores = [train_linear(task, recipe, learning_rate=rate, seed=seed)[0] for seed in seeds]
    counted, strength = count_neighbours(text)
    content = {
        "format": 1,
        "recipe": recipe._asdict(),
        task.name: {
            "method": "a linear classifier of all pixels",
            "learning_rates": list(learning_rates),
            "validation_accuracy": records.numbers(trials, 6),
            "learning_rate": rate,
            "seed": seeds,
            "accuracy": records.numbers([score.accuracy for score in scores], 6),
            "loss": records.numbers([score.loss for score in scores], 6),
        },
        text.name: {
            "method": "counts of what stands between two neighbours",
            "strength": strength,
            "accuracy": records.numbers(counted.accuracy, 6),
            "loss": records.numbers(counted.loss, 6),
        },
    }
    return growing.write(content)


def recorded() -> dict[str, Any]:
    """What ``compare`` found for the whole data sets, from the file beside this module.

    >>> sorted(recorded()["text"])
    ['accuracy', 'loss', 'method', 'strength']
    """
    return records.beside("experiments.comparison", _ARTIFACT)
