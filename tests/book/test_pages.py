"""A chapter in two pages, lesson and audit, through the whole pipeline; and words that change without a kernel."""

import json
import re

import pytest
from bs4 import BeautifulSoup

from companion.pipeline import build, execution, freshness, notebooks
from tests.book.conftest import add_audit


def html(book, name):
    return BeautifulSoup(book.path(f"_build/html/{name}.html").read_text(), "html.parser")


def test_lesson_and_audit_run_apart_and_stand_one_beneath_the_other(two_pages):
    book, outcome, printed = two_pages
    assert notebooks.names(book.root) == outcome.chapters == outcome.executed == ["probe", "audits/probe"]
    assert notebooks.chapters(book.root) == ["probe"]
    assert "audits/probe: finished after" in printed
    assert re.search(r"^audits/probe +[\d.]+ +\d+ +\d/\d", printed, re.MULTILINE)
    assert book.path("notebooks/audits/probe.ipynb").is_file()
    contents = html(book, "notebooks/probe").select("#pst-primary-sidebar li li a")
    assert [link.get_text(strip=True) for link in contents] == ["The probe, checked"]


def test_claims_and_figures_know_the_page_that_made_them(two_pages):
    book = two_pages[0]
    entries = {entry["id"]: entry for entry in json.loads(book.path("_build/claims.json").read_text())}
    assert {id: entry["page"] for id, entry in entries.items()} == {
        "probe.top": "probe",
        "probe.slope": "audits/probe",
        "probe.both": "audits/probe",
        "probe.sky": "audits/probe",
    }
    assert {entry["chapter"] for entry in entries.values()} == {"probe"}
    figures = {record["id"]: record for record in json.loads(book.path("_build/figures.json").read_text())}
    assert {id: record["page"] for id, record in figures.items()} == {
        "probe-line": "probe",
        "probe-slope": "audits/probe",
    }
    assert figures["probe-slope"]["csl"]["URL"].endswith("notebooks/audits/probe.html#probe-slope")
    assert figures["probe-slope"]["chapter"] == "probe"
    pages = json.loads(book.path("_build/status.json").read_text())["chapters"]
    assert [(page["chapter"], page["page"], page["figures"]) for page in pages] == [
        ("probe", "probe", 1),
        ("probe", "audits/probe", 1),
    ]


def test_the_audit_links_up_to_the_ledger_and_the_ledger_down_to_it(two_pages):
    book = two_pages[0]
    line = html(book, "notebooks/audits/probe").select_one("#claim-probe-slope")
    assert line.select_one(".book-claim-id")["href"] == "../../book/claims.html#ledger-claim-probe-slope"
    row = html(book, "book/claims").select_one("#ledger-claim-probe-slope")
    assert row.select_one("a")["href"] == "../notebooks/audits/probe.html#claim-probe-slope"
    assert html(book, "notebooks/audits/probe").select_one("figure#probe-slope")
    assert html(book, "notebooks/probe").select_one("#claim-probe-summit"), "an id that a claim had before still leads"


def test_the_audit_closes_with_every_item_of_its_source(two_pages):
    rows = html(two_pages[0], "notebooks/audits/probe").select("table.book-filterable tbody tr")
    assert [row.select("td")[2].get_text() for row in rows] == ["The parabola", "Its slope, as <printed>", "Its colour"]
    assert [link["href"] for link in rows[0].select("a")] == [
        "../../notebooks/probe.html#claim-probe-top",
        "../../notebooks/probe.html#probe-line",
        "../../notebooks/probe.html#equation-eq-probe-square",
    ]
    assert "✎ corrected" in rows[1].get_text()
    assert rows[2].select("td")[3].get_text() == "It has none."


def no_kernel(*arguments, **options):
    raise AssertionError("a kernel was started")


WORDS = {
    "what a claim says": ("book/claims/probe.yml", "The parabola reaches one.", "It reaches one."),
    "a reason": ("book/claims/probe.yml", "A factor <two> is missing.", "Two is missing."),
    "the prose": ("notebooks/audits/probe.md", "What the lesson leaves out", "What is left out"),
    "how a cell is shown": ("notebooks/audits/probe.md", ":tags: [hide-input]\n\nslope", ":tags: [hide-cell]\n\nslope"),
}


