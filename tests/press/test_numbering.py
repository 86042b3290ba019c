"""Figures and equations count by chapter, and everything that names one says the number of its page."""

import json
import zipfile
from types import SimpleNamespace

import pytest
from docutils import nodes

from companion.site import numbering


def test_an_audit_continues_the_numbers_of_its_lesson_and_other_pages_have_none(two_pages):
    book = two_pages[0]
    lesson, audit = book.html("notebooks/probe"), book.html("notebooks/audits/probe")
    assert lesson.select_one("article h1").select_one(".section-number").get_text() == "1. "
    for page, figure, equation in ((lesson, "Figure 1.1", "(1.1)"), (audit, "Figure 1.2", "(1.2)")):
        assert [one.get_text().strip() for one in page.select(".caption-number")] == [figure]
        assert [one.get_text()[: len(equation)] for one in page.select(".eqno")] == [equation]
        # Sections have no numbers, and an audit has that of no chapter.
        assert not page.select("h2 .section-number")
    assert not audit.select(".section-number")
    assert not book.html("book/claims").select("h1 .section-number")
    assert book.html("index").select_one(".book-chapter .book-card-title").get_text().startswith("1. ")


def test_citations_archives_and_lists_say_the_number_that_the_page_shows(two_pages):
    book = two_pages[0]
    said = "Figure 1.2 (probe-slope): "
    entry = book.html("notebooks/audits/probe").select_one("figure .book-bibtex").get_text()
    assert f"title = {{{said}" in entry
    (record,) = (r for r in json.loads(book.path("_build/html/figures.json").read_text()) if r["id"] == "probe-slope")
    assert record["number"] == "1.2"
    assert record["bibtex"] == entry
    assert record["csl"]["title"].startswith(said)
    folder = book.path("_build/html/figures/probe-slope")
    alone = json.loads((folder / "figure.json").read_text())
    assert record == alone | {"source_keys": record["source_keys"]}
    with zipfile.ZipFile(folder / "probe-slope.zip") as archive:
        for name in ("README.txt", "figure.json", "probe-slope.csl.json"):
            assert said.rstrip(": ") in archive.read(f"probe-slope/{name}").decode(), name
    cards = [card.get_text() for card in book.html("book/gallery").select(".book-card-title")]
    assert cards == ["Figure 1.1, probe-line", "Figure 1.2, probe-slope"]


def test_what_has_no_number_is_called_by_its_name():
    text = "|".join(numbering.place(kind, "a-b") for kind in ("chapter", "figure", "equation"))
    assert numbering.filled(text, {"chapter": {}, "figure": {}, "equation": {}}) == "|a-b|a-b"
    numbers = {"chapter": {"a-b": "2. "}, "figure": {"a-b": "2.3"}, "equation": {"a-b": "2.4"}}
    assert numbering.filled(text, numbers) == "2. |2.3|2.4"


@pytest.mark.parametrize(("explicit", "words"), [(False, "Figure 6.1"), (True, "picture 6.1")])
def test_a_reference_to_a_figure_has_its_number_and_reads_no_page(explicit, words):
    domain = numbering.Standard.__new__(numbering.Standard)
    domain.data = {"anonlabels": {"probe-line": ("notebooks/probe", "probe-line")}}
    # There is no `get_doctree`: whoever reads the page fails.
    env = SimpleNamespace(
        toc_fignumbers={"notebooks/probe": {"figure": {"probe-line": (6, 1)}}},
        config=SimpleNamespace(numfig_format={"figure": "Figure %s"}),
    )
    builder = SimpleNamespace(get_relative_uri=lambda here, there: f"from {here} to {there}")
    asked, told = {"refexplicit": explicit}, nodes.inline("", "picture %s")
    found = domain.resolve_xref(env, "index", builder, "numref", "probe-line", asked, told)
    assert (found.astext(), found["refuri"]) == (words, "from index to notebooks/probe#probe-line")
