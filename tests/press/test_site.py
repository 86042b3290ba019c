"""The site of the toy book: what is on its pages, what lies beside them, and what is refused."""

import json
import re
import xml.etree.ElementTree as ElementTree
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import nbformat
import pytest
from docutils import nodes

from companion import pages
from companion.run import execute
from companion.site import figures, onpage, reference, render
from tests.press.toybook import LESSON, ToyBook


def _page(book: ToyBook, name: str) -> str:
    return book.path(f"_build/html/{name}.html").read_text()


def _words(markup: str) -> str:
    """The words of HTML, one space between them."""
    return " ".join(re.sub("<[^>]+>", "", markup).split())


def _results(book: ToyBook) -> Mapping[str, Path]:
    return {name: execute.results_folder(book.root, name) for name in pages.names(book.root)}


def _staged(book: ToyBook, name: str = "probe") -> nbformat.NotebookNode:
    return render.page_notebook(book.root, pages.load(book.root, name), execute.results_folder(book.root, name))


# What readers see.


def test_numbers_of_the_run_are_in_the_words(built: ToyBook) -> None:
    words = _words(_page(built, "notebooks/probe"))
    assert "Of 20 values the largest is 1.00, see Figure 1.1" in words
    assert "It shows 20 points of" in words
    assert "{eval}" not in words
    assert "rises from zero at the left to 1.0 at" in _page(built, "notebooks/probe")


def test_a_figure_has_two_themes_an_anchor_and_files_that_are_there(built: ToyBook) -> None:
    page, site = _page(built, "notebooks/probe"), built.path("_build/html/notebooks")
    assert re.search(r'<figure class="[^"]*book-figure[^"]*" id="probe-line">', page)
    for theme, end in (("only-light", ""), ("only-dark", "-dark")):
        (shown,) = re.findall(rf'<img class="{theme}" src="([^"]+)"', page)
        assert Path(shown).stem == f"probe-line{end}"
        assert (site / shown).is_file()
    fold = page.split("Cite, download, reproduce")[1].split("</details>")[0]
    offered = re.findall(r'href="([^"]+)" download', fold)
    assert {Path(name).suffix for name in offered} == {".zip", ".png", ".svg", ".pdf", ".csv"}
    assert all((site / name).is_file() for name in offered)
    assert "title = {Figure probe-line: Two walkers}" in fold
    assert "probe.html#probe-line}" in fold


def test_the_archive_of_a_figure_can_be_understood_alone(built: ToyBook) -> None:
    with zipfile.ZipFile(built.path("_build/html/figures/probe-line/probe-line.zip")) as archive:
        names = {name.removeprefix("probe-line/") for name in archive.namelist()}
        readme = archive.read("probe-line/README.txt").decode()
    assert names == {"README.txt", "figure.json", "probe-line.svg", "probe-line.pdf", "probe-line.csv"}
    assert "It shows 20 points" in readme
    assert "@misc{walks:probe-line," in readme
    assert "CC BY 4.0" in readme


def test_a_claim_has_its_verdict_below_its_cell_and_leads_to_the_ledger(built: ToyBook) -> None:
    audit = _page(built, "notebooks/audits/probe")
    assert '<div class="book-claim book-claim-corrected" id="claim-probe-slope">' in audit
    assert 'href="../../book/ledger/probe.html#ledger-claim-probe-slope"' in audit
    assert "A factor <two>" not in audit
    assert '<a class="book-measured" href="../../notebooks/probe.html#claim-probe-top">1.0</a>' in audit


def test_what_checks_measure_unseen_is_in_a_closed_fold(built: ToyBook) -> None:
    lesson = _page(built, "notebooks/probe")
    fold = lesson.split("What is checked on this page")[1].split("</details>")[0]
    assert '<li id="claim-probe-top">' in fold
    assert "The parabola reaches one." in fold
    assert lesson.count('id="claim-probe-top"') == 1
    mark = re.search(r'<a class="book-checked [^"]*" href="([^"]+)"\s+aria-label="([^"]+)"', lesson)
    assert mark
    assert mark.groups() == ("../notebooks/audits/probe.html#claim-probe-slope", "Checked: corrected")
    closed = re.findall(r'<details class="book-provenance"( open)?><summary>([^<]+)', lesson)
    assert closed == [("", "What is checked on this page"), ("", "Run, versions, citation")]


