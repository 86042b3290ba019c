"""A chapter in two pages, lesson and audit, through the whole pipeline; and words that change without a kernel."""

import json
import re

import pytest
from bs4 import BeautifulSoup
from toybook import page_of

from companion import build, claims
from companion.declaring import notebooks, texts
from companion.running import execution, freshness
from companion.site import catalogue, report
from companion.site.markup import evidence, fill


@pytest.fixture
def entries(two_pages):
    return json.loads(two_pages[0].path("_build/claims.json").read_text())


def test_lesson_and_audit_run_apart_and_stand_one_beneath_the_other(two_pages):
    book, outcome, printed = two_pages
    assert notebooks.names(book.root) == outcome.chapters == outcome.executed == ["probe", "audits/probe"]
    assert notebooks.chapters(book.root) == ["probe"]
    assert "audits/probe: finished after" in printed
    assert re.search(r"^audits/probe +[\d.]+ +\d+ +\d/\d", printed, re.MULTILINE)
    assert book.path("notebooks/audits/probe.ipynb").is_file()
    contents = book.html("notebooks/probe").select("#pst-primary-sidebar li li a")
    assert [link.get_text(strip=True) for link in contents] == ["The probe, checked"]


def test_a_new_reader_gets_the_theme_of_his_machine_and_no_error_in_the_console(two_pages):
    page = two_pages[0].html("notebooks/probe")
    assert page.body["data-default-mode"] == "auto"


def test_claims_and_figures_know_the_page_that_made_them(two_pages, entries):
    book = two_pages[0]
    assert {entry["id"]: entry["page"] for entry in entries} == {
        "probe.top": "probe",
        "probe.slope": "audits/probe",
        "probe.both": "audits/probe",
        "probe.sky": "audits/probe",
    }
    assert {entry["chapter"] for entry in entries} == {"probe"}
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
    line = book.html("notebooks/audits/probe").select_one("#claim-probe-slope")
    assert line.select_one(".book-claim-id")["href"] == "../../book/claims.html#ledger-claim-probe-slope"
    row = book.html("book/claims").select_one("#ledger-claim-probe-slope")
    assert row.select_one("a")["href"] == "../notebooks/audits/probe.html#claim-probe-slope"
    assert book.html("notebooks/audits/probe").select_one("figure#probe-slope")
    assert book.html("notebooks/probe").select_one("#claim-probe-summit"), "an id that a claim had before still leads"


def test_the_audit_closes_with_every_item_of_its_source(two_pages):
    rows = two_pages[0].html("notebooks/audits/probe").select("table.book-filterable tbody tr")
    assert [row.select("td")[2].get_text() for row in rows] == ["The parabola", "Its slope, as <printed>", "Its colour"]
    assert [link["href"] for link in rows[0].select("a")] == [
        "../../notebooks/probe.html#claim-probe-top",
        "../../notebooks/probe.html#probe-line",
        "../../notebooks/probe.html#equation-eq-probe-square",
    ]
    assert "✎ corrected" in rows[1].get_text()
    assert rows[2].select("td")[3].get_text() == "It has none."


def test_the_audit_opens_with_what_held_and_what_did_not(two_pages):
    report = two_pages[0].html("notebooks/audits/probe").select_one(".book-report")
    totals = report.select_one(".book-totals").get_text()
    assert totals.startswith("Of 2 statements of the source 1 held in part and 1 was not attempted.")
    assert re.search(r"the lesson in \d+ s and this audit in \d+ s ran on \d+ thread", totals)
    headings = [one.get_text() for one in report.select(".book-report-heading, summary")]
    assert headings == [
        "What held (1)",
        "What held in part (1)",
        "What did not hold as printed, and is corrected (1)",
        "Not attempted (1)",
    ]
    assert {link.get_text(): link["href"] for link in report.select("li a")} == {
        "top": "../../notebooks/probe.html#claim-probe-top",
        "both": "../../book/claims.html#ledger-claim-probe-both",
        "slope": "../../notebooks/audits/probe.html#claim-probe-slope",
        "sky": "../../book/claims.html#ledger-claim-probe-sky",
    }
    assert "A factor <two> is missing." in report.get_text()
    assert [row.select_one("th").get_text() for row in report.select("tbody tr")][-1] == "all"


