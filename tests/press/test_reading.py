"""What readers get beside the pages: previews of links, an edition for paper, light pages."""

from types import SimpleNamespace

import pytest
from bs4 import BeautifulSoup

from companion import new
from companion.site import audit, browser, pages, previews, reading, single_page
from toybook import STATIC, page_of

MISSING = pytest.mark.skipif(browser.find() is None, reason="no browser is installed")
SHELL = (
    '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><link rel="stylesheet" href="{up}_static/x.css">'
    '<script src="{up}_static/other.js"></script></head><body><main><article class="bd-article">{body}</article></main>'
    "</body></html>"
)
CHAPTER = (
    '<h1 id="top">A chapter</h1>'
    '<div class="math" id="equation-e">\\[x\\]<a class="headerlink" href="#equation-e">#</a></div>'
    '<figure id="a-figure"><img src="../figures/a/a.svg" class="only-light" alt="a"><img src="../figures/a/a-dark.svg" '
    'class="only-dark" alt="a" loading="lazy"><figcaption>Seen.</figcaption><details><summary>Cite</summary>x</details>'
    "</figure>"
)
PAGE = (
    '<h1 id="top">A page</h1><dl><dt id="term-spin">spin</dt><dd>A sign.</dd></dl>'
    '<a class="reference internal" href="../notebooks/one.html#equation-e">(1)</a> '
    '<a class="reference internal" href="../notebooks/one.html#a-figure">Fig. 1</a> '
    '<a class="reference internal" href="../notebooks/one.html#top">A chapter</a> '
    '<a class="reference internal" href="#term-spin">spin</a> <a href="https://example.org/x">away</a> '
    '<a href="../claims.json">data</a>'
)

_PROBE = """
const preview = document.getElementById('book-preview');
const seen = {};
for (const link of document.querySelectorAll('a.reference')) {
  link.focus();
  await new Promise((resolve) => setTimeout(resolve, 300));
  const open = !preview.hidden;
  const text = open ? preview.textContent.replace(/[\\\\\\[\\]]/g, '').trim() : null;
  document.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape'}));
  seen[link.textContent] = [text, open && preview.hidden];
  link.blur();
}
const answer = seen;
"""


@pytest.fixture
def html(tmp_path):
    for name, body in (("notebooks/one", CHAPTER), ("book/two", PAGE), ("index", "<h1>Title</h1>")):
        page = tmp_path / f"{name}.html"
        page.parent.mkdir(exist_ok=True)
        page.write_text(SHELL.format(up="../" * name.count("/"), body=body))
    (tmp_path / "figures" / "a").mkdir(parents=True)
    for name in ("a.svg", "a-dark.svg"):
        (tmp_path / "figures" / "a" / name).write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    (tmp_path / "claims.json").write_text("[]")
    (tmp_path / "_static").mkdir()
    for name in ("x.css", "other.js"):
        (tmp_path / "_static" / name).write_text("")
    return tmp_path


def test_a_page_carries_the_equations_and_figures_of_other_pages_that_it_links_to(html):
    previews.add(html)
    soup = BeautifulSoup((html / "book" / "two.html").read_text(), "html.parser")
    found = {template["data-preview"]: template for template in soup.select("template")}
    assert set(found) == {"../notebooks/one.html#equation-e", "../notebooks/one.html#a-figure"}
    figure = str(found["../notebooks/one.html#a-figure"])
    assert "../figures/a/a.svg" in figure
    assert "a-dark" not in figure
    assert "Cite" not in figure
    assert "id=" not in figure, "an id must be unique on a page"


def test_a_term_is_copied_with_its_meaning_and_the_links_in_it_lead_to_its_page(html):
    page, terms = html / "notebooks" / "one.html", html / "book" / "two.html"
    link = '<a class="reference internal" href="../book/two.html#term-magnet">magnet</a>'
    page.write_text(page.read_text().replace("</h1>", f"</h1>{link}"))
    magnet = (
        '<dt id="term-magnet">magnet<a class="headerlink" href="#term-magnet">#</a></dt>'
        '<dd>Many, each a <a class="reference internal" href="#term-spin">spin</a>.</dd></dl>'
    )
    terms.write_text(terms.read_text().replace("</dl>", magnet))
    previews.add(html)
    template = BeautifulSoup(page.read_text(), "html.parser").select_one("template")
    assert template.get_text() == "magnetMany, each a spin."
    assert [inside["href"] for inside in template.select("a")] == ["../book/two.html#term-spin"]
    assert pages.broken_links(html) == []