def test_every_chapter_has_a_ledger_and_all_have_totals(built: ToyBook) -> None:
    ledger = _page(built, "book/ledger/probe")
    rows = re.findall(r'<tr id="ledger-claim-([^"]+)" data-kind="([^"]+)" data-verdict="([^"]+)">', ledger)
    assert rows == [
        ("probe-top", "number", "reproduced"),
        ("probe-slope", "formula", "corrected"),
        ("probe-end", "own", "result"),
    ]
    assert "book-sortable book-filterable" in ledger
    assert "A factor &lt;two&gt; is missing." in ledger
    assert 'href="../../notebooks/audits/probe.html#claim-probe-slope"' in ledger
    totals = _page(built, "book/claims")
    assert "2 claims of the sources. In this build 2 of 2 verdicts are confirmed." in _words(totals)
    assert 'href="../book/ledger/probe.html"' in totals


def test_cards_gallery_and_status(built: ToyBook) -> None:
    cards = _page(built, "index")
    assert 'href="notebooks/probe.html"' in cards
    assert "1. Two walkers" in _words(cards)
    assert "book/ledger/probe.html" in cards
    gallery = _page(built, "book/claims")
    assert 'href="../notebooks/probe.html#probe-line"' in gallery
    assert "probe-slope" in gallery
    assert 'href="../notebooks/audits/probe.html"' in gallery


def test_programs_find_records_under_fixed_names(built: ToyBook) -> None:
    site = built.path("_build/html")
    claims, records = (json.loads((site / name).read_text()) for name in ("claims.json", "figures.json"))
    assert {claim["id"]: claim["holds"] for claim in claims} == {
        "probe.top": True,
        "probe.slope": True,
        "probe.end": True,
    }
    assert [record["bibtex"].partition(",")[0] for record in records] == [
        "@misc{walks:probe-line",
        "@misc{walks:probe-slope",
    ]
    assert json.loads((site / "status.json").read_text())["chapters"][0]["state"] == "finished"
    assert "author2000source" in (site / "references.bib").read_text()
    listed = [
        one.text for one in ElementTree.parse(site / "sitemap.xml").getroot().iter() if one.text and one.text.strip()
    ]
    assert any(str(one).endswith("/notebooks/audits/probe.html") for one in listed)
    assert '<meta name="description" content="Two walkers." />' in _page(built, "notebooks/probe")


def test_the_site_loads_nothing_from_elsewhere_and_no_link_is_broken(built: ToyBook) -> None:
    assert render.broken(built.path("_build/html")) == []
    assert not re.search(r'src="[^"]*thebe', _page(built, "notebooks/probe"))
    assert "_static/mathjax/tex-mml-chtml.js" in _page(built, "notebooks/probe")


def test_edit_buttons_lead_to_the_text(built: ToyBook) -> None:
    assert f"/edit/main/{LESSON}" in _page(built, "notebooks/probe")
    assert "/edit/main/book/index.md" in _page(built, "index")


def test_the_same_material_is_not_rendered_again(built: ToyBook) -> None:
    assert render.render(built.root, _results(built)) == render.Site([], rendered=False)
    key = render._key(built.root, _results(built))
    text = built.path(LESSON).read_text()
    built.edit(LESSON, "The end.", "That is all.")
    assert render._key(built.root, _results(built)) != key
    built.path(LESSON).write_text(text)
    failure = execute.Failure("probe", 2, "ValueError")
    assert render.render(built.root, {}, [failure]) == render.Site([], rendered=False, kept=True)


# Staging.


def test_words_are_those_of_today_and_outputs_those_of_the_run(copy: ToyBook) -> None:
    copy.edit(LESSON, "The end.", "Again {eval}`size`, and {eval}`size + 1`.")
    staged = _staged(copy)
    told = "\n".join(cell.source for cell in staged.cells)
    # What the run did not evaluate there stays, and fails the site.
    assert "Again 20, and {eval}`size + 1`." in told
    assert "Of 20 values the largest is 1.00" in told
    assert staged.metadata["language_info"]["pygments_lexer"] == "ipython3"
    assert all("mystnb" not in cell.metadata for cell in staged.cells)
    below = next(cell.source for cell in staged.cells if "published-figure" in cell.source)
    assert below == "```{published-figure} probe-line\n```"


def test_a_run_of_other_code_is_no_run_of_the_page(copy: ToyBook) -> None:
    copy.edit(LESSON, "size = 20", "size = 21")
    with pytest.raises(ValueError, match="its run executed other code"):
        _staged(copy)


