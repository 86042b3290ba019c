"""Tasks for stacks: what they ask, that it can be known, and what is right without looking."""

import itertools
import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

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


def test_every_token_is_a_key_or_a_value_and_they_alternate():
    features = RECALL.train.features
    assert np.array_equal(features.sum(-1), np.ones(features.shape[:2]))
    is_key = features[..., :24].any(-1)
    assert is_key[:, :24:2].all()
    assert not is_key[:, 1:24:2].any()
    assert is_key[:, 24:].all()


def test_no_single_site_tells_an_answer_so_that_key_and_value_have_to_be_joined():
    """The values of the example, in any order, do not say which is asked for: shuffled among the pairs they mislead."""
    features = RECALL.train.features.copy()
    rng = np.random.default_rng(0)
    order = np.argsort(rng.random((len(features), 12)), axis=1)
    features[:, 1:24:2] = np.take_along_axis(features[:, 1:24:2], order[..., None], axis=1)
    right = np.mean(
        [look_up(f, 12, 24) == label for f, label in zip(features, RECALL.train.labels.tolist(), strict=True)]
    )
    assert right < 0.1


@pytest.mark.parametrize(("pairs", "values"), [(1, 3), (4, 3), (6, 2), (5, 5)])
def test_the_share_of_the_most_frequent_value_is_that_of_enumeration(pairs, values):
    largest = [max(map(drawn.count, drawn)) for drawn in itertools.product(range(values), repeat=pairs)]
    assert tasks.most_frequent(pairs, values) == pytest.approx(np.mean(largest) / pairs, abs=1e-12)


def test_the_most_frequent_value_of_each_example_scores_what_is_computed():
    task = tasks.recall_apart(num_train=4000, num_test=1)
    shares = np.array([np.bincount(labels).max() / 12 for labels in task.train.labels])
    error = shares.std() / math.sqrt(len(shares))
    assert abs(shares.mean() - tasks.most_frequent(12, 8)) < 4 * error


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


def test_pixels_learned_from_have_mean_zero_and_variance_one():
    pixels = MNIST.train.features.astype(float)
    assert pixels.mean() == pytest.approx(0, abs=1e-5)
    assert pixels.std() == pytest.approx(1, abs=1e-5)
    assert [len(part.labels) for part in parts(MNIST)] == [160, 40, 100]


@pytest.mark.parametrize(
    ("options", "words"), [({"patch": 5}, "divisor of 28, got 5"), ({"num_validation": 200}, "num_")]
)
def test_images_that_cannot_be_divided_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        tasks.classify_mnist(mnist.sample(), **options)


def test_filled_gaps_give_the_text_in_its_order():
    filled = []
    for part in parts(TEXT):
        tokens, asked = part.features.argmax(-1), part.labels != tasks.NOT_ASKED
        assert np.array_equal(asked, tokens == 36)
        assert (asked.sum(axis=1) == 5).all()
        filled.append(np.where(asked, part.labels, tokens).ravel())
    whole = moby_dick.encode(moby_dick.sample())
    assert np.array_equal(np.concatenate(filled), whole[: len(whole) // 32 * 32])


def test_gaps_lie_anywhere():
    asked = (TEXT.train.labels != tasks.NOT_ASKED).mean(axis=0)
    error = math.sqrt(5 / 32 * 27 / 32 / len(TEXT.train.labels))
    assert np.abs(asked - 5 / 32).max() < 4.5 * error


def test_a_blind_guess_knows_the_frequencies_and_no_more():
    counts = np.bincount(moby_dick.encode(moby_dick.sample()), minlength=36)
    entropy = -sum(p * math.log(p) for p in counts / counts.sum() if p)
    assert TEXT.blind.loss == pytest.approx(entropy, abs=0.25)
    assert abs(TEXT.blind.accuracy - counts.max() / counts.sum()) < 4 * math.sqrt(0.16 / 155)
    recall = tasks.recall_apart(num_train=4000, num_test=400)
    assert recall.blind.loss == pytest.approx(math.log(8), abs=0.01)
    assert abs(recall.blind.accuracy - 1 / 8) < 4 * math.sqrt(1 / 8 * 7 / 8 / 4800)


def test_neighbours_of_a_gap_tell_more_than_frequencies():
    """That there is something to learn: a linear model of the two neighbours beats a blind guess."""

    def pairs(part):
        sites = [(k, n) for k, n in zip(*np.nonzero(part.labels != tasks.NOT_ASKED), strict=True) if 0 < n < 31]
        x = [np.concatenate([part.features[k, n - 1], part.features[k, n + 1]]) for k, n in sites]
        return np.array(x), np.array([part.labels[k, n] for k, n in sites])

    x, y = pairs(TEXT.train)
    new, labels = pairs(TEXT.test)
    right = LogisticRegression(max_iter=200).fit(x, y).score(new, labels)
    assert right > TEXT.blind.accuracy + 3 * math.sqrt(0.16 / len(labels))


def test_a_text_that_leaves_nothing_to_learn_from_is_refused():
    with pytest.raises(ValueError, match="held_out: expected a part of 618 pieces"):
        tasks.fill_in(moby_dick.sample(), held_out=0.5)
    with pytest.raises(ValueError, match="held_out: expected a part of 2 pieces"):
        tasks.fill_in("x" * 70)
