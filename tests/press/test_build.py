"""The whole way, from text to page, on a toy book; and every way in which it must fail."""

import csv
import dataclasses
import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import nbformat
import numpy as np
import pytest
import yaml
from bs4 import BeautifulSoup
from jupyter_client.connect import LocalPortCache
from papermill import engines

from companion import __main__ as command_line
from companion import build, project
from companion.declaring import compared, notebooks
from companion.running import disk, environment, execution, ledger
from companion.site import accessibility, rendering
from toybook import CLAIM, CLAIMS, REPOSITORY, page_of, processes_of, wait_until

ROOT = Path(__file__).resolve().parents[2]


def test_the_cells_of_a_page_have_the_same_ids_in_every_build(built):
    book, _, _ = built
    chapter = notebooks.load(book.root, "probe")
    executed = nbformat.read(
        execution.notebook_file(execution.results_folder(book.root, "probe"), "probe"), as_version=4
    )
    first, again = (rendering.page_notebook(chapter, executed, {}, {}) for _ in range(2))
    ids = [cell["id"] for cell in first.cells]
    assert ids == [cell["id"] for cell in again.cells]
    assert len(set(ids)) == len(ids) > len(chapter.notebook.cells)
    nbformat.validate(first)


@pytest.mark.parametrize("placed", [False, True])
def test_a_figure_stands_below_its_cell_or_where_the_text_asks_for_it(placed):
    asked = "````{dropdown} A test\n```{published-figure} walk-line\n```\n````"
    drawn = nbformat.v4.new_output("display_data", {}, metadata={"companion": {"figure": "walk-line"}})
    told = nbformat.v4.new_markdown_cell(asked if placed else "words")
    page = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("draw()"), told])
    executed = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("draw()", outputs=[drawn])])
    shown = rendering.page_notebook(SimpleNamespace(name="walk", notebook=page), executed, {}, {})
    assert shown.cells[0].outputs == []
    places = [cell.source for cell in shown.cells if "{published-figure} walk-line" in cell.source]
    assert places == [asked if placed else "```{published-figure} walk-line\n```"]


def test_hidden_cells_with_nothing_to_be_seen_between_them_are_opened_as_one():
    def cell(source, *outputs, tags=("hide-input",)):
        return nbformat.v4.new_code_cell(source, metadata={"tags": list(tags)}, outputs=list(outputs))

    stored, shown = (
        nbformat.v4.new_output("display_data", {kind: "1"})
        for kind in ("application/papermill.record/text/plain", "text/plain")
    )
    stream = nbformat.v4.new_output("stream", text="1")
    cells = [
        cell("a"),
        cell("b", stored),
        cell("gone", shown, tags=["remove-cell"]),
        cell("c", shown),
        cell("d", stream),
        cell("e"),
        cell("f", tags=()),
        cell("g"),
    ]
    joined = rendering._joined([*cells[:6], nbformat.v4.new_markdown_cell("words"), *cells[6:]])
    assert [one.source for one in joined] == ["a\n\nb\n\nc", "gone", "d", "e", "words", "f", "g"]
    assert joined[0].outputs == [stored, shown]


def test_the_first_build_runs_the_chapter_and_says_where_the_site_is(built):
    book, outcome, printed = built
    assert outcome.executed == ["probe"]
    assert "probe: finished after" in printed
    assert "Site: _build/html/index.html" in printed
    assert "chapter  seconds  peak MB  claims  figures" in printed
    assert "OK after" in printed
    entries = json.loads(book.path("_build/claims.json").read_text())
    wanted = {"id", "chapter", "says", "source", "published", "measured", "bound", "gap", "verdict", "holds", "because"}
    assert wanted | {"seconds"} <= set(entries[0])
    assert entries[0]["holds"] is True
    status = json.loads(book.path("_build/status.json").read_text())["chapters"][0]
    assert status["peak_bytes"] > 1e7
    assert status["parameters"] == {"size": 20}


