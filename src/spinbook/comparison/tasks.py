"""The two tasks on which modules are compared: digits from patches, and associative recall. No model, no training.

Both have one form: an example is a matrix of features (sites, features), the answer is asked for at some of the sites,
and it is one of some classes. How features become vectors is the same for every module and belongs to ``training``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from spinbook import digits, validate

__all__ = ["Examples", "Task", "classify_digits", "recall"]


class Examples(NamedTuple):
    """``features`` (examples, sites, features) in single precision, ``labels`` (examples, answers)."""

    features: Float[np.ndarray, "B N F"]
    labels: Int[np.ndarray, "B Q"]


@dataclass(frozen=True, eq=False)
class Task:
    """Examples to learn from, to choose a learning rate by, and to report, and the sites where answers are read.

    A task equals itself alone, so that what is compiled for it can be kept by it. No example is in two of the three
    sets. ``chance`` is the accuracy of guessing at random.
    """

    name: str
    train: Examples
    validation: Examples
    test: Examples
    answer_sites: tuple[int, ...]
    num_classes: int

    @property
    def num_sites(self) -> int:
        """Sites of an example."""
        return self.train.features.shape[1]

    @property
    def num_features(self) -> int:
        """Features of a site."""
        return self.train.features.shape[2]

    @property
    def chance(self) -> float:
        """1 / classes."""
        return 1 / self.num_classes


def _split(features: np.ndarray, labels: np.ndarray, ends: tuple[int, int]) -> tuple[Examples, Examples, Examples]:
    first, second = ends
    parts = (slice(first, second), slice(second, None), slice(first))
    validation, train, test = (Examples(features[part], labels[part]) for part in parts)
    return train, validation, test


def classify_digits(*, seed: int = 0) -> Task:
    """Which digit: 16 patches of 2 x 2 pixels of an image of 8 x 8, and a class token at site 0 that must answer.

    Five features: the pixels of a patch, of mean zero and variance one over the images for training, and 1 at the class
    token, whose pixels are 0. Of the 1797 images ``seed`` chooses 360 for testing and 300 for validation.

    >>> task = classify_digits()
    >>> task.train.features.shape, task.test.labels.shape, task.answer_sites
    ((1137, 17, 5), (360, 1), (0,))
    """
    images = digits.load()
    pixels = np.asarray(images.patterns, np.float32).reshape(-1, 4, 2, 4, 2)
    features = np.zeros((len(pixels), 17, 5), np.float32)
    features[:, 1:, :4] = pixels.transpose(0, 1, 3, 2, 4).reshape(-1, 16, 4)
    features[:, 0, 4] = 1
    order = np.random.default_rng(seed).permutation(len(features))
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
    seed: int = 0,
) -> Task:
    """Which value belonged to this key: ``num_pairs`` sites with a pair each, then the same keys in another order.

    The keys of an example are different, out of ``num_keys``; values are drawn with replacement out of ``num_values``.
    Key and value of a pair share one site, and the features are one-hot in both. (In the usual form of multi-query
    associative recall they are two tokens in a row, which takes two blocks: one to join them, one to look up.) Nothing
    but the pairs of the same example tells the answer. As many examples for validation as for testing.

    >>> task = recall()
    >>> task.train.features.shape, task.test.labels.shape, task.chance
    ((16000, 16, 24), (500, 8), 0.125)
    """
    pairs = validate.count(num_pairs, "num_pairs", minimum=1)
    if num_keys < pairs:
        raise ValueError(f"num_keys: expected at least num_pairs, {pairs}, got {num_keys}")
    size = validate.count(num_train, "num_train", minimum=1) + 2 * validate.count(num_test, "num_test", minimum=1)
    rng = np.random.default_rng(seed)
    keys = np.argsort(rng.random((size, num_keys)), axis=1)[:, :pairs]
    values = rng.integers(0, num_values, (size, pairs))
    order = np.argsort(rng.random((size, pairs)), axis=1)
    asked = np.take_along_axis(keys, order, axis=1)
    one_hot = np.eye(num_keys + num_values, dtype=np.float32)
    features = np.concatenate([one_hot[keys] + one_hot[num_keys + values], one_hot[asked]], axis=1)
    labels = np.take_along_axis(values, order, axis=1).astype(np.int32)
    ends = (num_test, 2 * num_test)
    return Task("recall", *_split(features, labels, ends), tuple(range(pairs, 2 * pairs)), num_values)
