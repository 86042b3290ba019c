"""The tasks on which modules are compared: images from patches, recall, a text with gaps.

All have one form: an example is a matrix of features (sites, features), an answer is asked for at some of the sites or
of their average, and it is one of some classes. How features become vectors is the same for every module and belongs to
``training``. ``classify_digits`` and ``recall`` are for single modules; the others for stacks of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from experiments.datasets import digits, mnist, moby_dick
from spinbook import validate

# The label of a site at which an example asks for nothing.
NOT_ASKED = -1


class Examples(NamedTuple):
    """``features`` (examples, sites, features) in single precision, ``labels`` (examples, answers).

    Where an example is not asked for one of the answers its label is ``NOT_ASKED``.
    """

    features: Float[np.ndarray, "B N F"]
    labels: Int[np.ndarray, "B Q"]


class Blind(NamedTuple):
    """The share of right answers, and the loss in nats per answer, of who answers without looking at the example."""

    accuracy: float
    loss: float


@dataclass(frozen=True, eq=False)
class Task:
    """Examples to learn from, to choose a learning rate by, and to report, and the sites where answers are read.

    A task equals itself alone, so that what is compiled for it can be kept by it. No example is in two of the three
    sets. ``averaged``: the one answer is read off the average over all sites, and ``answer_sites`` is empty. ``grid``:
    how the sites lie, as (rows, columns) or (sites,); empty where neighbours mean nothing.
    """

    name: str
    train: Examples
    validation: Examples
    test: Examples
    answer_sites: tuple[int, ...]
    num_classes: int
    averaged: bool = False
    grid: tuple[int, ...] = ()

    @property
    def num_sites(self) -> int:
        """Sites of an example."""
        return self.train.features.shape[1]

    @property
    def num_features(self) -> int:
        """Features of a site."""
        return self.train.features.shape[2]

    @property
    def blind(self) -> Blind:
        """What the frequencies of the classes in training reach in the test, each class counted once more than seen.

        >>> round(recall(num_train=4000).blind.loss, 2)  # log 8
        2.08
        """
        counts = np.bincount(_asked(self.train), minlength=self.num_classes) + 1
        labels = _asked(self.test)
        losses = -np.log(counts / counts.sum())[labels]
        return Blind(float((labels == counts.argmax()).mean()), float(losses.mean()))


def _asked(examples: Examples) -> np.ndarray:
    labels = examples.labels.ravel()
    return labels[labels != NOT_ASKED]


def _split(features: np.ndarray, labels: np.ndarray, ends: tuple[int, int]) -> tuple[Examples, Examples, Examples]:
    first, second = ends
    parts = (slice(first, second), slice(second, None), slice(first))
    validation, train, test = (Examples(features[part], labels[part]) for part in parts)
    return train, validation, test


def classify_digits() -> Task:
    """Which digit: 16 patches of 2 x 2 pixels of an image of 8 x 8, and a class token at site 0 that must answer.

    Five features: the pixels of a patch, of mean zero and variance one over the images for training, and 1 at the class
    token, whose pixels are 0. Of the 1797 images 360, drawn at random, are for testing and 300 for validation.

    >>> task = classify_digits()
    >>> task.train.features.shape, task.test.labels.shape, task.answer_sites
    ((1137, 17, 5), (360, 1), (0,))
    """
    images = digits.load()
    pixels = np.asarray(images.patterns, np.float32).reshape(-1, 4, 2, 4, 2)
    features = np.zeros((len(pixels), 17, 5), np.float32)
    features[:, 1:, :4] = pixels.transpose(0, 1, 3, 2, 4).reshape(-1, 16, 4)
    features[:, 0, 4] = 1
    order = np.random.default_rng(0).permutation(len(features))
    seen = pixels[order[660:]]
    features[:, 1:, :4] = (features[:, 1:, :4] - seen.mean()) / seen.std()
    labels = np.asarray(images.labels, np.int32)[order, None]
    return Task("digits", *_split(features[order], labels, (360, 660)), (0,), 10)


def recall(
    *,
    num_pairs: int = 8,
    num_keys: int = 16,
    num_values: int = 8,
    num_train: int = 16000,
    num_test: int = 500,
) -> Task:
    """Which value belonged to this key: ``num_pairs`` sites with a pair each, then the same keys in another order.

    The keys of an example are different, out of ``num_keys``; values are drawn with replacement out of ``num_values``.
    Key and value of a pair share one site, and the features are one-hot in both. (In the usual form of multi-query
    associative recall they are two tokens in a row, which takes two blocks: one to join them, one to look up.) Nothing
    but the pairs of the same example tells the answer. As many examples for validation as for testing.

    >>> task = recall()
    >>> task.train.features.shape, task.test.labels.shape
    ((16000, 16, 24), (500, 8))
    """
    pairs = validate.count(num_pairs, "num_pairs", minimum=1)
    num_keys = validate.count(num_keys, "num_keys", minimum=pairs)
    num_values = validate.count(num_values, "num_values", minimum=1)
    size = validate.count(num_train, "num_train", minimum=1) + 2 * validate.count(num_test, "num_test", minimum=1)
    rng = np.random.default_rng(0)
    keys = np.argsort(rng.random((size, num_keys)), axis=1)[:, :pairs]
    values = rng.integers(0, num_values, (size, pairs))
    order = np.argsort(rng.random((size, pairs)), axis=1)
    asked = np.take_along_axis(keys, order, axis=1)
    one_hot = np.eye(num_keys + num_values, dtype=np.float32)
    features = np.concatenate([one_hot[keys] + one_hot[num_keys + values], one_hot[asked]], axis=1)
    labels = np.take_along_axis(values, order, axis=1).astype(np.int32)
    ends = (num_test, 2 * num_test)
    return Task("recall", *_split(features, labels, ends), tuple(range(pairs, 2 * pairs)), num_values)


def most_frequent(num_pairs: int, num_values: int) -> float:
    """E max_v n_v / P for P values drawn uniformly out of V: the best share of right answers without a look-up.

    n_v counts value v in the example. From P(max n_v <= m) = P! V^-P [x^P] (sum_{k <= m} x^k / k!)^V. Who does not know
    which value stands with which key can answer every question best by the most frequent value.

    >>> most_frequent(1, 8), most_frequent(2, 2), most_frequent(5, 1)
    (1.0, 0.75, 1.0)
    """
    pairs = validate.count(num_pairs, "num_pairs", minimum=1)
    values = validate.count(num_values, "num_values", minimum=1)
    at_most = []
    for m in range(pairs + 1):
        # Times P! V^-P, shared out over the factors so that nothing overflows.
        series = np.array([1 / math.factorial(k) for k in range(m + 1)])
        power = np.ones(1)
        for _ in range(values):
            power = np.convolve(power, series)[: pairs + 1]
        coefficient = power[pairs] if len(power) > pairs else 0.0
        at_most.append(coefficient * math.factorial(pairs) / values**pairs)
    probabilities = np.diff(at_most, prepend=0.0)
    return float(probabilities @ np.arange(pairs + 1) / pairs)


def classify_mnist(images: mnist.Images | None = None, *, patch: int = 7, num_validation: int | None = None) -> Task:
    """Which digit: the patches of ``patch`` x ``patch`` pixels of an image of 28 x 28, read off the average over them.

    Features are the pixels of a patch, row by row, of mean zero and variance one over the images for training; there is
    no class token, so that modules that mix neighbours only have what they need. ``images``: those of
    ``mnist.load()`` unless given. A twelfth of the training set, drawn at random, or ``num_validation`` images are
    for validation; the test set is that of MNIST.

    >>> task = classify_mnist(mnist.sample(), num_validation=50)
    >>> task.train.features.shape, task.test.labels.shape, task.grid
    ((150, 16, 49), (100, 1), (4, 4))
    """
    patch = validate.count(patch, "patch", minimum=1, maximum=28)
    side = 28 // patch
    if 28 % patch:
        raise ValueError(f"patch: expected a divisor of 28, got {patch}")
    images = mnist.load() if images is None else images
    size = len(images.train)
    held_out = validate.count(
        size // 12 if num_validation is None else num_validation, "num_validation", minimum=1, maximum=size - 1
    )
    order = np.random.default_rng(0).permutation(size)

    def cut(pixels: np.ndarray) -> np.ndarray:
        squares = pixels.reshape(-1, side, patch, side, patch).transpose(0, 1, 3, 2, 4)
        return squares.reshape(len(pixels), side * side, patch * patch).astype(np.float32)

    known = cut(images.train)[order]
    seen = known[held_out:]
    mean, spread = seen.mean(dtype=np.float64), seen.std(dtype=np.float64)

    def examples(features: np.ndarray, labels: np.ndarray) -> Examples:
        return Examples(((features - mean) / spread).astype(np.float32), labels.astype(np.int32)[:, None])

    answers = images.train_labels[order]
    return Task(
        "mnist",
        examples(seen, answers[held_out:]),
        examples(known[:held_out], answers[:held_out]),
        examples(cut(images.test), images.test_labels),
        (),
        10,
        averaged=True,
        grid=(side, side),
    )


def fill_in(text: str | None = None, *, num_characters: int = 32, num_gaps: int = 5, held_out: float = 0.05) -> Task:
    """Which characters stood in the gaps: pieces of *Moby-Dick*, in each of which some characters are hidden.

    The text is cut into pieces of ``num_characters`` that do not overlap. Its last pieces, a part ``held_out``, are the
    test, as many before them for validation: pages that no part of training has seen. In each piece ``num_gaps`` sites,
    drawn at random, are hidden and asked for; the others have label ``NOT_ASKED``. Modules see both sides of a gap,
    so that none of them needs a causal form. Features are one-hot in ``moby_dick.ALPHABET``, the last one for a gap.
    ``text``: that of ``moby_dick.load()`` unless given.

    >>> task = fill_in(moby_dick.sample())
    >>> task.test.features.shape, (task.test.labels != NOT_ASKED).sum(axis=1)[:3].tolist()  # exact
    ((30, 32, 37), [5, 5, 5])
    """
    size = validate.count(num_characters, "num_characters", minimum=1)
    gaps = validate.count(num_gaps, "num_gaps", minimum=1, maximum=size)
    part = validate.number(held_out, "held_out", above=0)
    characters = moby_dick.encode(moby_dick.load() if text is None else text)
    pieces = characters[: len(characters) // size * size].reshape(-1, size)
    last = int(part * len(pieces))
    if last < 1 or 2 * last >= len(pieces):
        raise ValueError(
            f"held_out: expected a part of {len(pieces)} pieces that leaves some for training, validation and testing, "
            f"got {part:g}"
        )
    rng = np.random.default_rng(0)
    hidden = np.argsort(rng.random(pieces.shape), axis=1)[:, :gaps]
    labels = np.full(pieces.shape, NOT_ASKED, np.int32)
    np.put_along_axis(labels, hidden, np.take_along_axis(pieces, hidden, axis=1).astype(np.int32), axis=1)
    shown = np.where(labels == NOT_ASKED, pieces, len(moby_dick.ALPHABET))
    one_hot = np.eye(len(moby_dick.ALPHABET) + 1, dtype=np.float32)

    def examples(which: slice) -> Examples:
        return Examples(one_hot[shown[which]], labels[which])

    bounds = (slice(-2 * last), slice(-2 * last, -last), slice(-last, None))
    train, validation, test = (examples(which) for which in bounds)
    return Task("text", train, validation, test, tuple(range(size)), len(moby_dick.ALPHABET), grid=(size,))
