"""A file that is missing, cut short or changed is told in words, and never taken for the data."""

import gzip
import hashlib

import pytest

from experiments.datasets import files

TEXT = b"the whale, the whale\n" * 50
KNOWN = files.Known("text", len(TEXT), hashlib.sha256(TEXT).hexdigest())
HOW = {"argument": "folder", "how": "Ask the librarian."}


@pytest.fixture(autouse=True)
def nowhere(monkeypatch):
    monkeypatch.delenv(files.ENVIRONMENT, raising=False)


def test_a_whole_file_is_read_compressed_or_not(tmp_path):
    (tmp_path / "text").write_bytes(TEXT)
    assert files.content(tmp_path, KNOWN) == TEXT
    (tmp_path / "text").unlink()
    (tmp_path / "text.gz").write_bytes(gzip.compress(TEXT))
    assert files.content(tmp_path, KNOWN) == TEXT
    assert files.located(tmp_path, [KNOWN], ["."], **HOW) == tmp_path


def test_one_changed_bit_is_refused_with_both_checksums(tmp_path):
    changed = bytes([TEXT[0] ^ 1]) + TEXT[1:]
    (tmp_path / "text").write_bytes(changed)
    with pytest.raises(
        ValueError, match=f"expected the SHA-256 {KNOWN.sha256}, got {hashlib.sha256(changed).hexdigest()}"
    ):
        files.content(tmp_path, KNOWN)


@pytest.mark.parametrize(("change", "words"), [(-1, "1049: it is cut short"), (1, "1051: it is too long")])
def test_a_file_of_another_length_is_refused_with_both_lengths(tmp_path, change, words):
    (tmp_path / "text").write_bytes((TEXT + b"x")[: len(TEXT) + change])
    with pytest.raises(ValueError, match=f"text: expected 1050 bytes, got {words}"):
        files.content(tmp_path, KNOWN)


@pytest.mark.parametrize("spoil", [lambda data: data[:-9], lambda data: b"no gzip", lambda data: data[:20] + data[30:]])
def test_a_compressed_file_that_is_damaged_is_refused(tmp_path, spoil):
    (tmp_path / "text.gz").write_bytes(spoil(gzip.compress(TEXT)))
    with pytest.raises(ValueError, match=r"text\.gz: expected a whole file in gzip's format, got a damaged one"):
        files.content(tmp_path, KNOWN)


def test_what_is_missing_is_named_with_the_way_to_get_it(tmp_path):
    other = files.Known("title", 0, "")
    (tmp_path / "text").write_bytes(TEXT)
    with pytest.raises(FileNotFoundError, match=r"folder: .*which lacks title\. Ask the librarian\."):
        files.located(tmp_path, [KNOWN, other], ["."], **HOW)
    with pytest.raises(FileNotFoundError, match=r"which is no folder; missing are text, title\. Ask"):
        files.located(tmp_path / "absent", [KNOWN, other], ["."], **HOW)
    with pytest.raises(FileNotFoundError, match=r"or the environment variable SPINBOOK_DATA, .*; got neither\. Ask"):
        files.located(None, [KNOWN], ["."], **HOW)


def test_the_environment_names_a_folder_whose_places_are_searched_in_order(tmp_path, monkeypatch):
    monkeypatch.setenv(files.ENVIRONMENT, str(tmp_path))
    for place in ("far", "near"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "text").write_bytes(TEXT)
    assert files.located(None, [KNOWN], [".", "near", "far"], **HOW) == tmp_path / "near"
    # A path that is given is the only one that counts.
    with pytest.raises(FileNotFoundError, match="missing are text"):
        files.located(tmp_path / "other", [KNOWN], ["near"], **HOW)
