"""Tasks ask what they say, and no example is met in training and in the test."""

import itertools
import math

import numpy as np
import pytest
from sklearn.datasets import load_digits

from experiments.comparison import tasks
from experiments.datasets import mnist, moby_dick

SMALL = {"num_train": 200, "num_test": 50}


TASKS = [
    tasks.classify_digits(),
    tasks.recall(**SMALL),
    tasks.classify_mnist(mnist.sample(), num_validation=40),
    (TEXT := tasks.fill_in(moby_dick.sample())),
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


def parts(task):
    return task.train, task.validation, task.test


@pytest.mark.parametrize(("pairs", "values"), [(1, 3), (4, 3), (6, 2), (5, 5)])
def test_the_share_of_the_most_frequent_value_is_that_of_enumeration(pairs, values):
    largest = [max(map(drawn.count, drawn)) for drawn in itertools.product(range(values), repeat=pairs)]
    assert tasks.most_frequent(pairs, values) == pytest.approx(np.mean(largest) / pairs, abs=1e-12)


def test_patches_put_together_are_the_image_with_that_label():
    images = mnist.sample()
    known = {image.tobytes(): label for image, label in zip(images.test, images.test_labels, strict=True)}
    for patch in (4, 7):
        task = tasks.classify_mnist(images, patch=patch, num_validation=40)
        side = 28 // patch
        pixels = task.test.features.reshape(-1, side, side, patch, patch).transpose(0, 1, 3, 2, 4).reshape(-1, 28, 28)
        seen = np.round(255 * (pixels - pixels.min()) / (pixels.max() - pixels.min())).astype(np.uint8)
        assert [known[image.tobytes()] for image in seen] == task.test.labels[:, 0].tolist()
        assert task.grid == (side, side)


def test_filled_gaps_give_the_text_in_its_order():
    filled = []
    for part in parts(TEXT):
        tokens, asked = part.features.argmax(-1), part.labels != tasks.NOT_ASKED
        assert np.array_equal(asked, tokens == 36)
        assert (asked.sum(axis=1) == 5).all()
        filled.append(np.where(asked, part.labels, tokens).ravel())
    whole = moby_dick.encode(moby_dick.sample())
    assert np.array_equal(np.concatenate(filled), whole[: len(whole) // 32 * 32])


def test_a_blind_guess_knows_the_frequencies_and_no_more():
    counts = np.bincount(moby_dick.encode(moby_dick.sample()), minlength=36)
    entropy = -sum(p * math.log(p) for p in counts / counts.sum() if p)
    assert TEXT.blind.loss == pytest.approx(entropy, abs=0.25)
    assert abs(TEXT.blind.accuracy - counts.max() / counts.sum()) < 4 * math.sqrt(0.16 / 155)
    recall = tasks.recall(num_train=4000, num_test=600)
    assert recall.blind.loss == pytest.approx(math.log(8), abs=0.01)
    assert abs(recall.blind.accuracy - 1 / 8) < 4 * math.sqrt(1 / 8 * 7 / 8 / 4800)


def test_a_text_that_leaves_nothing_to_learn_from_is_refused():
    with pytest.raises(ValueError, match="held_out: expected a part of 618 pieces"):
        tasks.fill_in(moby_dick.sample(), held_out=0.5)
    with pytest.raises(ValueError, match="held_out: expected a part of 2 pieces"):
        tasks.fill_in("x" * 70)
