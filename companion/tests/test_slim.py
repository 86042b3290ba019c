"""A lighter site shows the same: the words, the colours of code, the icons that a page has, and nothing else goes."""

import json
import re
from pathlib import Path

import pydata_sphinx_theme
import pytest
from bs4 import BeautifulSoup

from companion.site import browser, slim

COLOURS = """\
html[data-theme="light"] .highlight { background: #fefefe; color: #080808 }
html[data-theme="light"] .highlight .n { color: #080808 } /* Name */
html[data-theme="light"] .highlight .k { color: #6730C5 } /* Keyword */
html[data-theme="light"] .highlight .p { color: #080808 }
html[data-theme="dark"] .highlight { background: #2b2b2b; color: #F8F8F2 }
html[data-theme="dark"] .highlight .n { color: #F8F8F2 } /* Name */
html[data-theme="dark"] .highlight .k { color: #DCC6E0 }
html[data-theme="dark"] .highlight .p { color: #ABE338 }
html[data-theme="light"] .highlight .o { color: #00622F } /* Operator */
html[data-theme="dark"] .highlight .o { color: #ABE338 } /* Operator */
"""
ICONS = (
    '(()=>{var c={github:[512,512,[],"f09b","M0 0"],"magnifying-glass":[512,512,[128269,"search"],"f002","M1 1"],'
    'xmark:[320,512,["close"],"f00d","M3 3"],whale:[640,512,[],"f72c",["M2 2","M4 4"]]};window.icons=c})();'
)
FONTS = (
    '@font-face{font-family:F;src:url(f.woff2) format("woff2"),url(f.ttf) format("truetype")}'
    '@font-face{font-family:G;src:url(g.ttf) format("truetype")}'
)
PAGE = """\
<html>
    <body>
        <p>Two
            words,   <i class="fa-brands fa-github"></i>
            <button><i class="fa-solid fa-search fa-lg"></i></button></p>

        <div class="highlight-ipython3"><div class="highlight"><pre><span></span><span class="k">if</span> <a>\
<span class="n">x</span></a><span class="p">:</span>
    <span class="n">y</span> <span class="o">=</span> 1
</pre></div></div>
        <textarea>
  kept</textarea>
        <p><span class="n">not code</span></p>
    </body>
</html>
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "_static" / "scripts").mkdir(parents=True)
    (tmp_path / "_static" / "pygments.css").write_text(COLOURS)
    (tmp_path / "_static" / "fonts.css").write_text(FONTS)
    (tmp_path / "_static" / "scripts" / "fontawesome.js").write_text(ICONS)
    for font in ("f.woff2", "f.ttf", "g.ttf"):
        (tmp_path / "_static" / font).write_text("font")
    (tmp_path / "page.html").write_text(PAGE)
    return tmp_path


def test_words_stay_and_code_keeps_its_lines_and_its_colours(site):
    slim.site(site)
    text = (site / "page.html").read_text()
    before, after = (BeautifulSoup(one, "html.parser") for one in (PAGE, text))
    assert after.get_text().split() == before.get_text().split()
    assert after.select_one("pre").get_text() == before.select_one("pre").get_text()
    assert after.select_one("textarea").get_text() == before.select_one("textarea").get_text()
    # A token goes that has the colour of all code in both themes; .p is another colour in one of them.
    # Operators go too.
    assert [one["class"] for one in after.select("pre span[class]")] == [["k"], ["p"]]
    assert '<span class="n">not code</span>' in text
    assert "\n  " not in re.sub(r"<(pre|textarea).*?</\1>", "", text, flags=re.DOTALL)
    assert "Two\nwords" in text, "between words stays a space"
    slim.site(site)
    assert (site / "page.html").read_text() == text


def test_only_icons_that_no_page_has_and_fonts_that_no_browser_reads_go(site):
    slim.site(site)
    script = (site / "_static" / "scripts" / "fontawesome.js").read_text()
    assert re.findall(r"(?<=[{,])\"?([\w-]+)\"?:\[\d", script) == ["github", "magnifying-glass", "xmark"]
    assert {font.name for font in (site / "_static").glob("*.*f*")} == {"f.woff2", "g.ttf"}
    assert (site / "_static" / "fonts.css").read_text() == FONTS.replace(',url(f.ttf) format("truetype")', "")


def test_only_rules_of_icons_that_a_page_has_stay(site):
    kept = (
        '.fa-lg{font-size:1.25em}.fa-magnifying-glass:before,.fa-search:before{content:"\\f002"}'
        '.x:before{content:"\\f0d7"}'
    )
    (site / "_static" / "icons.css").write_text(
        kept + '.fa-whale:before{content:"\\f72c"}.fa-0:before{content:"\\30 "}'
    )
    slim.site(site)
    assert (site / "_static" / "icons.css").read_text() == kept


def test_the_list_of_sections_that_the_theme_prints_goes_and_the_title_above_it_stays(site):
    contents = '<nav aria-label="Page">\n<ul><li><a href="#a">A</a></li></ul>\n</nav>'
    printed = (
        '<div id="jb-print-docs-body" class="onlyprint"><h1>Title</h1><div id="print-main-content">'
        f'<div id="jb-print-toc"><div><h2> Contents </h2></div>{contents}\n</div></div></div>'
        f'<div id="beside">{contents}</div>'
    )
    (site / "page.html").write_text(f"<html><body>{printed}</body></html>")
    slim.site(site)
    page = BeautifulSoup((site / "page.html").read_text(), "html.parser")
    assert page.select_one("#jb-print-docs-body h1").get_text() == "Title"
    assert page.select_one("#jb-print-docs-body #print-main-content").get_text().strip() == ""
    assert [link.get_text() for link in page.select("#beside a")] == ["A"]


SIGNATURE = """\
<dt class="sig sig-object py" id="lib.one.f"><span class="sig-name descname"><span class="pre">f</span></span>(\
<em class="sig-param"><span class="n"><span class="pre">x</span></span>\
<span class="p"><span class="pre">:</span></span><span class="w"> </span>\
<span class="n"><a class="reference internal" href="lib.html#lib.Float" title="lib.Float">\
<span class="pre">Float</span></a><span class="p"><span class="pre">[</span></span>\
<a class="reference external" href="https://x.org/a.html#a.Array" title="(in a v1)"><span class="pre">Array</span></a>\
<span class="p"><span class="pre">]</span></span></span></em>, \
<em class="sig-param"><span class="o"><span class="pre">*</span></span></em>, \
<em class="sig-param"><span class="n"><span class="pre">way</span></span>\
<span class="o"><span class="pre">=</span></span>\
<span class="default_value"><span class="pre">'to-day'</span></span></em>)</dt>"""


def test_a_signature_keeps_its_words_its_operators_and_what_holds_a_word_together(site):
    (site / "page.html").write_text(SIGNATURE)
    slim.site(site)
    before, after = (BeautifulSoup(text, "html.parser") for text in (SIGNATURE, (site / "page.html").read_text()))
    assert after.get_text() == before.get_text() == "f(x: Float[Array], *, way='to-day')"
    assert [one.get_text() for one in after.select(".o")] == ["*", "="]
    assert [one.get_text() for one in after.select(".pre")] == ["'to-day'"], "a line would break after the hyphen"
    assert not after.select(".n, .p, .w")
    for kept in (".sig-name", ".sig-param", ".default_value", "a"):
        assert [one.get_text() for one in after.select(kept)] == [one.get_text() for one in before.select(kept)]
    assert [link["href"] for link in after.select("a")] == [link["href"] for link in before.select("a")]
    assert not after.select("[title]"), "a title that repeats the address, and one that names a project"


@pytest.mark.skipif(browser.find() is None, reason="no browser is installed")
def test_words_of_code_that_lose_their_guard_break_over_no_line(site):
    words = (
        "a-b a/b f(x) f(x)[0] a[i,j] 'x' x=1 --k -1 a:b {a} ~x.y #N a,(b) h(x).y [a, (b), a*b x->y p|q 50% q?r a_b.c"
    )
    words = [*words.split(), "λ1", '"N', 'N"]', "x;y", "..."]
    marked = "".join(f'<p><code><span class="pre">{word}</span></code></p>' for word in words)
    (site / "page.html").write_text(f"<html><body style='width: 1px'>{marked}</body></html>")
    slim.site(site)
    script = (
        "return JSON.stringify([...document.querySelectorAll('code')].map("
        "(code) => code.querySelector('.pre') ? 0 : code.getClientRects().length));"
    )
    lines = json.loads(browser.evaluate(site / "page.html", script))
    assert len(lines) == len(words)
    assert set(lines) == {0, 1}
    bare = {word for word, count in zip(words, lines, strict=True) if count}
    assert bare >= {"f(x)", "x=1", "a_b.c", "a[i,j]", "'x'"}


LIBRARY = """\
<html><body><div id="pst-primary-sidebar"><ul>
<li class="toctree-l1 has-children"><a class="reference internal" href="{up}notebooks/a.html">A</a><details>\
<summary>+</summary><ul>
<li class="toctree-l2"><a class="reference internal" href="{up}notebooks/b.html">B</a></li></ul></details></li>
<li class="toctree-l1 has-children"><a class="reference internal" href="{made}index.html">Library</a><details{open}>\
<summary>+</summary><ul>
<li class="toctree-l2"><a class="reference internal" href="{made}one.html">one</a></li>
<li class="toctree-l2 has-children"><a class="reference internal" href="{made}two.html">two</a><details>\
<summary>+</summary><ul>
<li class="toctree-l3"><a class="reference internal" href="{made}two.x.html">two.x</a></li></ul></details></li>
</ul></details></li></ul></div>
<main><a class="reference internal" href="{made}two.html">two</a>
<ul><li><a href="{up}_sources/reference/one.rst">source</a></li><li>print</li></ul></main></body></html>
"""


def test_the_contents_list_generated_pages_around_the_open_one_alone(site):
    pages = {"page.html": ("", "reference/", ""), "reference/one.html": ("../", "", ' open="open"')}
    for name, (up, made, opened) in pages.items():
        (site / name).parent.mkdir(exist_ok=True)
        (site / name).write_text(LIBRARY.format(up=up, made=made, open=opened))
    (site / "_sources" / "reference").mkdir(parents=True)
    (site / "_sources" / "reference" / "one.rst").write_text("one")
    slim.site(site, generated="reference")
    found = {name: BeautifulSoup((site / name).read_text(), "html.parser") for name in pages}
    listed = {name: [a.get_text() for a in one.select("#pst-primary-sidebar a")] for name, one in found.items()}
    assert listed == {"page.html": ["A", "B", "Library"], "reference/one.html": ["A", "Library", "one", "two"]}
    # What folds has a fold, and nothing else says that it has.
    for one in found.values():
        assert [bool(item.find("details", recursive=False)) for item in one.select("li")] == [
            "has-children" in item.get_attribute_list("class") for item in one.select("li")
        ]
        assert one.select_one("main a")["class"] == ["reference", "internal"], "previews know links by their class"
    assert "source" in found["page.html"].select_one("main ul").get_text()
    assert found["reference/one.html"].select_one("main ul").get_text(strip=True) == "print"
    assert not (site / "_sources" / "reference").exists()
    texts = {name: (site / name).read_text() for name in pages}
    slim.site(site, generated="reference")
    assert texts == {name: (site / name).read_text() for name in pages}


def test_the_theme_knows_an_entry_with_a_fold_by_a_class_that_goes_so_the_book_has_its_rule():
    theme = (
        Path(pydata_sphinx_theme.__file__).parent / "theme/pydata_sphinx_theme/static/styles/pydata-sphinx-theme.css"
    )
    rules = dict(re.findall(r"([^{}]*has-children[^{}]*){([^}]*)}", theme.read_text(encoding="utf-8")))
    lost = [rule for selector, rule in rules.items() if re.search(r"has-children\s*>\s*\.reference", selector)]
    own = Path(slim.__file__).parents[1] / "static" / "companion.css"
    (kept,) = re.findall(r"li\.has-children > a {([^}]*)}", own.read_text(encoding="utf-8"))
    plain = [{part.replace(" ", "") for part in rule.strip(" ;").split(";")} for rule in (*lost, kept)]
    assert len(lost) == 1
    assert plain[0] == plain[1]


@pytest.mark.skipif(browser.find() is None, reason="no browser is installed")
def test_the_script_of_icons_still_runs_without_them(site):
    slim.site(site)
    page = site / "page.html"
    page.write_text(
        page.read_text().replace("<html>", '<html><head><script src="_static/scripts/fontawesome.js"></script></head>')
    )
    assert json.loads(browser.evaluate(page, "return JSON.stringify(Object.keys(window.icons));")) == [
        "github",
        "magnifying-glass",
        "xmark",
    ]
