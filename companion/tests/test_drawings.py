"""One drawing for both themes is, in each of them, the drawing that was published for it."""

import hashlib
import json

import numpy as np
import pytest
from bs4 import BeautifulSoup

from chapters import style
from companion import figures
from companion.site import browser, drawings, rendering
from companion.site.markup import fill

HEAD = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><defs><style type="text/css">*{}</style></defs>'
LIGHT = HEAD + '<path id="a" d="m0 0h8" fill="#fff" stroke="#123"/><use stroke="#456" href="#a"/></svg>'
DARK = LIGHT.replace("#fff", "#000").replace("#456", "#abc")


def test_the_light_drawing_stays_and_carries_the_colours_of_the_dark_one():
    both = drawings.merge(LIGHT, DARK)
    assert both.startswith('<svg id="dark" ')
    assert both.partition("</defs>")[2] == LIGHT.partition("</defs>")[2]
    assert ":root{--c0:#fff;--c1:#456}:root:target{--c0:#000;--c1:#abc}" in both
    # Other names of the same parts are the same drawing.
    assert drawings.merge(LIGHT, DARK.replace('id="a"', 'id="b"').replace("#a", "#b", 1).replace("#bbc", "#abc"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("h8", "h7"),
        ("<use", '<path d="m0 0h1" fill="#fff"/><use'),
        ('href="#a"', 'href="#c"'),
        # One colour of an attribute that becomes two.
        ("</svg>", '<path stroke="#123"/></svg>'),
    ],
)
def test_drawings_that_differ_in_more_than_colours_stay_two(old, new):
    if old == "</svg>":
        light, dark = LIGHT.replace(old, new), DARK.replace(old, new.replace("#123", "#321"))
    else:
        light, dark = LIGHT, DARK.replace(old, new)
    assert drawings.merge(LIGHT, DARK) is not None
    assert drawings.merge(light, dark) is None


def test_a_drawing_that_has_no_place_for_rules_stays_as_it_is():
    bare = '<svg xmlns="http://www.w3.org/2000/svg"><path fill="#fff"/></svg>'
    assert drawings.merge(bare, bare.replace("#fff", "#000")) is None
    taken = LIGHT.replace('id="a"', 'id="dark"').replace('"#a"', '"#dark"')
    assert drawings.merge(taken, taken.replace("#fff", "#000")) is None


_COMPARE = """
const load = (address) => new Promise((done, failed) => {
  const image = new Image(); image.onload = () => done(image); image.onerror = failed; image.src = address; });
const pixels = (image) => {
  const canvas = Object.assign(document.createElement("canvas"), { width: 400, height: 300 });
  const context = canvas.getContext("2d"); context.drawImage(image, 0, 0, 400, 300);
  return context.getImageData(0, 0, 400, 300).data; };
const apart = (a, b) => a.reduce((most, value, place) => Math.max(most, Math.abs(value - b[place])), 0);
const [light, dark, shown, darkly] = (await Promise.all(ADDRESSES.map(load))).map(pixels);
return JSON.stringify([apart(light, shown), apart(dark, darkly), apart(light, dark)]);
"""


@style.house
def draw():
    figure, axes = style.subplots(width="column", height=2.0)
    x = np.linspace(0, 1, 9)
    axes.plot(x, x**2, "o-", label="square")
    axes.plot(x, x, "s--", label="line")
    axes.fill_between(x, 0, x**3, color=style.FAINT, alpha=0.5)
    axes.legend(loc="upper left")
    axes.set(xlabel="$x$", ylabel="value")
    return figure


@pytest.mark.skipif(browser.find() is None, reason="no browser is installed")
def test_a_browser_shows_the_published_drawing_of_each_theme_to_every_pixel(tmp_path, monkeypatch):
    monkeypatch.setenv("COMPANION_OUT", str(tmp_path))
    monkeypatch.setenv("COMPANION_CHAPTER", "probe")
    alt = "A parabola and a line over the unit interval; the parabola lies below."
    facts = {"caption": "Two curves over the unit interval.", "alt": alt, "source": "this book"}
    figures.publish(draw(), "probe-both", data={"x": np.arange(3)}, **facts)
    drawn = tmp_path / "figures" / "probe-both"
    for name in ("probe-both.svg", "probe-both-dark.svg"):
        (tmp_path / name).write_text((drawn / name).read_text())
    drawings.join(drawn)
    record = json.loads((drawn / "figure.json").read_text())
    picture = BeautifulSoup(fill("figures.picture", record, to_root=""), "html.parser")
    shown = "figures/probe-both/probe-both.svg"
    assert [image["src"] for image in picture.select("img")] == [shown, f"{shown}#dark"]
    page = tmp_path / "page.html"
    page.write_text("<html></html>")
    addresses = json.dumps(["probe-both.svg", "probe-both-dark.svg", shown, f"{shown}#dark"])
    light, dark, themes = json.loads(browser.evaluate(page, _COMPARE.replace("ADDRESSES", addresses)))
    assert (light, dark) == (0, 0)
    assert themes > 100, "the themes differ"


def _figure(folder, light, dark):
    folder.mkdir()
    files = {f"{folder.name}.svg": light, f"{folder.name}-dark.svg": dark, f"{folder.name}.pdf": "pdf"}
    for name, text in files.items():
        (folder / name).write_text(text)
    digests = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()}
    (folder / "figure.json").write_text(json.dumps({"id": folder.name, "files": digests}))
    return folder


@pytest.mark.parametrize(("dark", "names"), [(DARK, {"a.svg"}), (DARK.replace("h8", "h9"), {"a.svg", "a-dark.svg"})])
def test_the_record_names_the_one_drawing_with_its_digest_and_two_where_they_stay_two(tmp_path, dark, names):
    folder = _figure(tmp_path / "a", LIGHT, dark)
    for _ in range(2):
        drawings.join(folder)
        files = json.loads((folder / "figure.json").read_text())["files"]
        assert set(files) == names | {"a.pdf"} == {path.name for path in folder.iterdir()} - {"figure.json"}
        drawings.refuse_changes(folder, files)
    rendering._lighten(folder, preview=False)
    assert {path.name for path in folder.iterdir()} == names | {"figure.json"}


def test_a_drawing_that_is_not_the_published_one_is_not_joined_with_another(tmp_path):
    folder = _figure(tmp_path / "a", LIGHT, DARK)
    (folder / "a-dark.svg").write_text(DARK.replace("#000", "#111"))
    with pytest.raises(ValueError, match=r"figure a: the files \['a-dark.svg'\] are not those"):
        drawings.join(folder)
