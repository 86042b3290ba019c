"""Searching the site: what the index holds, and what a reader finds in a browser that reads files."""

import functools
import http.server
import json
import threading
from contextlib import contextmanager

import pytest

from companion.site import browser, search

MISSING = pytest.mark.skipif(browser.find() is None, reason="no browser is installed")

PAGE = r"""<!DOCTYPE html><html><head><title>x</title></head><body><article class="bd-article">
<section id="a-page"><h1>A page<a class="headerlink" href="#a-page">#</a></h1><p>Spins align, said
<span class="math notranslate nohighlight">\(\beta J\)</span>.</p>
<div class="cell"><div class="cell_input"><pre>secret_code = 1</pre></div></div>
<section id="inner"><h2>Inner part<a class="headerlink" href="#inner">#</a></h2><p>Walkers drift.</p>
<div class="math notranslate nohighlight" id="equation-e"><span class="eqno">(1)</span>\[y = x^2\]</div></section>
<table><tbody><tr id="ledger-claim-a-b"><td><a href="x"><code>a.b</code></a><p>They drift.</p></td>
<td>0.1234</td></tr></tbody></table>
<dl class="glossary"><dt id="term-magnet">magnet</dt><dd>Many spins.</dd></dl>
<dl class="py function"><dt class="sig sig-object py" id="lib.walk">lib.walk(x)</dt><dd><p>Go.</p><p>Rest.</p></dd></dl>
</section></article></body></html>"""


def entries(site):
    text = (site / search.INDEX).read_text(encoding="utf-8")
    pages = json.loads(text.removeprefix("window.BOOK_SECTIONS=").removesuffix(";\n"))
    assert len({file for file, _, _ in pages}) == len(pages)
    return [
        dict(zip(("file", "page", "title", "anchor", "text"), (file, page, *section), strict=True))
        for file, page, sections in pages
        for section in sections
    ]


def test_every_section_claim_term_and_name_is_an_entry_of_its_own_in_plain_words(tmp_path):
    (tmp_path / "one.html").write_text(PAGE, encoding="utf-8")
    search.write(tmp_path)
    found = {(entry["title"], entry["anchor"]): entry["text"] for entry in entries(tmp_path)}
    assert found == {
        ("A page", ""): "Spins align, said βJ.",
        ("Inner part", "inner"): "Walkers drift. y = x^2",
        ("a.b", "ledger-claim-a-b"): "They drift.",
        ("magnet", "term-magnet"): "Many spins.",
        ("lib.walk", "lib.walk"): "Go.",
    }
    assert [entry["page"] for entry in entries(tmp_path)] == 5 * ["A page"]


def test_the_index_of_a_book_leads_to_places_that_exist_and_holds_no_markup(two_pages):
    html = two_pages[0].path("_build/html")
    found = entries(html)
    pages = {name: (html / name).read_text(encoding="utf-8") for name in {entry["file"] for entry in found}}
    assert all(f'id="{entry["anchor"]}"' in pages[entry["file"]] for entry in found if entry["anchor"])
    text = "".join(entry["text"] for entry in found)
    assert not [sign for sign in ("\\(", "\\[", "import numpy", "<p>", "\\frac") if sign in text]
    assert "search-index.js" in (html / "search.html").read_text(encoding="utf-8")
    assert not (html / "searchindex.js").exists()


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Prints no line for every file."""

    def log_message(self, *words):
        pass


@contextmanager
def served(folder):
    """The address of a folder that a server of this machine gives out."""
    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


@MISSING
def test_a_search_over_the_network_finds_the_same(two_pages):
    with served(two_pages[0].path("_build/html")) as address:
        found = browser.run(f"{address}/search.html?q=independent+walkers", "--dump-dom", budget_ms=5000)
    assert "of “independent walkers”" in found
    assert "<mark>independent</mark> <mark>walkers</mark>" in found


@MISSING
def test_a_search_from_the_file_system_lands_at_the_section_with_the_words_marked(two_pages):
    html = two_pages[0].path("_build/html")
    found = browser.run(f"{(html / 'search.html').as_uri()}?q=independent+walkers", "--dump-dom", budget_ms=5000)
    said, results = found.partition('<p role="status">')[2].partition("</p>")[::2]
    assert "of “independent walkers”" in said
    first = results.partition("</li>")[0]
    assert 'href="notebooks/probe.html?highlight=' in first
    assert ">1. A probe</a>" in first
    assert "<mark>independent</mark> <mark>walkers</mark>" in first
    nothing = browser.run(f"{(html / 'search.html').as_uri()}?q=zzzzz", "--dump-dom", budget_ms=5000)
    assert "Nothing was found for “zzzzz”." in nothing
    page = f"{(html / 'notebooks/probe.html').as_uri()}?highlight=walkers"
    assert '<span class="highlighted">walkers</span>' in browser.run(page, "--dump-dom", budget_ms=5000)
