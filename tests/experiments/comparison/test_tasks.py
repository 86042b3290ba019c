"""Tasks ask what they say, and no example is met in training and in the test."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from experiments.comparison import tasks
from experiments.datasets import mnist, moby_dick

SMALL = {"num_train": 200, "num_test": 50}


TASKS = [
    tasks.classify_digits(),
    tasks.recall(**SMALL),
    tasks.recall_apart(**SMALL),
    tasks.classify_mnist(mnist.sample(), num_validation=40),
    tasks.fill_in(moby_dick.sample()),
]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_no_example_of_the_test_is_among_those_learned_from(task):
    parts = (task.train, task.validation, task.test)
    train, validation, test = ({example.tobytes() for example in part.features} for part in parts)
    assert not train & validation
    assert not train & test
    assert not validation & test


def test_the_three_sets_of_digits_are_all_of_the_images():
    task, bundled = tasks.classify_digits(), load_digits()
    parts = (task.train, task.validation, task.test)
    assert [len(part.labels) for part in parts] == [1137, 300, 360]
    labels = np.concatenate([part.labels for part in parts])[:, 0]
    assert np.bincount(labels).tolist() == np.bincount(bundled.target).tolist()


def test_patches_are_the_pixels_of_the_image_with_that_label():
    task, bundled = tasks.classify_digits(), load_digits()
    # Patches row by row, back into images; the scale is found from the extremes, which are 0 and 16.
    pixels = task.test.features[:, 1:, :4].reshape(-1, 4, 4, 2, 2).transpose(0, 1, 3, 2, 4).reshape(-1, 64)
    pixels = np.round(16 * (pixels - pixels.min()) / (pixels.max() - pixels.min()))
    known = {image.tobytes(): label for image, label in zip(bundled.data, bundled.target, strict=True)}
    assert [known[image.astype(float).tobytes()] for image in pixels] == task.test.labels[:, 0].tolist()


def test_pixels_learned_from_have_mean_zero_and_variance_one():
    pixels = tasks.classify_digits().train.features[:, 1:, :4].astype(float)
    assert pixels.mean() == pytest.approx(0, abs=1e-6)
    assert pixels.std() == pytest.approx(1, abs=1e-6)


def test_an_answer_is_the_value_that_stands_with_the_key():
    task = tasks.recall(num_pairs=5, num_keys=9, num_values=4, **SMALL)
    assert task.answer_sites == (5, 6, 7, 8, 9)
    for features, labels in zip(task.train.features, task.train.labels, strict=True):
        stored = {int(pair[:9].argmax()): int(pair[9:].argmax()) for pair in features[:5]}
        assert [stored[int(asked[:9].argmax())] for asked in features[5:]] == labels.tolist()


def test_answers_are_as_frequent_as_chance_and_do_not_follow_from_the_key():
    task = tasks.recall(num_train=4000, num_test=1)
    asked, labels = task.train.features[:, 8:, :16].argmax(-1), task.train.labels
    counts = np.zeros((16, 8))
    np.add.at(counts, (asked, labels), 1)
    expected = counts.sum(axis=1, keepdims=True) / 8
    # Chi-square with 16 * 7 degrees of freedom: mean 112, standard deviation 15.
    assert abs(((counts - expected) ** 2 / expected).sum() - 112) < 4 * 15