def test_the_pages_show_figure_claim_number_and_provenance(built):
    html = built[0].path("_build/html")
    page = (html / "notebooks" / "probe.html").read_text()
    assert 'id="probe-line"' in page
    assert 'src="../figures/probe-line/probe-line-dark.svg"' in page
    assert "Cite, download, reproduce" in page
    assert 'id="claim-probe-top"' in page
    assert 'largest value is <span class="pasted-text">1.00</span>' in page
    assert "make chapter NAME=probe" in page
    assert "pip install" not in page
    assert 'href="../figures/probe-line/probe-line.zip"' in page
    assert 'id="ledger-claim-probe-top"' in (html / "book" / "claims.html").read_text()
    assert "@misc{walks:probe," in page
    opened = set(re.findall(r"/blob/([^/\"]+)/notebooks/probe\.ipynb", page))
    assert opened == {project.identity(built[0].root).ref}, "the buttons open the version of the page"


def test_the_badge_of_a_chapter_counts_its_claims_by_verdict(built):
    html = built[0].path("_build/html")
    badge = re.search(r'<p class="book-badge">.*?</p>', (html / "index.html").read_text(), flags=re.DOTALL)[0]
    entries = json.loads((html / "claims.json").read_text())
    held = sum(entry["holds"] is True for entry in entries)
    judged = sum(entry["holds"] is not None for entry in entries)
    assert held == judged
    assert f">{judged} statement{'s' * (judged > 1)} checked<" in badge
    for verdict in {entry["verdict"] for entry in entries}:
        count = sum(entry["verdict"] == verdict for entry in entries)
        assert f'verdict={verdict}"' in badge
        assert f"{count} {verdict.replace('-', ' ')}" in badge


def test_a_release_is_installed_by_its_tag_and_anything_between_by_the_branch():
    who = project.identity()
    assert dataclasses.replace(who, version="2.1.0").ref == "v2.1.0"
    assert all(f"@{who.ref}" in line for line in project.install_requirements(REPOSITORY))
    assert project.install_requirements(REPOSITORY, "v2.1.0")[1].endswith("@v2.1.0#subdirectory=companion")
    assert dataclasses.replace(who, version="2.2.0.dev0").ref == who.branch


def test_the_archive_of_a_figure_stands_alone(built, tmp_path):
    folder = built[0].path("_build/html/figures/probe-line")
    with zipfile.ZipFile(folder / "probe-line.zip") as archive:
        archive.extractall(tmp_path)
    unpacked = tmp_path / "probe-line"
    sums = dict(reversed(line.split()) for line in (unpacked / "SHA256SUMS").read_text().splitlines())
    assert set(sums) == {path.name for path in unpacked.iterdir()} - {"SHA256SUMS"}
    for name, digest in sums.items():
        assert hashlib.sha256((unpacked / name).read_bytes()).hexdigest() == digest
    listed = json.loads((unpacked / "figure.json").read_text())["files"]
    assert {"probe-line-dark.svg", "probe-line.csv"} < set(listed)
    assert {name: sums.get(name) for name in listed} == listed
    assert "make chapter NAME=probe" in (unpacked / "README.txt").read_text()
    assert "CC BY 4.0" in (unpacked / "README.txt").read_text()
    assert json.loads((unpacked / "probe-line.csl.json").read_text())[0]["URL"].endswith("probe.html#probe-line")


def test_gallery_and_page_say_what_agrees_with_the_published_figure_and_how_its_claims_stand(built, tmp_path):
    html = built[0].path("_build/html")
    card = BeautifulSoup((html / "book" / "gallery.html").read_text(), "html.parser").select_one(".book-card")
    assert card.select_one(".book-card-note").get_text() == "Figure 1 of Author (2000)"
    facts = {row.dt.get_text(): row.dd for row in card.select(".book-beside > div")}
    assert facts["Agrees"].get_text() == "It is <as> steep."
    assert facts["Differs"].get_text() == "Ours is longer."
    assert facts["Claims"].get_text() == "top ✓ reproduced"
    assert facts["Claims"].a["href"] == "../book/claims.html#ledger-claim-probe-top"
    fold = BeautifulSoup((html / "notebooks" / "probe.html").read_text(), "html.parser").select_one("figure .book-cite")
    assert "Agrees: It is <as> steep. Differs: Ours is longer. Claims: top ✓ reproduced." in fold.get_text()
    assert fold.select('a[href="../book/claims.html#ledger-claim-probe-top"]')
    stage = rendering._stage(built[0].root, tmp_path, {}, [])
    assert (stage / "book" / "gallery.md").is_file()
    assert not (stage / "book" / compared.NAME).exists()