def test_the_edition_for_paper_holds_every_page_once_with_unique_ids_and_links_that_lead_somewhere(html):
    single_page.write(html, "print.html", ["index", "notebooks/one", "book/two"], "A book")
    soup = BeautifulSoup((html / "print.html").read_text(), "html.parser")
    assert [h.get_text() for h in soup.select("h1")] == ["Title", "A chapter", "A page"]
    ids = [element["id"] for element in soup.select("[id]")]
    assert len(ids) == len(set(ids))
    assert pages.broken_links(html) == []
    inside = [link["href"] for link in soup.select("a.reference")]
    assert inside[0] == "#notebooks-one--equation-e"
    assert inside[-1] == "#book-two--term-spin"
    assert [image["src"] for image in soup.select("img")] == ["figures/a/a.svg"]
    assert not soup.select("img[loading], .headerlink, .only-dark")
    assert "other.js" not in str(soup)


def test_an_edition_beside_the_site_begins_with_its_pages_and_leads_into_the_site(html, tmp_path_factory):
    folder = tmp_path_factory.mktemp("paper")
    single_page.write(html, "more.html", ["notebooks/one", "book/two"], "More", folder)
    assert not (html / "more.html").exists()
    soup = BeautifulSoup((folder / "more.html").read_text(), "html.parser")
    front, *rest = soup.select("section.book-page")
    assert front.h1.get_text() == "More"
    listed = {link.get_text(): link["href"].removeprefix("#") for link in front.select("a")}
    assert listed == {page.h1.get_text(): page["id"] for page in rest}
    outside = [
        (element.get("src") or element.get("href")).partition("#")[0]
        for element in soup.select("[src], [href]")
        if not (element.get("src") or element.get("href")).startswith(("#", "https:"))
    ]
    assert len(outside) >= 3
    for address in outside:
        reached = (folder / address).resolve()
        assert reached.is_relative_to(html.resolve())
        assert reached.is_file() or "_static" in address, "style sheets of this site are made up"


def test_what_a_page_loads_from_outside_is_named_and_what_it_leads_to_is_not(tmp_path):
    loads = [
        '<link rel="Stylesheet" href="{}">',
        '<img srcset="a.png 1x, {} 2x">',
        '<video poster="{}"></video>',
        '<object data="{}"></object>',
        '<svg><image xlink:href="{}"/></svg>',
        '<p style="background: url({})"></p>',
        "<style>@import '{}';</style>",
        '<script>import("{}")</script>',
    ]
    leads = ['<link rel="canonical" href="{}">', '<a href="{}"></a>', '<form action="{}"></form>']
    text = "".join(markup.format(f"https://example.org/{number}") for number, markup in enumerate([*loads, *leads]))
    (tmp_path / "a.html").write_text(text)
    named = [f"a.html: https://example.org/{number}" for number, _ in enumerate(loads)]
    assert pages.external_loads(tmp_path) == named


def test_a_page_weighs_what_one_theme_loads_and_too_much_is_said(html):
    page = html / "notebooks" / "one.html"
    one = len((html / "figures" / "a" / "a.svg").read_bytes())
    assert pages.weight(page) == page.stat().st_size + one
    assert pages.overweight(html) == []
    (html / "figures" / "a" / "a.svg").write_text(" " * 4_000_000)
    assert [line.split(" has ")[0] for line in pages.overweight(html)] == ["page too heavy: notebooks/one.html"]


def test_a_link_in_focus_shows_its_target_and_escape_hides_it(html, ask):
    script = (STATIC / "companion.js").read_text()
    for name in ("notebooks/one", "book/two"):
        page = html / f"{name}.html"
        page.write_text(page.read_text().replace("</head>", f"<script>{script}</script></head>"))
    previews.add(html)
    result = ask(html / "book" / "two.html", _PROBE)
    assert result["(1)"] == ["x", True]
    assert result["Fig. 1"] == ["Seen.", True]
    assert result["spin"] == ["spinA sign.", True]
    assert result["A chapter"] == [None, False]


