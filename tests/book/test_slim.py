"""A lighter site shows the same: the words, the colours of code, the icons that a page has, and nothing else goes."""

import json
import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from companion.pipeline import browser, slim

COLOURS = """\
html[data-theme="light"] .highlight { background: #fefefe; color: #080808 }
html[data-theme="light"] .highlight .n { color: #080808 } /* Name */
html[data-theme="light"] .highlight .k { color: #6730C5 } /* Keyword */
html[data-theme="light"] .highlight .p { color: #080808 }
html[data-theme="dark"] .highlight { background: #2b2b2b; color: #F8F8F2 }
html[data-theme="dark"] .highlight .n { color: #F8F8F2 } /* Name */
html[data-theme="dark"] .highlight .k { color: #DCC6E0 }
html[data-theme="dark"] .highlight .p { color: #ABE338 }
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
    <span class="n">y</span>
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