def test_the_gallery_can_be_filtered_by_what_agrees_and_its_claims_reached_by_keyboard(built, ask):
    script = """
    const search = document.querySelector('.book-filter input[type=search]');
    const [card] = document.querySelectorAll('.book-card');
    const seen = [];
    for (const words of ['steep reproduced', 'shallow']) {
      search.value = words;
      search.dispatchEvent(new Event('input', {bubbles: true}));
      seen.push(card.hidden);
    }
    search.value = '';
    search.dispatchEvent(new Event('input', {bubbles: true}));
    const link = card.querySelector('.book-beside a');
    link.focus();
    const answer = [...seen, document.activeElement === link];
    """
    assert ask(built[0].path("_build/html/book/gallery.html"), script) == [False, True, True]


def test_the_build_refuses_a_figure_with_a_source_and_nothing_said_of_it(copy):
    assert copy.problems() == []
    copy.path("book/compared.yml").unlink()
    assert copy.problems() == ["compared.yml: probe-line: no entry, but its source is 'Figure 1 of Author (2000)'"]


def test_no_label_hides_the_visible_text_of_a_control(built):
    pages = [page.read_text() for page in built[0].path("_build/html").rglob("*.html")]
    assert any("theme-switch-button" in page for page in pages)
    # What the theme writes, and axe-core calls serious: see companion.site.accessibility.
    for page in pages:
        assert not re.search(r'<button class="[^"]*search-button-field[^>]*aria-label', page)
        assert not re.search(r'<i class="theme-switch[^>]*title', page)
        assert "Toggle hidden content" not in page
        assert 'role="doc-biblioentry"' not in page
        assert 'role="list" class="citation-list"' not in page


def test_folds_of_the_contents_have_names_and_a_signature_is_no_list_of_terms(tmp_path):
    arrow = '<summary><span class="toctree-toggle"></span></summary>'
    fold = f'<li><a href="x.html">\nThe page</a><details open="open">{arrow}'
    signature = '<dl class="py"><dt class="sig py">f(<dl>\n<dd><em>x</em>,</dd>\n</dl>\n)</dt><dd>Words.</dd></dl>'
    home = '<a class="navbar-brand logo" href="#">\n<p class="title">The book</p>\n</a>'
    (tmp_path / "page.html").write_text(f"{home}<ul>{fold}</details></li></ul>{signature}")
    accessibility.mend(tmp_path)
    page = BeautifulSoup((tmp_path / "page.html").read_text(), "html.parser")
    assert page.summary["aria-label"] == "Pages under: The page"
    assert page.select_one('nav[aria-label="Title page"] > a.navbar-brand').get_text().strip() == "The book"
    assert [line.get_text() for line in page.select("dt .book-lines > span")] == ["x,"]
    assert len(page.select("dl")) == len(page.select("dd")) == 1


def test_no_line_begins_with_the_stop_that_follows_a_formula(tmp_path, ask):
    formula = '<span class="math notranslate nohighlight">xxxx</span>'
    theme = "<style>.math { display: inline-flex; max-width: 100% }</style>"
    script = """
    const box = document.querySelector("p");
    const stop = [...document.querySelectorAll("p, p .book-held")].at(-1).lastChild;
    const range = new Range();
    range.setStart(stop, 0);
    range.setEnd(stop, 1);
    let answer = 0;
    for (let width = 60; width < 200; width += 1) {
      box.style.width = `${width}px`;
      const formula = document.querySelector(".math").getBoundingClientRect();
      answer += range.getBoundingClientRect().top > formula.bottom - 2;
    }
    """
    for name in ("loose", "held"):
        page = page_of(tmp_path / f"{name}.html", f"<p>words and {formula}.</p>", "reading.css", head=theme)
        if name == "held":
            accessibility.mend(tmp_path)
        assert (ask(page, script) == 0) == (name == "held")
    text = (tmp_path / "held.html").read_text()
    assert text.count("book-held") == 2, "the rule and the place"


def test_the_page_of_corrections_lists_the_claims_of_a_verdict_by_source(built):
    page = (built[0].path("_build/html") / "book" / "corrections.html").read_text()
    assert "None so far." in page
    assert 'id="not-attempted-claim-probe-sky"' in page
    assert "ends &lt;before&gt; it does" in page
    assert '<a href="../claims.json">claims.json</a>' in page