def test_the_report_tells_our_own_results_and_what_is_not_confirmed(entries):
    own = entries[0] | {"kind": "own", "verdict": "result", "id": "probe.ours", "was": []}
    check = own | {"verdict": "software-check", "id": "probe.check"}
    other = entries[0] | {"id": "probe.other", "was": [], "external": True}
    failed = entries[0] | {"id": "probe.failed", "was": [], "holds": False}
    said = report.markup([*entries, own, check, other, failed], [], "../")
    text = BeautifulSoup(said, "html.parser").get_text(" ")
    assert "Of 3 statements of the source 1 held as printed" in text
    assert "In this build 1 verdict is not confirmed." in text
    beside = (
        "2 parts of those that held in part, 1 claim of another work, 1 result of this book and 1 check of the software"
    )
    assert f"Beside them, in no total, stand {beside}." in text
    assert "Not confirmed in this build (1)" in text
    assert "What held (2)" in text, "what is not confirmed is not among what held"
    assert "ran on" not in text


def test_prose_quotes_the_number_of_a_claim_of_the_other_page(two_pages):
    link = two_pages[0].html("notebooks/audits/probe").select_one("a.book-measured")
    assert (link.get_text(), link["href"]) == ("1.0", "../../notebooks/probe.html#claim-probe-top")


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ("probe.top", "0.987654"),
        ("probe.summit:.3f", "0.988"),
        ("probe.top rival:.0%", "25%"),
        ("probe.top uncertainty:.0e", "1e-09"),
        ("probe.hill", "probe.hill: no such claim"),
        ("probe.sky:.1f", "probe.sky: this build has no measured value of it"),
        ("probe.slope control", "probe.slope: this build has no control value of it"),
        ("probe.top:.1x", "probe.top: '.1x' is no format of the number 0.9876543"),
        ("probe", "expected ID, ID:FORMAT or ID rival:FORMAT, got 'probe'"),
    ],
)
def test_a_number_of_a_claim_is_quoted_or_missed_in_words(entries, asked, shown):
    by_id = catalogue.by_id(entries)
    # Of one, all digits are the same.
    by_id["probe.top"]["measured"] = 0.9876543
    try:
        found, _ = report.quoted(asked, by_id)
    except ValueError as error:
        found = str(error)
    assert found == shown


@pytest.mark.slow
def test_the_build_fails_for_a_number_of_a_claim_that_was_not_measured(pair, monkeypatch):
    monkeypatch.setattr(execution, "start", no_kernel)
    monkeypatch.setattr(build.check, "book", lambda *_, **__: [])
    pair.edit("notebooks/audits/probe.md", "{measured}`probe.top:.1f`", "{measured}`probe.sky:.1f`")
    outcome, _ = pair.build()
    (problem,) = outcome.problems
    assert "measured: probe.sky: this build has no measured value of it" in problem


@pytest.mark.slow
def test_a_mark_in_the_lesson_stands_for_the_cell_that_measures_and_leads_to_the_audit(pair, monkeypatch):
    monkeypatch.setattr(execution, "start", no_kernel)
    lesson = "notebooks/probe.md"
    pair.edit(lesson, "```{code-cell} ipython3\nx = np", "```{code-cell} ipython3\n:tags: [remove-cell]\n\nx = np")
    pair.edit(lesson, "The largest value is", "The largest value{checked}`probe.top` is")
    notebooks.sync(pair.root)
    outcome, _ = pair.build()
    assert outcome.problems == []
    page = pair.html("notebooks/probe")
    assert page.select(".book-claim") == []
    mark = page.select_one("a.book-checked")
    assert (mark["id"], mark["href"]) == ("claim-probe-top", "../notebooks/audits/probe.html#report-claim-probe-top")
    row = pair.html("notebooks/audits/probe").select_one("#report-claim-probe-top")
    assert "Measured here: 1 ± 1e-09; Rival: half of the parabola, rival 0.25" in row.get_text()
    assert "{checked}" not in pair.path("_build/html/_sources/notebooks/probe.ipynb").read_text()


def no_kernel(*arguments, **options):
    raise AssertionError("a kernel was started")