def test_pictures_beside_a_page_are_staged_and_editors_files_are_not(copy: ToyBook, tmp_path: Path) -> None:
    copy.path("notebooks/seen.svg").write_text("<svg/>")
    copy.path("book/.#index.md").write_text("draft")
    (plan := copy.path("records/probe/plan.md")).parent.mkdir(parents=True)
    plan.write_text("# A plan\n")
    stage = render.stage_book(copy.root, tmp_path / "stage", _results(copy))
    assert (stage / "notebooks/seen.svg").is_file()
    assert (stage / "records/probe/plan.md").is_file()
    assert not (stage / "book/.#index.md").exists()
    contents = (stage / "_toc.yml").read_text()
    assert "book/ledger/probe" in contents
    assert (stage / "book/ledger/probe.md").is_file()


def test_a_page_without_a_result_says_why(copy: ToyBook, tmp_path: Path) -> None:
    failure = execute.Failure("probe", 3, "NameError: `x`")
    results = {"audits/probe": _results(copy)["audits/probe"]}
    stage = render.stage_book(copy.root, tmp_path / "stage", results, [failure])
    (cell,) = nbformat.read(stage / "notebooks/probe.ipynb", as_version=4).cells
    assert "It stopped in code cell 3:" in cell.source
    assert "NameError: 'x'" in cell.source
    first = render.stage_book(copy.root, tmp_path / "first", results, whole=False)
    assert "It is running." in nbformat.read(first / "notebooks/probe.ipynb", as_version=4).cells[0].source
    assert "announcement" in (first / "_config.yml").read_text()


# Checks of links and loads.


def test_broken_links_and_outside_loads_are_named(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "index.html").write_text(
        '<p id="here"></p><a href="in/">a</a> <a href="in/index.html#there">b</a> <a href="#here">c</a>'
        '<a href="https://example.org/x">d</a> <a href="mailto:x@example.org">e</a>'
        ' <a href="in/index.html?q=1#there">f</a>'
        '<a href="gone.html">g</a> <a href="in/index.html#nowhere">h</a> <img src="gone.png">'
        '<script src="https://cdn.example.org/x.js"></script> <link rel="stylesheet" href="//cdn.example.org/x.css">'
        '<link rel="canonical" href="https://example.org/">'
    )
    (tmp_path / "in" / "index.html").write_text('<p id="there"></p>')
    (tmp_path / "x.css").write_text("@import url(https://fonts.example.org/x); a { background: url(data:image/png) }")
    assert render.broken(tmp_path) == [
        "loads from outside: index.html: https://cdn.example.org/x.js",
        "loads from outside: index.html: //cdn.example.org/x.css",
        "broken link: index.html: gone.html",
        "broken link: index.html: gone.png",
        "broken link: index.html: in/index.html#nowhere",
        "loads from outside: x.css: https://fonts.example.org/x",
    ]
    assert len(render.broken(tmp_path, links=False)) == 3


# Parts.


def test_expressions_are_found_by_the_number_of_cells_above() -> None:
    def kept(expression: str, text: str) -> dict[str, object]:
        return {"expression": expression, "result": {"status": "ok", "data": {"text/plain": text}}}

    first = nbformat.v4.new_markdown_cell("", metadata={"user_expressions": [kept("a", "1")]})
    code = nbformat.v4.new_code_cell("", metadata={"user_expressions": [kept("a", "'x \\'y\\''")]})
    after = nbformat.v4.new_markdown_cell("", metadata={"user_expressions": [kept("b", "2.0")]})
    executed = nbformat.v4.new_notebook(cells=[first, code, after])
    assert onpage.expressions(executed) == [{"a": "1"}, {"a": "x 'y'", "b": "2.0"}]


def test_a_work_is_named_with_its_title_where_its_names_do_not_tell_it() -> None:
    works = {key: {"author": "Bal, M.", "year": "2023", "title": f"{key}: a study"} for key in ("Spins", "Walks")}
    works["Other"] = {"author": "Cy, D.", "year": "2023", "title": "Other"}
    assert onpage.source_of(works, "Spins") == "Bal (2023), “Spins”"
    assert onpage.source_of(works, "Other") == "Cy (2023)"
    assert onpage.source_of(works, None) == "this book"