def test_an_archive_is_not_made_of_files_that_have_changed(copy):
    folder = copy.path("_build/html/figures/probe-line")
    with zipfile.ZipFile(folder / "probe-line.zip") as archive:
        archive.extractall(folder.parent)
    (folder / "probe-line.csv").write_text("x,y\n0,1\n")
    with pytest.raises(ValueError, match=r"figure probe-line: the files \['probe-line.csv'\] are not those"):
        rendering._bundle(copy.root, folder, {})


def test_the_index_of_the_records_names_their_version_their_checksums_and_every_source(built):
    html = built[0].path("_build/html")
    index = json.loads((html / "book.json").read_text())
    status = json.loads((html / "status.json").read_text())
    assert {key: index[key] for key in ("version", "commit", "dirty")} == {
        key: status[key] for key in ("version", "commit", "dirty")
    }
    for name, facts in index["files"].items():
        assert hashlib.sha256((html / name).read_bytes()).hexdigest() == facts["sha256"]
        assert (html / facts["schema"]).is_file()
    cited = {claim["source"]["key"] for claim in json.loads((html / "claims.json").read_text())}
    cited |= {key for figure in json.loads((html / "figures.json").read_text()) for key in figure["source_keys"]}
    cited |= {page["source"] for page in status["chapters"]}
    assert cited == {"author2000source"}
    assert index["sources"]["author2000source"] == {
        "title": "A source",
        "authors": ["Author, Ann"],
        "year": 2000,
        "address": None,
        "accompanied": True,
    }
    assert "@misc{author2000source," in (html / index["references"]).read_text()


def test_the_listings_of_the_page_on_data_run_on_a_built_site(built, tmp_path):
    html = shutil.copytree(built[0].path("_build/html"), tmp_path / "site")
    table = next(html.glob("figures/*/*.csv"))
    (html / "figures" / "OTHER").mkdir()
    np.savez(tmp_path / "OTHER.npz", words=np.arange(3))
    with zipfile.ZipFile(html / "figures" / "OTHER" / "OTHER.zip", "w") as archive:
        archive.write(tmp_path / "OTHER.npz", "OTHER/OTHER.npz")
    page = (ROOT / "book" / "data.md").read_text(encoding="utf-8")
    listings = re.findall(r"^```python\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)
    assert len(listings) == 2
    shown = []
    for listing in listings:
        code = listing.replace("figures/ID/ID.csv", table.relative_to(html).as_posix())
        done = subprocess.run([sys.executable, "-c", code], cwd=html, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        shown.append(done.stdout)
    assert shown[0].startswith(json.loads((html / "book.json").read_text())["title"])
    with table.open(newline="") as rows:
        names = next(csv.reader(rows))
    assert shown[1].startswith(str(names))
    assert "words" in shown[1]


def fields(schema, place=""):
    """Every field that a schema knows, by its place, with what the schema says of it."""
    for name, field in schema.get("properties", {}).items():
        yield f"{place}.{name}", field
        yield from fields(field, f"{place}.{name}")
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), dict):
            yield f"{place}[]", schema[word]
            yield from fields(schema[word], f"{place}[]")


@pytest.mark.parametrize("name", ["book", "claims", "figures", "status"])
def test_the_files_for_programs_follow_schemas_that_describe_every_field(built, two_pages, name):
    html = two_pages[0].path("_build/html")
    schema = json.loads((html / "schemas" / f"{name}.schema.json").read_text())
    content = json.loads((html / f"{name}.json").read_text())
    known = [*fields(schema), ("", schema)]
    assert len(known) > 10
    # The entries of a list are described by the list.
    assert [place for place, field in known if not field.get("description") and not place.endswith("[]")] == []
    assert all(field.get("additionalProperties") is not None for _, field in known if "properties" in field)
    jsonschema.Draft7Validator.check_schema(schema)
    # The other book has no quotation and no text that was read.
    for whole in (content, json.loads((built[0].path("_build/html") / f"{name}.json").read_text())):
        jsonschema.Draft7Validator(schema).validate(whole)
    # The schema describes every field: without any one of them, or with one more, the entry is refused.
    entry = content if name == "book" else content["chapters"][0] if name == "status" else content[0]
    for broken in ({**entry, "more": 1}, *({k: v for k, v in entry.items() if k != left_out} for left_out in entry)):
        whole = broken if name == "book" else {**content, "chapters": [broken]} if name == "status" else [broken]
        assert list(jsonschema.Draft7Validator(schema).iter_errors(whole))