@pytest.mark.slow
def test_words_and_verdicts_change_without_a_kernel(pair, monkeypatch):
    monkeypatch.setattr(execution, "start", no_kernel)
    pair.edit("book/claims/probe.yml", "The parabola reaches one.", "It reaches one.")
    pair.edit("book/claims/probe.yml", "A factor <two> is missing.", "Two is missing.")
    pair.edit("notebooks/audits/probe.md", "What the lesson leaves out", "What is left out")
    pair.edit("book/claims/probe.yml", "published: 1.0", "published: 1.1")
    outcome, printed = pair.build()
    assert outcome.executed == []
    assert outcome.rendered
    assert outcome.problems == ["claim probe.top: gap 0.1 exceeds the bound 0.001"], printed
    lesson, audit = pair.html("notebooks/probe"), pair.html("notebooks/audits/probe")
    line = lesson.select_one("#claim-probe-top")
    assert "It reaches one." in line.get_text()
    assert "book-claim-failed" in line["class"]
    assert "What is left out" in audit.get_text()
    assert "Two is missing" in pair.html("book/claims").get_text()
    assert "1.00" in lesson.get_text(), "the numbers of the prose come from the run that stands"


def test_a_change_of_one_page_runs_that_page_only(pair):
    def stale():
        return [
            name
            for name in notebooks.names(pair.root)
            if not execution.standing(pair.root, name, freshness.key(pair.root, notebooks.load(pair.root, name))).record
        ]

    assert stale() == []
    pair.edit("notebooks/audits/probe.md", "points = 9", "points = 11")
    assert stale() == ["audits/probe"]
    pair.edit("notebooks/probe.md", "size = 20", "size = 21")
    assert stale() == ["probe", "audits/probe"]


def test_one_command_runs_both_pages_of_a_chapter(audited, monkeypatch):
    started = []

    def start(root, chapter, cpus):
        started.append(chapter.name)
        raise KeyboardInterrupt

    monkeypatch.setattr(execution, "start", start)
    with pytest.raises(KeyboardInterrupt):
        build.book(audited.root, only="probe")
    with pytest.raises(ValueError, match=r"expected one of \['probe'\], got 'audits/probe'"):
        build.book(audited.root, only="audits/probe")
    assert started == ["probe"]


def test_an_audit_that_does_not_lie_beneath_its_lesson_is_refused(audited):
    text = audited.path("_toc.yml").read_text()
    beneath = "        sections:\n          - file: notebooks/audits/probe\n"
    audited.path("_toc.yml").write_text(text.replace(beneath, "      - file: notebooks/audits/probe\n"))
    with pytest.raises(ValueError, match="audits that are not beneath their lesson"):
        notebooks.names(audited.root)
    audited.path("_toc.yml").write_text(text.replace(beneath, ""))
    with pytest.raises(ValueError, match=r"present but not listed \['audits/probe'\]"):
        notebooks.names(audited.root)


def test_a_figure_that_both_pages_publish_is_a_problem(pair):
    figures = execution.results_folder(pair.root, "audits/probe") / "figures"
    (figures / "probe-slope").rename(figures / "probe-line")
    assert "figure probe-line: published on two pages, the second is audits/probe" in pair.problems()


def test_a_claim_that_both_pages_measure_is_a_problem(pair):
    lesson, audit = (execution.results_folder(pair.root, name) / "measured.jsonl" for name in ("probe", "audits/probe"))
    audit.write_text(audit.read_text() + lesson.read_text())
    assert pair.problems() == ["claim probe.top: measured more than once, on probe and audits/probe"]


def test_the_ledger_counts_by_kind_and_verdict_and_no_total_counts_our_own(two_pages, entries):
    page = two_pages[0].html("book/claims")
    assert page.select_one(".book-totals").get_text().startswith("2 claims of the sources. In this build 1 of 1")
    rows = [[cell.get_text(strip=True) for cell in row.select("th, td")] for row in page.select(".book-counts tr")]
    assert rows[0] == ["Kind", "◐partly", "–not attempted", "all"]
    assert rows[1:] == [["statement", "1", "1", "2"], ["all", "1", "1", "2"]]
    own = entries[0] | {"kind": "own", "verdict": "exploratory", "id": "probe.ours", "was": []}
    counted = claims.among([*entries, own])
    said = fill("ledger.totals", counted=counted)
    assert "2 claims of the sources" in said
    assert "2 parts of those that held in part, 0 results of this book and 1 that is exploratory" in said


