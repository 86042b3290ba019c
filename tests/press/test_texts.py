"""Versions of the texts: sections, their digests, and what a newer copy changes."""

import pytest

from companion import __main__ as command_line
from companion.declaring import texts
from toybook import REPOSITORY, write

FIRST = """\
# A source

Ann Author, 2000.

## Introduction

Words.

## The parabola

It reaches “one”.

### Its colour

None. `# no heading`

```
# a comment
```

## The slope

It is x. No walker <comes> down.
"""
SECOND = FIRST.replace("“one”", '"one"').replace("It is x.", "It is 2 x.").replace("### Its colour", "### Its hue")


def test_sections_are_numbered_as_readers_count_them():
    found = [(one.number, one.title) for one in texts.sections(FIRST)]
    assert found == [
        ("0", ""),
        ("1", "Introduction"),
        ("2", "The parabola"),
        ("2.1", "Its colour"),
        ("3", "The slope"),
    ]
    appendix = texts.sections("# A source\n## Appendices\n\n### A.1. Norm\n\n### A.2. Mean\n")
    assert [one.number for one in appendix] == ["0", "1", "A.1", "A.2"]
    plain = texts.sections("Title\n 1. Intro\n1. Intro\nWords.\nWhy?\nSo.\n2 Results\n2.1 More of it\n", ["Why?", ""])
    assert [(one.number, one.title) for one in plain] == [
        ("0", ""),
        ("1", "1. Intro"),
        ("1.1", "Why?"),
        ("2", "2 Results"),
        ("2.1", "2.1 More of it"),
    ]


def test_a_digest_is_of_the_words():
    assert texts.digest("It  is *one*,\n“so” –") == texts.digest('it is one, "so" -')
    assert texts.digest("x_1 = 2") != texts.digest("x1 = 2")
    assert texts.digest("It is x.") != texts.digest("It is y.")


@pytest.fixture
def read(audited, tmp_path):
    """The toy book with its source as it was read, and a folder for newer copies."""
    folder = write(tmp_path / "copies", {"source.md": FIRST})
    assert texts.record(audited.root, folder) == ["author2000source"]
    return audited, folder


def test_a_newer_copy_names_the_sections_that_changed_and_the_claims_that_rest_on_them(read, capsys):
    book, folder = read
    (change,), absent = texts.compare(book.root, folder)
    assert not change
    assert absent == []
    (folder / "source.md").write_text(SECOND)
    (change,), _ = texts.compare(book.root, folder)
    assert change.changed == ["3 The slope"]
    assert change.gone == ["2.1 Its colour"]
    assert change.new == ["2.1 Its hue"]
    # Those on section 3; section 2 has another part below it, and no claim rests on the retired one.
    assert set(change.claims) == {"probe.slope", "probe.both", "probe.sky", "probe.top"}
    assert change.unplaced == []
    assert command_line.main(["--root", str(book.root), "sources", str(folder)]) == 1
    assert "section changed: 3 The slope" in capsys.readouterr().out
    texts.record(book.root, folder)
    assert command_line.main(["--root", str(book.root), "sources", str(folder)]) == 0
    assert "author2000source: as it was read" in capsys.readouterr().out


def test_a_quotation_is_looked_up_whatever_marks_stand_between_its_words(read, capsys):
    book, folder = read
    assert texts.compare(book.root, folder)[0][0].unquoted == []
    (folder / "source.md").write_text(FIRST.replace("reaches", "*reaches*").replace("“one”", "$\\text{o-ne}$"))
    assert "reaches text one" in texts.words((folder / "source.md").read_text())
    (change,), _ = texts.compare(book.root, folder)
    assert change.unquoted == ["probe.top"]
    assert command_line.main(["--root", str(book.root), "sources", str(folder)]) == 1
    assert "quotation that is not there: probe.top" in capsys.readouterr().out


def test_only_claims_on_what_changed_are_named(read):
    book, folder = read
    (folder / "source.md").write_text(FIRST.replace("It is x.", "It is 2 x."))
    (change,), _ = texts.compare(book.root, folder)
    assert set(change.claims) == {"probe.slope", "probe.both", "probe.sky"}
    book.edit("book/claims/probe.yml", "where: section 2", "where: the title")
    (change,), _ = texts.compare(book.root, folder)
    assert change.unplaced == ["probe.top"]


def test_a_text_without_a_copy_is_named(read):
    book, folder = read
    (folder / "source.md").unlink()
    assert texts.compare(book.root, folder) == ([], ["author2000source: source.md"])
    assert command_line.main(["--root", str(book.root), "sources", str(folder / "nowhere")]) == 2


def test_the_eight_texts_are_listed_and_the_post_that_moved_is_superseded():
    read = texts.read(REPOSITORY)
    assert len(read) == 8
    assert [key for key, text in read.items() if text.status == "superseded"] == ["bal2026entropy"]
    assert all(len(text.sections) > 8 for text in read.values())