def test_a_second_build_with_nothing_changed_runs_nothing_and_takes_seconds(copy):
    # The copy has another path, which belongs to no key; its site is the same site.
    started = time.perf_counter()
    outcome, printed = copy.build()
    assert outcome.executed == []
    assert not outcome.rendered
    assert outcome.problems == []
    assert time.perf_counter() - started < 10.0
    assert "unchanged, its last run stands" in printed


BROKEN_CLAIMS = {
    "a claim that misses its bound": (CLAIMS.replace("1.0", "1.1"), "claim probe.top: gap 0.1 exceeds the bound 0.001"),
    "a claim that was declared but never measured": (
        CLAIMS + CLAIM.replace("probe.top", "probe.bottom"),
        "claim probe.bottom: declared but never measured",
    ),
    "a claim that was measured but not declared": (
        "format: 2\nclaims: []",
        "claim probe.top: measured but not declared",
    ),
    "a corrected claim whose published value passes too": (
        CLAIMS.replace("verdict: reproduced", "verdict: corrected\n  corrected: 1.0\n  because: x").replace(
            "reading_error: 0.001", "bound: {absolute: 0.8, why: x}"
        ),
        "claim probe.top: the printed form passes too",
    ),
    "a claim declared not reproduced that reproduces": (
        re.sub("rival: .*", "control: all\n  found: {value: 1.0, bound: 0.1}", CLAIMS).replace(
            "verdict: reproduced", "verdict: not-reproduced\n  because: x"
        ),
        "claim probe.top: declared not reproduced, but",
    ),
}


@pytest.mark.parametrize("case", BROKEN_CLAIMS)
def test_the_ledger_finds(built, tmp_path, case):
    text, message = BROKEN_CLAIMS[case]
    (tmp_path / "book" / "claims").mkdir(parents=True)
    shutil.copy(built[0].path("_config.yml"), tmp_path)
    shutil.copy(built[0].path("book/references.bib"), tmp_path / "book")
    results = {"probe": execution.results_folder(built[0].root, "probe")}
    (tmp_path / "book" / "claims" / "probe.yml").write_text(CLAIMS)
    assert ledger.collect(tmp_path, ["probe"], results)[2] == []
    (tmp_path / "book" / "claims" / "probe.yml").write_text(text)
    _, _, problems = ledger.collect(tmp_path, ["probe"], results)
    assert [message in problem for problem in problems] == [True]


def test_a_claim_that_does_not_hold_fails_the_run_after_everything_was_built(copy):
    copy.path("book/claims/probe.yml").write_text(BROKEN_CLAIMS["a claim that misses its bound"][0])
    outcome, printed = copy.build()
    assert [problem.partition(":")[0] for problem in outcome.problems] == ["claim probe.top"]
    assert outcome.rendered
    assert "0/1" in printed
    assert "FAILED after" in printed
    assert "not confirmed" in copy.path("_build/html/book/claims.html").read_text()


BROKEN_PAGES = {
    "a broken cross-reference": ("{numref}`probe-line`", "{numref}`probe-curve`", "probe-curve"),
    "a broken equation reference": (
        "{eq}`eq:probe-square`.\n\n```{code",
        "{eq}`eq:probe-cube`.\n\n```{code",
        "eq:probe-cube",
    ),
    "a missing citation": ("{cite:p}`author2000source`", "{cite:p}`nobody1999`", "nobody1999"),
    "a missing number": ("{glue:text}`probe-max:.2f`", "{glue:text}`probe-min:.2f`", "probe-min"),
    "a page that loads something from outside": (
        "# A probe\n",
        '# A probe\n\n<img src="https://example.org/x.png" alt="x">\n',
        "loads from outside: notebooks/probe.html: https://example.org/x.png",
    ),
    "a link to a place that does not exist": (
        "# A probe\n",
        '# A probe\n\n<a href="../book/claims.html#claim-nowhere">x</a>\n',
        "broken link: notebooks/probe.html: ../book/claims.html#claim-nowhere",
    ),
}


@pytest.mark.slow
def test_the_site_fails_on_each_broken_reference_and_each_outside_load(copy):
    for old, new, _ in BROKEN_PAGES.values():
        copy.edit("notebooks/probe.md", old, new)
    outcome, printed = copy.build()
    for case, (_, _, message) in BROKEN_PAGES.items():
        assert sum(message in problem for problem in outcome.problems) == 1, f"{case}\n{printed}"
    again, _ = copy.build()
    assert again.executed == []
    assert again.problems == outcome.problems, "a broken site is not taken for a finished one"