@MISSING
def test_what_is_too_wide_for_a_telephone_is_found_and_what_scrolls_is_not(tmp_path):
    wide = '<div class="{css}" style="overflow-x: {overflow}"><p style="width: 600px">600 pixels</p></div>'
    held = page_of(tmp_path / "held.html", wide.format(css="held", overflow="auto"))
    loose = page_of(tmp_path / "loose.html", wide.format(css="loose", overflow="visible"))
    assert audit.overflow(held) == []
    (found,) = audit.overflow(loose)
    assert (found.count, found.impact) == (1, "serious")
    assert "600 pixels" in found.place
    assert audit.overflow(loose, width=800) == []
    assert set(tmp_path.iterdir()) == {held, loose}


@MISSING
def test_the_ledger_is_whole_on_paper_and_a_table_that_is_cut_there_is_found(tmp_path):
    cells = "".join(f"<td><p>{'word' * 6} {'word' * 6}</p></td>" for _ in range(9))
    table = '<div class="book-table"><table class="{} book-sortable table"><tbody><tr>{}</tr></tbody></table></div>'
    ledger, other = (
        page_of(tmp_path / f"{css}.html", table.format(css, cells), "companion.css") for css in ("book-ledger", "other")
    )
    assert audit.overflow(ledger, paper=True) == []
    (found,) = audit.overflow(other, paper=True)
    assert found.impact == "serious"
    # On a screen the same table scrolls.
    assert audit.overflow(other) == []


@MISSING
def test_a_long_name_of_the_library_is_broken_on_a_telephone(tmp_path):
    # As Sphinx has it.
    theme = "<style>span.pre { white-space: nowrap }</style>"
    name = f'<span class="sig-name descname"><span class="pre">{"_".join(["standard_error"] * 5)}</span></span>'
    body = f'<dl class="py property"><dt class="sig sig-object py">{name}</dt></dl>'
    assert audit.overflow(page_of(tmp_path / "without.html", body, head=theme))
    assert audit.overflow(page_of(tmp_path / "with.html", body, "companion.css", head=theme)) == []


@pytest.mark.parametrize("paper", [False, True])
def test_a_fold_is_open_on_paper_and_hidden_code_stays_away(tmp_path, paper, ask):
    folds = "".join(f"<details{css}><summary>more</summary><p>inside</p></details>" for css in ("", ' class="hide"'))
    page = page_of(tmp_path / "page.html", folds, "companion.css")
    script = "const answer = [...document.querySelectorAll('p')].map((text) => text.checkVisibility())"
    assert ask(page, script, paper=paper) == [paper, False]


@MISSING
def test_a_formula_that_is_cut_is_found_and_one_that_scrolls_says_so(tmp_path, ask):
    # As the theme has it.
    theme = "<style>.math { max-width: 100%; overflow: hidden; display: inline-flex } mjx-container { overflow: auto }"
    wide = '<mjx-container style="{}">{}</mjx-container>'
    # What is read aloud lies over the formula, is not seen, and is wider than it.
    unseen = "<i style='position: absolute; clip-path: inset(50%)'>a long sentence about x</i>"
    body = (
        f"<p>See <span class='math'>{wide.format('overflow: visible', 'x' * 200)}</span></p>"
        f"<div class='math'>{wide.format('', 'x' * 200)}</div>"
        f"<p><span class='math' id='short' style='position: relative'>{wide.format('', f'x{unseen}')}</span></p>"
    )
    cut = page_of(tmp_path / "cut.html", body, head=f"{theme}</style>")
    whole = page_of(tmp_path / "whole.html", body, "reading.css", "reading.js", head=f"{theme}</style>")
    (found,) = audit.overflow(cut)
    assert (found.count, "span class" in found.place) == (1, True)
    assert audit.overflow(whole) == []
    script = "const answer = [...document.querySelectorAll('.book-more-right')].map((part) => part.localName)"
    assert ask(whole, script, width=390) == ["span", "mjx-container"]