def test_a_row_of_the_ledger_shows_the_rival_the_parts_and_what_was_retired(two_pages):
    page = two_pages[0].html("book/claims")
    rival = page.select_one("#ledger-claim-probe-top").select("td")[5].get_text()
    assert rival == "half of the parabolarival 0.25, 750 bounds off"
    row = page.select_one("#ledger-claim-probe-both")
    assert row["data-verdict"] == "partly"
    assert [link.get_text() for link in row.select("a[href^='#ledger']")] == ["top", "slope"]
    assert page.select_one("#ledger-claim-probe-summit")
    assert "True by construction." in page.select_one("#ledger-claim-probe-biases").get_text()
    badge = two_pages[0].html("index").select_one(".book-badge")
    assert "1 statement checked" in badge.get_text()
    assert "1 partly" in badge.get_text()
    spoiled = {"page": {"chapter": "probe"}, "held": 1, "judged": 3, "verdicts": {}}
    assert "3 statements checked, 2 not confirmed<" in fill("figures.badge", spoiled, to_root="")


def test_a_correction_is_a_card_with_both_formulas_and_a_link_to_the_source(two_pages):
    card = two_pages[0].html("book/corrections").select_one("#corrected-claim-probe-slope")
    formulas = [one.get_text(" ", strip=True) for one in card.select(".book-formulas > div")]
    assert formulas == [r"As printed \(\displaystyle y' = x\)", r"As it should be \(\displaystyle y' = 2 x\)"]
    assert card.select_one("a[href='https://example.org/source']").get_text() == "section 3, version 2000-01-02"
    assert "A factor <two> is missing." in card.get_text()
    assert card.select_one("a[href='../notebooks/audits/probe.html#claim-probe-slope']")


def test_the_ledger_says_what_became_of_a_superseded_text(entries):
    text = texts.Text("author2000source", "1", "x", "f", "superseded", (), by="Another", since="2026-08")
    place = fill("ledger.source", entries[0], texts={"author2000source": text}, cited=str)
    assert "superseded by Another since 2026-08; the claim is standing" in place


def test_a_correction_of_a_formula_says_how_far_off_both_forms_are(two_pages):
    card = two_pages[0].html("book/corrections").select_one("#corrected-claim-probe-slope")
    facts = {name.get_text(): name.find_next("dd").get_text() for name in card.select("dt")}
    assert list(facts) == ["It says", "In our words", "Where", "Checked by", "Deviation", "Because", "Proof"]
    assert facts["Checked by"] == "central differences"
    assert re.fullmatch(r"the corrected form: \d(\.\d)?e-\d+; the printed form: 1", facts["Deviation"])


def test_what_is_right_in_part_lists_its_parts_with_their_verdicts(two_pages, entries):
    page = two_pages[0].html("book/corrections")
    parts = page.select("#partly-claim-probe-both li")
    assert [part.get_text() for part in parts] == [
        "✓ reproduced top: The parabola reaches one.",
        "✎ corrected slope: The slope is x.",
    ]
    assert parts[0].select_one("a")["href"] == "../book/claims.html#ledger-claim-probe-top"
    found = evidence(entries[0] | {"kind": "statement", "expects": {"above": 0.9, "why": "Ours."}})
    assert found["Expected"] == "above 0.9. Ours."
    assert found["Measured here"] == "1 ± 1e-09"


def test_long_formulas_are_whole_on_a_wide_screen_and_scroll_with_a_hint_on_a_narrow_one(tmp_path, ask):
    # Stands for what MathJax sets: as wide as its letters, and as tall as its font size.
    formula = '<p><mjx-container style="display: inline-block; width: 45em">x</mjx-container></p>'
    boxes = "".join(f"<div><p>{name}</p>{formula}</div>" for name in ("As printed", "As it should be"))
    body = f'<div class="book-formulas">{boxes}</div>'
    page = page_of(tmp_path / "page.html", body, "companion.css", "companion.js")
    script = """
      await new Promise((done) => setTimeout(done, 300));
      const answer = [...document.querySelectorAll(".book-formulas > div")].map((box) => [
        box.getBoundingClientRect().left, box.scrollWidth > box.clientWidth + 1,
        box.classList.contains("book-scrolls"), box.tabIndex,
        getComputedStyle(box.querySelector("p"), "::after").content]);
    """
    for width, scrolls in ((1400, False), (390, True)):
        one, other = ask(page, script, width=width)
        assert one[0] == other[0], "one above the other"
        assert one[1:3] == [scrolls, scrolls]
        assert one[3] == (0 if scrolls else -1), "what scrolls is reached by keyboard"
        assert ("scroll" in one[4]) == scrolls