BROKEN_CHAPTERS = {
    "a chapter that raises": ("x = np.linspace", "1 / 0\nx = np.linspace", 4, "ZeroDivisionError"),
    "a figure without an alternative text": (
        "A convex curve that rises from zero at the left to one at the right end.",
        "",
        5,
        "alt: expected at least 60",
    ),
    "a warning that nobody handles": (
        "x = np.linspace",
        "np.float64(1) / np.float64(0)\nx = np.linspace",
        4,
        "RuntimeWarning",
    ),
    "a kernel that dies": ("x = np.linspace", "import os\nos._exit(3)\nx = np.linspace", 4, "DeadKernelError"),
    "a module imported by a computed name": (
        "x = np.linspace",
        '__import__("walks." + "unrelated")\nx = np.linspace',
        0,
        "modules loaded but not covered by the freshness key (imported by a computed name?): ['walks.unrelated']",
    ),
}


@pytest.mark.parametrize("case", BROKEN_CHAPTERS)
def test_the_run_names_chapter_cell_and_error_of(copy, case):
    old, new, cell, error = BROKEN_CHAPTERS[case]
    copy.edit("notebooks/probe.md", old, new)
    running = execution.start(copy.root, notebooks.load(copy.root, "probe"), environment.processors()[:1])
    running.process.wait()
    failure = execution.failure(copy.root, running)
    execution.end(running)
    assert (failure.chapter, failure.cell) == ("probe", cell)
    assert error in failure.error
    assert copy.stale()
    kept = nbformat.read(copy.path("_build/failed/probe/probe.ipynb"), as_version=4)
    before = [one for one in kept.cells if one.cell_type == "code"][: max(cell - 1, 0)]
    assert all(one.metadata.papermill.status == "completed" for one in before), "what was computed is kept"


def test_a_notebook_is_written_when_it_starts_and_ends_and_not_around_each_cell(copy, monkeypatch):
    writes, write = [], engines.write_ipynb
    monkeypatch.setattr(engines, "write_ipynb", lambda *given: writes.append(write(*given)))
    assert execution.publish(copy.root, "probe", threads=1) is None
    assert len(writes) == 2, "at its start, and at its end"


@pytest.mark.slow
def test_a_failing_chapter_does_not_stop_the_others(copy):
    text = copy.chapter.read_text().replace("probe", "other").replace("Two walkers", "Another")
    text = text.replace("Figure 1 of Author (2000)", "this book")
    copy.path("notebooks/other.md").write_text(text.replace("x = np.linspace", "1 / 0\nx = np.linspace"))
    copy.path("book/claims/other.yml").write_text(CLAIMS.replace("probe", "other"))
    copy.edit(
        "_toc.yml", "      - file: notebooks/probe\n", "      - file: notebooks/other\n      - file: notebooks/probe\n"
    )
    copy.edit("notebooks/probe.md", "size = 20", "size = 21")
    site_of_before = disk.digests(copy.path("_build/html"))
    outcome, printed = copy.build()
    assert [failure.chapter for failure in outcome.failures] == ["other"], printed
    assert "probe: finished after" in printed
    assert "(of the last whole build, since a chapter failed)" in printed
    assert disk.digests(copy.path("_build/html")) == site_of_before
    # Where no whole site stands, the page says it.
    copy.path("_build/html/index.html").unlink()
    outcome, printed = copy.build()
    assert any("chapter other failed in code cell 4: ZeroDivisionError" in problem for problem in outcome.problems)
    assert any("claim other.top: declared but never measured" in problem for problem in outcome.problems)
    assert "This chapter has no result in this build" in copy.path("_build/html/notebooks/other.html").read_text()
    # Only the chapter that failed runs again.
    copy.edit("notebooks/other.md", "1 / 0\n", "")
    outcome, printed = copy.build()
    assert outcome.executed == ["other"]
    assert outcome.problems == [], printed