def test_words_and_verdicts_change_without_a_kernel(pair, monkeypatch):
    monkeypatch.setattr(execution, "start", no_kernel)
    for name, old, new in list(WORDS.values())[:3]:
        pair.edit(name, old, new)
    pair.edit("book/claims/probe.yml", "published: 1.0", "published: 1.1")
    outcome, printed = pair.build()
    assert outcome.executed == []
    assert outcome.rendered
    assert outcome.problems == ["claim probe.top: gap 0.1 exceeds the bound 0.001"], printed
    lesson, audit = html(pair, "notebooks/probe"), html(pair, "notebooks/audits/probe")
    line = lesson.select_one("#claim-probe-top")
    assert "It reaches one." in line.get_text()
    assert "book-claim-failed" in line["class"]
    assert "What is left out" in audit.get_text()
    assert "Two is missing" in html(pair, "book/claims").get_text()
    assert "1.00" in lesson.get_text(), "the numbers of the prose come from the run that stands"


def test_a_change_of_one_page_runs_that_page_only(pair):
    def stale():
        return [
            name
            for name in notebooks.names(pair.root)
            if execution.finished(pair.root, name, freshness.key(pair.root, notebooks.load(pair.root, name))) is None
        ]

    assert stale() == []
    pair.edit("notebooks/audits/probe.md", "points = 9", "points = 11")
    assert stale() == ["audits/probe"]
    pair.edit("notebooks/probe.md", "size = 20", "size = 21")
    assert stale() == ["probe", "audits/probe"]


def test_one_command_runs_both_pages_of_a_chapter(toy_book, monkeypatch):
    add_audit(toy_book)
    started = []

    def start(root, name, **options):
        started.append(name)
        raise KeyboardInterrupt

    monkeypatch.setattr(execution, "start", start)
    with pytest.raises(KeyboardInterrupt):
        build.book(toy_book.root, only="probe")
    with pytest.raises(ValueError, match=r"expected one of \['probe'\], got 'audits/probe'"):
        build.book(toy_book.root, only="audits/probe")
    assert started == ["probe"]


def test_an_audit_that_does_not_lie_beneath_its_lesson_is_refused(toy_book):
    add_audit(toy_book)
    text = toy_book.path("_toc.yml").read_text()
    beneath = "        sections:\n          - file: notebooks/audits/probe\n"
    toy_book.path("_toc.yml").write_text(text.replace(beneath, "      - file: notebooks/audits/probe\n"))
    with pytest.raises(ValueError, match="audits that are not beneath their lesson"):
        notebooks.names(toy_book.root)
    toy_book.path("_toc.yml").write_text(text.replace(beneath, ""))
    with pytest.raises(ValueError, match=r"present but not listed \['audits/probe'\]"):
        notebooks.names(toy_book.root)


def test_a_figure_that_both_pages_publish_is_a_problem(pair):
    chapters = {name: notebooks.load(pair.root, name) for name in notebooks.names(pair.root)}
    results = {name: execution.results_folder(pair.root, name) for name in chapters}
    records = {name: execution.read_record(folder) for name, folder in results.items()}
    (results["audits/probe"] / "figures" / "probe-slope").rename(results["audits/probe"] / "figures" / "probe-line")
    problems = build._collect(pair.root, list(chapters), chapters, records, results, [])
    assert "figure probe-line: published on two pages, the second is audits/probe" in problems


def test_a_claim_that_both_pages_measure_is_a_problem(pair):
    lesson, audit = (execution.results_folder(pair.root, name) / "measured.jsonl" for name in ("probe", "audits/probe"))
    audit.write_text(audit.read_text() + lesson.read_text())
    chapters = {name: notebooks.load(pair.root, name) for name in notebooks.names(pair.root)}
    results = {name: execution.results_folder(pair.root, name) for name in chapters}
    records = {name: execution.read_record(folder) for name, folder in results.items()}
    problems = build._collect(pair.root, list(chapters), chapters, records, results, [])
    assert problems == ["claim probe.top: measured more than once, on probe and audits/probe"]
