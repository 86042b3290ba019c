"""The simplest methods learn what they can know, and nothing else."""

import itertools

import numpy as np
import pytest

from experiments.comparison import simplest, training
from experiments.comparison.tasks import NOT_ASKED, Examples, Task, classify_mnist, fill_in
from experiments.comparison.training import Recipe
from experiments.datasets import mnist, moby_dick

RECIPE = Recipe(num_updates=200, batch=16)


def separable(rng, *, size=300, flip=False):
    """Two classes that a plane parts, or a sign of a product, which no plane parts."""
    x = rng.normal(size=(size, 2, 1)).astype(np.float32)
    y = (x[:, 0] * x[:, 1] > 0) if flip else (x[:, 0] + 2 * x[:, 1] > 0)
    return Examples(x, y.astype(np.int32))


@pytest.mark.parametrize("flip", [False, True])
def test_a_linear_classifier_parts_what_a_plane_can_part_and_only_that(flip):
    rng = np.random.default_rng(0)
    task = Task("planes", *(separable(rng, flip=flip) for _ in range(3)), (0,), 2)
    test, validation = simplest.train_linear(task, RECIPE, learning_rate=0.05, seed=1)
    if flip:
        # Of four points that quarter turns take into each other, a plane gets three at most.
        assert test.accuracy < 0.75
    else:
        assert min(test.accuracy, validation.accuracy) > 0.95


def test_the_classifier_sees_the_batches_of_the_rows(monkeypatch):
    task = classify_mnist(mnist.sample(), num_validation=50)
    seen = []
    batches = training.batches
    monkeypatch.setattr(training, "batches", lambda *a, **o: seen.append((a, o)) or batches(*a, **o))
    one, two = (simplest.train_linear(task, RECIPE, learning_rate=0.01, seed=seed)[0] for seed in (1, 2))
    assert seen == [((150, RECIPE), {"seed": 1}), ((150, RECIPE), {"seed": 2})]
    assert one != two
    with pytest.raises(ValueError, match="task: expected one with one answer to an example, got 32"):
        simplest.train_linear(fill_in(moby_dick.sample()), RECIPE, learning_rate=0.01, seed=1)


def text_of(rows, hidden):
    """Pieces of a text of the symbols 0, 1 and 2, of which the sites ``hidden`` are asked for."""
    pieces = np.array(rows)
    labels = np.full(pieces.shape, NOT_ASKED, np.int32)
    labels[:, hidden] = pieces[:, hidden]
    shown = np.where(labels == NOT_ASKED, pieces, 3)
    return Examples(np.eye(4, dtype=np.float32)[shown], labels)


def test_counting_finds_a_rule_of_two_neighbours_and_backs_off_without_them():
    # What stands between two symbols is their sum modulo three: neither of them alone says anything.
    rows = [[a, (a + b) % 3, b] for a, b in itertools.product(range(3), repeat=2)] * 40
    whole = text_of(rows, [1])
    score, _ = simplest.count_neighbours(Task("sums", whole, whole, whole, (0, 1, 2), 3))
    assert score.accuracy == 1
    # 360 rows, 40 for each pair of neighbours, drawn by a strength of 1 to one third.
    assert score.loss == pytest.approx(-np.log((40 + 1 / 3) / 41), rel=1e-6)
    # With a neighbour hidden the other says nothing, and a third is what is left.
    part = text_of(rows, [0, 1])
    seen = Examples(part.features, np.where(np.arange(3) == 1, part.labels, NOT_ASKED).astype(np.int32))
    score, _ = simplest.count_neighbours(Task("sums", whole, seen, seen, (0, 1, 2), 3))
    assert score.loss == pytest.approx(np.log(3), rel=1e-3)
