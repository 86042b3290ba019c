"""Tasks for stacks: what they ask, that it can be known, and what is right without looking."""

import itertools
import math

import numpy as np
import pytest

from experiments.comparison import tasks
from experiments.datasets import mnist, moby_dick

SMALL = {"num_train": 300, "num_test": 40}
RECALL = tasks.recall_apart(**SMALL)
MNIST = tasks.classify_mnist(mnist.sample(), num_validation=40)
TEXT = tasks.fill_in(moby_dick.sample())


def parts(task):
    return task.train, task.validation, task.test


def look_up(features, num_pairs, num_keys):
    """An oracle that knows the rule alone: the token after the key that is asked for."""
    tokens = features.argmax(-1)
    told = dict(
        zip(tokens[: 2 * num_pairs : 2].tolist(), (tokens[1 : 2 * num_pairs : 2] - num_keys).tolist(), strict=True)
    )
    return [told[key] for key in tokens[2 * num_pairs :].tolist()]


@pytest.mark.parametrize(("pairs", "keys", "values"), [(12, 24, 8), (3, 3, 2)])
def test_the_token_after_the_key_is_always_the_answer(pairs, keys, values):
    task = tasks.recall_apart(num_pairs=pairs, num_keys=keys, num_values=values, **SMALL)
    assert task.answer_sites == tuple(range(2 * pairs, 3 * pairs))
    for part in parts(task):
        for features, labels in zip(part.features, part.labels, strict=True):
            assert look_up(features, pairs, keys) == labels.tolist()


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
    recall = tasks.recall_apart(num_train=4000, num_test=400)
    assert recall.blind.loss == pytest.approx(math.log(8), abs=0.01)
    assert abs(recall.blind.accuracy - 1 / 8) < 4 * math.sqrt(1 / 8 * 7 / 8 / 4800)


def test_a_text_that_leaves_nothing_to_learn_from_is_refused():
    with pytest.raises(ValueError, match="held_out: expected a part of 618 pieces"):
        tasks.fill_in(moby_dick.sample(), held_out=0.5)
    with pytest.raises(ValueError, match="held_out: expected a part of 2 pieces"):
        tasks.fill_in("x" * 70)