_SWITCHES = """
const button = document.querySelector('.book-code-button');
const code = document.querySelector('.cell_input');
const seen = () => code.offsetParent !== null;
const before = [button.textContent, seen()];
button.click();
const after = [button.textContent, seen(), localStorage.getItem('book-hide-code')];
const enlarge = document.querySelector('.book-enlarge');
enlarge.click();
const dialog = document.querySelector('dialog.book-enlarged');
const opened = [dialog.open, dialog.querySelectorAll('img').length, enlarge.getAttribute('aria-label')];
dialog.querySelector('button').click();
const answer = { before, after, opened, closed: dialog.open };
"""


def test_code_can_be_hidden_for_good_and_a_figure_enlarged(two_pages, ask):
    assert ask(two_pages[0].path("_build/html/notebooks/probe.html"), _SWITCHES) == {
        "before": ["Hide code", True],
        "after": ["Show code", False, "yes"],
        # Both pictures: the theme shows one.
        "opened": [True, 2, "Enlarge Figure 1.1"],
        "closed": False,
    }


def test_a_page_says_how_long_it_is_what_it_needs_and_where_its_other_page_is(two_pages):
    lesson = two_pages[0].html("notebooks/probe").select_one("h1 + .book-facts")
    assert lesson.get_text() == (
        "about 5 minutes with its formulas; you need nothing; every statement is checked in the audit, where the marks "
        "lead: ✓ as the source says, ✗ not as the source says, ■ a result of this book, □ a first look."
    )
    assert lesson.a["href"] == "../notebooks/audits/probe.html"
    facts = two_pages[0].html("notebooks/audits/probe").select_one("h1 + .book-facts")
    assert facts.a["href"] == "../../notebooks/probe.html"


def test_the_road_leads_from_lesson_to_lesson_and_an_audit_back_to_its_lesson(tmp_path):
    (tmp_path / "notebooks" / "audits").mkdir(parents=True)
    text = new.text("notebooks/CHAPTER.md", "probe", "walks").replace("A probe", "{}")
    for name in ("one", "two", "audits/one"):
        (tmp_path / "notebooks" / f"{name}.md").write_text(text.replace("{}", f"Page {name}"))
    (tmp_path / "_config.yml").write_text(new.text("_config.yml", "probe", "walks"))
    (tmp_path / "src" / "walks").mkdir(parents=True)
    (tmp_path / "src" / "walks" / "__init__.py").write_text('__version__ = "1.0"\n')
    (tmp_path / "_toc.yml").write_text(
        "root: index\nparts:\n  - chapters:\n      - file: notebooks/one\n        sections:\n"
        "          - file: notebooks/audits/one\n      - file: notebooks/two\n  - chapters:\n      - file: book/end\n"
    )

    def sides(page):
        context = {"prev": "as it was", "next": "as it was", "pathto": lambda name: name}
        reading.follow_the_road(
            SimpleNamespace(config=SimpleNamespace(companion_root=tmp_path)), page, "", context, None
        )
        return [side["link"] if isinstance(side := context[name], dict) else side for name in ("prev", "next")]

    assert sides("notebooks/one") == ["as it was", "notebooks/two"]
    assert sides("notebooks/audits/one") == ["notebooks/one", "notebooks/two"]
    assert sides("notebooks/two") == ["notebooks/one", "as it was"]
    assert sides("book/end") == ["as it was", "as it was"]


def test_the_editions_for_paper_hold_lessons_or_audits_without_folded_code(two_pages):
    book = two_pages[0]
    found = single_page.editions(book.root)
    assert found == {"print.html": ["index", "notebooks/probe"], "print-audits.html": ["notebooks/audits/probe"]}
    assert not book.path("_build/html/print-audits.html").exists(), "what is printed alone does not weigh on the site"
    for page in single_page.to_print(book.root).values():
        soup = BeautifulSoup(page.read_text(), "html.parser")
        assert soup.select("details.hide, .book-cite, button") == []
        assert "plt.subplots" not in soup.get_text()
        assert soup.select(".book-picture img")
    assert "both(x)" in book.html("print").get_text()


@pytest.mark.slow
@MISSING
def test_a_printed_edition_has_its_headings_as_bookmarks(two_pages, tmp_path):
    target = tmp_path / "book.pdf"
    browser.pdf(two_pages[0].path("_build/html/print.html"), target)
    content = target.read_bytes()
    assert content.startswith(b"%PDF")
    assert b"/Outlines" in content
