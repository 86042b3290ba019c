"""The rules that need no run: every one is broken once, and named with its file and line."""

import pytest

from companion import check, pages, project
from companion.manuscript import Unreadable
from tests.press.toybook import AUDIT, CHECKS, CLAIMS, LESSON


def rules(book):
    return {finding.rule for finding in check.book(book.root)}


def messages(book):
    return "\n".join(map(str, check.book(book.root)))


def test_the_toy_book_breaks_no_rule(toy_book):
    assert check.book(toy_book.root) == []


LONG_CELL = "\n".join(f"x_{number} = {number}" for number in range(15))
BROKEN = {
    "lesson-visible, a long cell": (LONG_CELL, "a cell of 15 lines"),
    "lesson-visible, an import of the press": ("import chapters", "imports chapters"),
    "lesson-visible, too many lines": ("\n".join(f"y_{n} = {n}" for n in range(150)), "lines of code"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_lesson_that_is_no_plain_notebook_is_refused(toy_book, name):
    code, message = BROKEN[name]
    toy_book.cell(code)
    assert "lesson-visible" in rules(toy_book)
    assert message in messages(toy_book)


def test_a_lesson_of_too_many_cells_and_one_of_hidden_code_are_refused(toy_book):
    for number in range(20):
        toy_book.cell(f"z_{number} = {number}")
    assert "cells of code; a lesson has at most 20" in messages(toy_book)
    toy_book.cell(":tags: [hide-cell]\n\n" + "\n".join(f"w_{n} = {n}" for n in range(10)))
    assert "of the code is visible" in messages(toy_book)


def test_other_tags_than_two_are_refused(toy_book):
    toy_book.cell(":tags: [remove-input]\n\nx = 1")
    assert "tags: expected some of ['hide-cell', 'parameters'], got ['remove-input']" in messages(toy_book)


EDITS = {
    "an unknown mark": (LESSON, "\n# Two walkers\n", "\n# Two walkers\n\n{checked}`probe.nothing`\n", "no such claim"),
    "an unknown quotation": (
        LESSON,
        "\n# Two walkers\n",
        "\n# Two walkers\n\n{measured}`probe.nothing:.2f`\n",
        "no claim of this name is measured",
    ),
    "a wrong format": (LESSON, "\n# Two walkers\n", "\n# Two walkers\n\n{measured}`probe.top:.2q`\n", "is no format"),
    "a source that is no source": (
        LESSON,
        "source: author2000source",
        "source: nobody",
        "is no source of references.bib",
    ),
    "an unknown function": (CLAIMS, "walks.pairs.both", "walks.pairs.none", "src has no walks.pairs.none"),
    "an unknown label": (CLAIMS, "eq:probe-slope", "eq:probe-nothing", "no page has eq:probe-nothing"),
    "an unmeasured claim": (CHECKS, "def top(", "def _top(", "probe.top: nothing of the chapter measures it"),
    "an undeclared claim": (AUDIT, ":claim: probe.slope", ":claim: probe.curve", "probe.curve: no claim of this name"),
    "a rival of thin air": (AUDIT, '"rival": x[-1]}', '"rival": -1.0}', "rival: expected what the cell computes"),
    "a figure of another chapter": (LESSON, "probe-line", "other-line", "expected probe-WORD"),
}


@pytest.mark.parametrize("name", EDITS)
def test_a_broken_rule_is_named_with_its_file(toy_book, name):
    file, old, new, message = EDITS[name]
    text = toy_book.path(file).read_text()
    assert old in text
    toy_book.path(file).write_text(text.replace(old, new))
    said = messages(toy_book)
    assert message in said
    assert file.rpartition("/")[2].partition(".")[0] in said


def test_a_long_caption_and_a_short_alternative_text_are_refused(toy_book):
    text = toy_book.path(LESSON).read_text()
    name = next(line for line in text.splitlines() if "caption:" in line)
    toy_book.edit(LESSON, name, name.partition("caption:")[0] + "caption: " + "word " * 50)
    assert "caption" in rules(toy_book)
    alt = next(line for line in text.splitlines() if "alt:" in line)
    toy_book.edit(LESSON, alt, alt.partition("alt:")[0] + "alt: Short.")
    assert "alt" in rules(toy_book)


def test_a_picture_that_was_pasted_is_refused_with_its_line(toy_book):
    toy_book.edit(LESSON, "The end.", "![Seen](attachment:image.png)")
    line = toy_book.path(LESSON).read_text().splitlines().index("![Seen](attachment:image.png)") + 1
    assert f"{LESSON}:{line}" in messages(toy_book)
    assert "expected pictures as files beside the page" in messages(toy_book)


FRONT_MATTER = {
    "budget: 60": ("budget: -1", "budget: expected seconds, a number above 0, got -1"),
    "prerequisites: nothing": ("", "prerequisites: expected words, got 'nothing'"),
    "quick: {size: 5}": ("quick: {sides: 5}", "['sides'] are not in the parameters cell"),
    "summary: Two walkers.": ("summary: [Two", "probe.md:"),
}


@pytest.mark.parametrize("old", FRONT_MATTER)
def test_a_wrong_front_matter_says_field_expectation_and_what_came(toy_book, old):
    new, message = FRONT_MATTER[old]
    toy_book.edit(LESSON, old, new)
    with pytest.raises(ValueError, match=r"probe\.md") as caught:
        pages.load(toy_book.root, "probe")
    assert message in str(caught.value)


def test_a_front_matter_that_is_no_yaml_is_named_with_its_line(toy_book):
    toy_book.edit(LESSON, "budget: ", "budget: [")
    with pytest.raises(Unreadable, match=r"front matter: expected YAML, got") as caught:
        pages.load(toy_book.root, "probe")
    text = toy_book.path(LESSON).read_text().splitlines()
    assert caught.value.line > next(k for k, line in enumerate(text, 1) if line.strip().startswith("budget")) - 1


@pytest.mark.parametrize("line", ["size: None | int = 20", "size = np.ones(3)", "import os"])
def test_a_parameters_cell_of_anything_but_literals_names_the_line(toy_book, line):
    text = toy_book.path(LESSON).read_text()
    old = next(found for found in text.splitlines() if found.startswith("size = "))
    toy_book.edit(LESSON, old, line)
    if line.startswith("size: "):
        # An annotated literal is as good as a plain one.
        assert pages.load(toy_book.root, "probe").parameters["size"] == 20
        return
    with pytest.raises(ValueError, match="parameters cell: expected NAME = VALUE") as caught:
        pages.load(toy_book.root, "probe")
    assert line in str(caught.value)


BIBLIOGRAPHY = r"""
@string{press = "A Press"}
@book{whole, editor = {Ed Itor}, title = {The whole}, year = 1999, publisher = press}
@incollection{part, author = {Fran\c{c}ois Caf\'e and Jane van der Doe}, title = {Part {\LaTeX}}, crossref = {whole}}
@misc{group, author = {{Some Consortium}}, title = {By a group}, year = {2001}, url = {https://example.org/a%20b}}
@misc{nobody, title = {Without an author}, year = {2002}}
"""


def test_bibliographies_are_read_as_people_keep_them(toy_book):
    path = toy_book.path("book/references.bib")
    path.write_text(path.read_text() + BIBLIOGRAPHY)
    works = project.references(toy_book.root)
    assert project.names_and_year(works["part"]) == "Café and van der Doe (1999)"
    assert project.names_and_year(works["group"]) == "Some Consortium (2001)"
    assert project.names_and_year(works["nobody"]) == "Without an author (2002)"
    assert works["whole"]["publisher"] == "A Press"
    assert works["group"]["url"] == "https://example.org/a%20b"


@pytest.mark.parametrize("entry", ["@misc{untitled, year = {2000}}", "@misc{broken, title = {x"])
def test_an_entry_that_cannot_be_cited_is_refused(toy_book, entry):
    path = toy_book.path("book/references.bib")
    path.write_text(path.read_text() + entry)
    with pytest.raises(Unreadable, match=r"references\.bib"):
        project.references(toy_book.root)


def test_yaml_with_a_key_twice_names_file_and_line(toy_book):
    toy_book.edit(CLAIMS, "  says: The parabola reaches one.\n", "  says: One.\n  says: Two.\n")
    assert "probe.yml:4: [unreadable]" in messages(toy_book).replace("book/claims/", "")