def _live(tmp_path: Path, **options: object) -> list[nodes.Node]:
    live = object.__new__(figures.Live)
    live.arguments, live.content = ["probe"], ["Two *walkers*."]  # type: ignore[assignment]
    live.options = {name: live.option_spec[name](str(value)) for name, value in options.items()}
    config = SimpleNamespace(companion_root=str(Path(__file__).parents[2]))
    env = SimpleNamespace(docname="notebooks/probe", app=SimpleNamespace(outdir=str(tmp_path)), config=config)
    live.state = SimpleNamespace(document=SimpleNamespace(settings=SimpleNamespace(env=env)))
    live.in_line = lambda text: [nodes.Text(text)]  # type: ignore[method-assign]
    live.error = lambda words: ValueError(words)  # type: ignore[method-assign, assignment]
    return live.run()


def test_a_live_model_has_its_caption_its_script_and_a_still_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def markup(*, size: int = 1, names: list[str] | None = None) -> str:
        return f"<script>{size + 1} {names}</script>"

    def still(*, size: int = 1, names: list[str] | None = None) -> plt.Figure:
        return plt.figure(figsize=(size, size))

    module = SimpleNamespace(markup=markup, still=still)
    monkeypatch.setattr(figures, "importlib", SimpleNamespace(import_module=lambda name: module))
    start, words, end = _live(tmp_path, size=3, names="[a, b]")
    assert '<figure class="book-live" id="probe-live"><script>4 [' in start.astext()
    (still_picture,) = re.findall(r'<noscript><img src="\.\./([^"]+)" alt="Two walkers.">', start.astext())
    assert (tmp_path / still_picture).read_text().startswith("<?xml")
    assert words.astext().startswith("Two *walkers*.")
    assert "book/_static/live/probe.js" in words.astext()
    assert end.astext() == "</figcaption></figure>"
    with pytest.raises(ValueError, match=r"live: probe: .*unexpected keyword argument 'sise'"):
        _live(tmp_path, sise=3)


# The reference.


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        ("m = tanh(beta h)_ of `step` and ``a b``.", "m = tanh(beta h)\\_ of :py:obj:`step` and ``a b``."),
        ("A * b, |x| and `J_ij`s.", "A \\* b, \\|x\\| and :py:obj:`J_ij`\\ s."),
        ("- one\n- two_", "- one\n- two\\_"),
        ("(1) is an equation", "\\(1) is an equation"),
        ("Words.\n\n>>> f(_x)\n1", "Words.\n\n>>> f(_x)\n1"),
        ("name  what\nother  that", "::\n\n   name  what\n   other  that"),
    ],
)
def test_docstrings_are_escaped(docstring: str, expected: str) -> None:
    lines = docstring.splitlines()
    reference.docstring(None, "function", "f", None, None, lines)  # type: ignore[arg-type]
    assert "\n".join(lines) == expected


def test_annotations_stand_as_they_were_written() -> None:
    def f(x, *, beta=1.0, step=len):
        return x

    # As a module has them that postpones its annotations.
    f.__annotations__ = {"x": 'Float[Array, "N N"]', "beta": "Number", "return": "Array"}
    given = reference.signature(None, "function", "f", f, None, None, None)  # type: ignore[arg-type]
    assert given == ('(x: Float[Array, "N N"], *, beta: Number = 1.0, step=len)', "Array")
    assert reference.signature(None, "class", "f", f, None, None, None) is None  # type: ignore[arg-type]


def test_a_package_leads_to_the_entries_of_its_modules(copy: ToyBook, tmp_path: Path) -> None:
    copy.path("_toc.yml").write_text(copy.path("_toc.yml").read_text() + "      - file: reference/index\n")
    copy.edit(
        "src/walks/__init__.py",
        '"""Random walks."""',
        '"""Random walks."""\nfrom walks.pairs import both\n__all__ = ["both"]',
    )
    entries = reference.stage(copy.root, tmp_path)
    assert [entry["title"] for entry in entries] == ["walks", "walks.pairs", "walks.steps", "walks.unrelated"]
    package = (tmp_path / "reference/walks.rst").read_text()
    assert ":py:obj:`both <walks.pairs.both>`" in package
    assert ":members:" not in package
    assert ":members:" in (tmp_path / "reference/walks.pairs.rst").read_text()
    assert reference.source(copy.root, "reference/walks.pairs") == "src/walks/pairs.py"