@pytest.mark.slow
def test_an_interrupted_run_leaves_no_result_and_the_next_build_runs_it(copy):
    copy.edit("notebooks/probe.md", "x = np.linspace", "import time\ntime.sleep(60)\nx = np.linspace")
    running = execution.start(copy.root, notebooks.load(copy.root, "probe"), environment.processors()[:1])
    wait_until(lambda: execution.progress(running).get("cell", 0) == 4, seconds=60)
    assert len(processes_of(copy.root)) == 2, "the chapter and its kernel"
    running.process.kill()
    running.process.wait()
    wait_until(lambda: not processes_of(copy.root), seconds=10)
    assert copy.stale()
    assert "was ended by SIGKILL" in execution.failure(copy.root, running).error
    execution.end(running)
    copy.edit("notebooks/probe.md", "time.sleep(60)\n", "")
    assert execution.publish(copy.root, "probe", threads=1) is None
    assert not copy.stale()


@pytest.mark.slow
def test_no_kernel_needs_a_port_that_another_program_may_have_taken_meanwhile(copy, tmp_path, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(LocalPortCache, "find_available_port", lambda *_: port)
        assert execution.run(copy.root, notebooks.load(copy.root, "probe"), tmp_path / "run") is None
        # What a kernel does that has to take it: the chapter ends with the words that once were a riddle.
        monkeypatch.setattr(execution, "_LONGEST_PATH", 0)
        monkeypatch.setattr(execution, "_STARTS", 1)
        failure = execution.run(copy.root, notebooks.load(copy.root, "probe"), tmp_path / "tcp")
    assert "Kernel died before replying to kernel_info" in failure.error


@pytest.mark.slow
@pytest.mark.parametrize("deaths", [2, 3])
def test_a_kernel_that_does_not_start_is_started_again_twice(copy, tmp_path, deaths):
    (tmp_path / "sitecustomize.py").write_text(
        f"import os\nwith open({str(tmp_path / 'starts')!r}, 'a') as file:\n    file.write('x')\n"
        f"if os.path.getsize({str(tmp_path / 'starts')!r}) <= {deaths}:\n    os._exit(1)\n"
    )
    said = []
    failure = execution.run(
        copy.root,
        notebooks.load(copy.root, "probe"),
        tmp_path / "run",
        extra_environment={"PYTHONPATH": f"{copy.root / 'src'}{os.pathsep}{tmp_path}"},
        report=said.append,
    )
    assert len(said) == 2
    assert all(line.startswith("probe: its kernel did not start (RuntimeError('Kernel died") for line in said)
    assert (failure is None) == (deaths == 2)
    assert failure is None or "Kernel died before replying" in failure.error


def test_two_builds_in_one_tree_are_refused(copy):
    with build._lock(copy.root), pytest.raises(RuntimeError, match=f"process {os.getpid()} holds"):
        copy.build()


def test_a_copied_repository_is_not_built_by_the_machinery_of_the_original(copy, capsys):
    other = copy.path("companion/src/companion")
    shutil.copytree(ROOT / "companion" / "src" / "companion", other)
    assert command_line.main(["--root", str(copy.root), "book"]) == 2
    assert f"companion: expected the package of this repository, {other}" in capsys.readouterr().err


def test_the_quick_profile_changes_parameters_and_publishes_nothing(copy, tmp_path):
    chapter = notebooks.load(copy.root, "probe")
    before = copy.path("_build/status.json").read_text()
    failure = execution.run(copy.root, chapter, tmp_path / "quick", parameters=chapter.quick)
    assert failure is None
    numbers = (tmp_path / "quick" / "figures" / "probe-line" / "probe-line.csv").read_text()
    assert len(numbers.splitlines()) == 1 + 3
    assert copy.path("_build/status.json").read_text() == before


def texts(folder):
    """Every file of a site by name, the members of archives too, as bytes."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        yield str(path.relative_to(folder)), path.read_bytes()
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                for member in archive.namelist():
                    yield f"{path.relative_to(folder)}/{member}", archive.read(member)


@pytest.mark.slow
def test_one_line_of_the_config_moves_the_book_and_its_title_cannot_break_a_page(copy):
    old, address = project.identity(copy.root).repository, "https://github.com/somebody/else-where"
    owner = old.split("/")[-2]
    assert [line.strip() for line in copy.path("_config.yml").read_text().splitlines() if owner in line] == [
        f"url: {old}"
    ]
    copy.edit("_config.yml", old, address)
    copy.edit("_config.yml", "title: Random Walks", "title: 'Walks <script>1</script> & <b>\"friends\"'")
    copy.edit("_config.yml", "author: The Walkers", "author: The <i>Walkers</i>")
    assert set(notebooks.out_of_sync(copy.root)) == {"probe"}
    # What `make fix` does.
    assert command_line.main(["--root", str(copy.root), "sync"]) == 0
    outcome, printed = copy.build()
    assert outcome.problems == [], printed
    html = copy.path("_build/html")
    page = (html / "notebooks" / "probe.html").read_text()
    assert f"{address}/edit/main/notebooks/probe.md" in page
    assert f"{address}/issues/new" in page
    assert "https://colab.research.google.com/github/somebody/else-where/blob/main/notebooks/probe.ipynb" in page
    assert "https://mybinder.org/v2/gh/somebody/else-where/main" in page
    assert "https://somebody.github.io/else-where/notebooks/probe.html#probe-line" in page
    assert f"{address}/edit/main/book/index.md" in (html / "index.html").read_text()
    assert f"walks[notebook] @ git+{address}@main" in copy.path("notebooks/probe.ipynb").read_text()
    assert yaml.safe_load(copy.path("CITATION.cff").read_text())["repository-code"] == address
    assert json.loads((html / "book.json").read_text())["repository"] == address
    everything = dict(texts(html)) | {
        name: copy.path(name).read_bytes() for name in ("CITATION.cff", "notebooks/probe.ipynb")
    }
    assert len(everything) > 50
    assert any(name.endswith("probe-line.zip/probe-line/README.txt") for name in everything)
    assert [name for name, content in everything.items() if owner.encode() in content] == []
    raw = re.compile(r"<script>1|<b>(?:\"|&quot;)friends|<i>Walkers")
    doubly = re.compile(r"&amp;(?:lt|amp|quot|#34);")
    for name, content in everything.items():
        if name.endswith(".html"):
            text = content.decode()
            assert not raw.search(text), name
            assert not doubly.search(text), name
    assert "Walks &lt;script&gt;1&lt;/script&gt; &amp; &lt;b&gt;" in page


@pytest.mark.slow
def test_lessons_can_be_read_while_audits_run(pair, tmp_path, monkeypatch):
    monkeypatch.setattr(build, "LONG", 0.0)
    original, seen = rendering.first, tmp_path / "seen"

    def first(root, results):
        whole = original(root, results)
        shutil.copytree(root / "_build" / "html", seen)
        return whole

    monkeypatch.setattr(rendering, "first", first)
    pair.edit("notebooks/probe.md", "The largest value is", "The largest value, {measured}`probe.slope rival:.1f`, is")
    pair.edit("book/index.md", "```{chapter-cards}", "```{equation-map}\n```\n\n```{chapter-cards}")
    # As long as a whole site stands, it is the one to be read.
    shutil.rmtree(execution.results_folder(pair.root, "audits/probe"))
    assert pair.build()[0].problems == []
    assert not seen.exists()
    pair.path("_build/site.json").unlink()
    shutil.rmtree(execution.results_folder(pair.root, "audits/probe"))
    outcome, printed = pair.build()
    assert outcome.problems == []
    assert "The lessons can be read" in printed.partition("Rendering the site")[0], printed
    lesson, audit = ((seen / "notebooks" / name).read_text() for name in ("probe.html", "audits/probe.html"))
    assert 'id="probe-line"' in lesson
    assert "It is running" in audit
    assert "still running" in lesson
    assert "The largest value, …, is" in lesson
    assert "book-badge-total" not in (seen / "index.html").read_text()
    assert rendering.COMES in (seen / "index.html").read_text()
    html = pair.root / "_build" / "html"
    whole = (html / "notebooks" / "probe.html").read_text()
    assert "still running" not in whole
    assert "…" not in re.search("The largest value, .* is", whole)[0]
    assert "book-badge-total" in (html / "index.html").read_text()
    assert rendering.COMES not in (html / "index.html").read_text()


@pytest.mark.slow
def test_what_goes_wrong_with_the_first_site_is_said_and_stops_nothing(pair, monkeypatch):
    monkeypatch.setattr(build, "LONG", 0.0)
    monkeypatch.setattr(rendering, "first", lambda *_: 1 / 0)
    pair.path("_build/site.json").unlink()
    shutil.rmtree(execution.results_folder(pair.root, "audits/probe"))
    outcome, printed = pair.build()
    assert outcome.problems == []
    assert "There is no first site, ZeroDivisionError" in printed
