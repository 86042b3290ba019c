"""Published figures: complete folders, the same bytes every time, and two themes from one drawing."""

import csv
import hashlib
import io
import json
import re

import matplotlib.pyplot as plt
import numpy as np
import pytest
from bs4 import BeautifulSoup
from fontTools.pens.recordingPen import RecordingPen
from fontTools.svgLib.path import parse_path
from matplotlib.colors import to_hex
from PIL import Image

from chapters import style
from companion import figures, themes
from companion.site.markup import fill

TEXT = {
    "caption": "A line. It rises.",
    "alt": "A straight line that rises from zero at the left to two at the right end.",
    "source": "this book",
}


@pytest.fixture
def out(tmp_path, monkeypatch):
    monkeypatch.setenv("COMPANION_OUT", str(tmp_path))
    monkeypatch.setenv("COMPANION_CHAPTER", "probe")
    monkeypatch.setenv("COMPANION_PARAMETERS", '{"size": 3}')
    return tmp_path


@pytest.fixture
def rough(out, monkeypatch):
    """As `out`, where only what is not a picture matters."""
    monkeypatch.setenv("COMPANION_ROUGH", "1")
    return out


@style.house
def draw():
    figure, ax = style.subplots(width="column", height=2.0)
    ax.plot([0, 1, 2], [0, 1, 2])
    ax.fill_between([0, 1, 2], [0, 1, 2], color=style.FAINT, alpha=0.5)
    ax.annotate("here", (1, 1), (0.2, 1.6), arrowprops={"color": style.INK}, bbox={"facecolor": style.PAPER})
    ax.imshow(np.eye(2), extent=(0, 1, 0, 1))
    ax.legend(["line"], frameon=True)
    return figure


@style.house
def wide():
    figure, ax = style.subplots(height=2.0)
    ax.plot([0, 1], [1, 0])
    return figure


def publish(id="probe-line", **changes):
    given = TEXT | {"data": {"x": np.arange(3.0), "y": np.arange(3)}} | changes
    figures.publish(draw(), id, **given)


def test_the_folder_holds_every_format_the_numbers_and_a_record_with_their_digests(out):
    publish()
    folder = out / "figures" / "probe-line"
    record = json.loads((folder / "figure.json").read_text())
    stems = {"png", "svg", "pdf", "csv"}
    assert set(record["files"]) == {f"probe-line.{kind}" for kind in stems} | {"probe-line-dark.svg"}
    for name, digest in record["files"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    assert record["chapter"] == "probe"
    assert record["parameters"] == {"size": 3}
    assert "probe.html#probe-line" in record["bibtex"]
    assert (folder / "probe-line.csv").read_text() == "x,y\n0.0,0\n1.0,1\n2.0,2\n"


COLUMNS = {
    "g": np.array([0.1, 0.2, 1 / 3]),
    "error of m, naive": np.array([1e-300, np.nan, -np.inf]),
    "standard error, beta 1.4": np.arange(3, dtype=np.float32) / 7,
    "count": np.array([0, -1, 2**40]),
    "converged": np.array([True, False, True]),
    "regime": np.array(['chaos, "weak"', "fixed\npoint", ""]),
}


def test_a_table_reads_back_as_the_columns_that_were_given(rough):
    publish(data=COLUMNS)
    with (rough / "figures" / "probe-line" / "probe-line.csv").open(newline="") as table:
        rows = list(csv.reader(table, strict=True))
    assert rows[0] == list(COLUMNS)
    assert {len(row) for row in rows} == {len(COLUMNS)}
    for place, (name, column) in enumerate(COLUMNS.items()):
        cells = [row[place] for row in rows[1:]]
        if name == "converged":
            assert cells == ["True", "False", "True"]
        elif column.dtype.kind in "fi":
            assert np.array_equal(np.array(cells, dtype=float), column, equal_nan=True)
        else:
            assert cells == column.tolist()


class Unquoted:
    """What a writer that joins its fields would leave behind."""

    def __init__(self, table, **_):
        self.table = table

    def writerow(self, row):
        self.table.write(",".join(map(str, row)) + "\n")

    def writerows(self, rows):
        for row in rows:
            self.writerow(row)


class Rounding(Unquoted):
    def writerows(self, rows):
        super().writerows([f"{value:.3f}" for value in row] for row in rows)


def in_half_precision(path, **arrays):
    np.savez(path, **{name: values.astype("f2") for name, values in arrays.items()})


@pytest.mark.parametrize(
    ("module", "name", "careless", "data", "message"),
    [
        (csv, "writer", Unquoted, COLUMNS, "csv is no table: line"),
        (csv, "writer", Unquoted, {"a,b": np.arange(2), "c": np.array(["x", "y"])}, "csv is no table: line"),
        (csv, "writer", Rounding, {"x": np.array([0.0, 1 / 3])}, "csv does not read back: the column 'x' has changed"),
        (
            np,
            "savez_compressed",
            in_half_precision,
            {"x": np.linspace(0, 1, 3), "y": np.eye(2)},
            "npz does not read back: 'x' has changed",
        ),
    ],
)
def test_numbers_that_do_not_read_back_are_not_published(rough, monkeypatch, module, name, careless, data, message):
    monkeypatch.setattr(module, name, careless)
    with pytest.raises(RuntimeError, match=rf"probe-line\.{message}"):
        publish(data=data)
    assert not (rough / "figures" / "probe-line").exists()
    plt.close("all")


LABELS = {
    "error of m, naive": "error of m, naive",
    r"TAP, $|x|=R$": "TAP, length of x = R",
    r"$\beta = 1/4$": "beta = 1 over 4",
    r"$3\beta_c/2$, hot".replace("$3", "t $3"): "t 3 beta_c over 2, hot",
    r"$J_\sigma = 0.5$": "J_sigma = 0.5",
    r"random / $\sqrt{N}$": "random over root of N",
    r"$h_i$, $\langle s_i\rangle$": "h_i, mean of s_i",
    r"end to end $-\,0.1\sigma$": "end to end - 0.1 sigma",
    r"$\beta = \infty$": "beta = infinity",
    "delayed correlations $D_{il}$": "delayed correlations D_il",
    "rest of $V^{-1}$: $k \\geq 2$": "rest of V to the -1, k at least 2",
    "none (naive)": "none naive",
    "the source's system": "the source system",
    "-Ts": "minus Ts",
    "Kaplan–Yorke": "Kaplan-Yorke",
}


@pytest.mark.parametrize("label", LABELS)
def test_a_label_has_a_name_in_plain_words(label):
    assert figures.in_words({label: 1}) == {LABELS[label]: 1}
    assert figures.in_words({LABELS[label]: 1}) == {LABELS[label]: 1}


def test_two_labels_with_one_name_are_refused():
    with pytest.raises(ValueError, match="two labels have the same name"):
        figures.in_words({r"$\beta=1$": 0, "beta = 1": 1})


@pytest.mark.parametrize("label", ["", "1.5", "%", 2.5])
def test_a_label_that_no_words_say_is_refused(label):
    with pytest.raises(ValueError, match="data: expected names in plain words"):
        figures.in_words({label: 0})


@pytest.mark.parametrize("data", [{"x": np.arange(3.0), "image": np.eye(2)}, {"eigenvalues": np.array([1j, 2.0])}])
def test_numbers_of_different_lengths_and_complex_ones_are_kept_as_arrays(rough, data):
    publish(data=data)
    with np.load(rough / "figures" / "probe-line" / "probe-line.npz") as stored:
        assert {name: stored[name].tolist() for name in stored} == {name: data[name].tolist() for name in data}


def test_many_numbers_are_rounded_by_less_than_a_plot_shows_and_few_are_not(out):
    many = np.append(np.random.default_rng(0).normal(size=figures.MANY_NUMBERS), [np.nan, np.inf, 0.0, 1e-30])
    few = many[:3]
    single = many.astype(np.float32)
    publish(data={"many": many, "few": few, "counts": np.arange(2 * len(many)), "single": single})
    stored = np.load(out / "figures" / "probe-line" / "probe-line.npz")
    assert stored["few"].tolist() == few.tolist()
    assert stored["counts"].dtype == np.arange(3).dtype
    assert stored["many"].dtype == np.float32
    # Half a unit of the last of 16 binary digits, the first of which is never 0.
    np.testing.assert_allclose(stored["many"], many, rtol=2.0**-16, atol=0)
    assert stored["many"].tolist() != many.tolist()
    np.testing.assert_allclose(stored["single"], single, rtol=2.0**-16, atol=0)
    assert stored["single"].tolist() != single.tolist()


def test_the_light_drawing_keeps_what_is_drawn(out):
    publish()
    text = (out / "figures" / "probe-line" / "probe-line.svg").read_text()
    heavy = io.StringIO()
    with plt.rc_context(style.RC):
        draw().savefig(heavy, format="svg")
    # Every letter and every marker is still placed, in about half the text.
    assert text.count("<use ") == heavy.getvalue().count("<use ")
    assert len(text) < 0.8 * len(heavy.getvalue())


def points_of(path):
    """The corners of a path of straight lines, from any of the ways to write one."""
    pen = RecordingPen()
    parse_path(path, pen)
    return np.array([places[0] for command, places in pen.value if command in ("moveTo", "lineTo")])


def test_a_long_curve_is_drawn_to_a_hundredth_of_a_point_to_its_end_in_half_the_text(tmp_path):
    with plt.rc_context(style.RC | {"path.simplify": False}):
        figure, ax = plt.subplots()
        ax.plot(np.linspace(0, 1, 3000), np.random.default_rng(0).normal(size=3000).cumsum())
        figures._save_drawing(figure, tmp_path / "curve.svg", "#ffffff")
        heavy = io.StringIO()
        figure.savefig(heavy, format="svg")
        plt.close(figure)

    def longest(text):
        return max(re.findall(r'(?<= )d="([^"]*)"', text), key=len)

    light, whole = longest((tmp_path / "curve.svg").read_text()), longest(heavy.getvalue())
    drawn, meant = points_of(light), points_of(whole)
    # Of two corners on one line the drawing has one: each has its neighbour in the other list.
    assert abs(len(drawn) - len(meant)) < 10
    np.testing.assert_allclose(drawn[[0, -1]], meant[[0, -1]], rtol=0, atol=0.011)
    same = [abs(drawn - corner).max(axis=1).min() < 0.011 for corner in meant]
    assert np.mean(same) > 0.99
    assert len(light) < 0.5 * len(whole)


def test_a_drawing_of_very_many_points_is_dark_as_an_image_and_the_small_png_is_the_drawing(out, monkeypatch):
    monkeypatch.setattr(figures, "HEAVIEST_DRAWING", 1000)
    drawn = []
    savefig = plt.Figure.savefig

    def keep(figure, target, **options):
        savefig(figure, target, **options)
        if options.get("format") == "png":
            drawn.append(Image.open(io.BytesIO(target.getvalue())).convert("RGB"))

    monkeypatch.setattr(plt.Figure, "savefig", keep)
    publish()
    folder = out / "figures" / "probe-line"
    assert not (folder / "probe-line-dark.svg").exists()
    for plain, name in zip(drawn, ("probe-line.png", "probe-line-dark.png"), strict=True):
        small = Image.open(folder / name)
        assert small.size == plain.size
        # One level in 256, on average, is far below what the eye tells apart.
        assert np.abs(np.asarray(small.convert("RGB"), float) - np.asarray(plain, float)).mean() < 1.0


def test_frames_are_stacked_in_order_in_both_themes_and_described(out):
    @style.house
    def filled(colour):
        figure, ax = style.subplots(width="column", height=1.0)
        ax.axis("off")
        figure.patch.set_facecolor(style.PAPER)
        ax.axhspan(0, 1, color=colour)
        return figure

    colours = [style.QUALITATIVE[0], style.QUALITATIVE[1], style.INK]
    publish(frames={f"state {k}": filled(colour) for k, colour in enumerate(colours)})
    folder = out / "figures" / "probe-line"
    record = json.loads((folder / "figure.json").read_text())
    width, height = record["frames"]["size"]
    assert record["frames"]["labels"] == ["state 0", "state 1", "state 2"]
    assert {"probe-line-frames.png", "probe-line-frames-dark.png"} <= set(record["files"])
    for variant, expected in (("", colours), ("-dark", [style.DARK[colour] for colour in colours])):
        with Image.open(folder / f"probe-line-frames{variant}.png") as stack:
            assert stack.size == (width, 3 * height)
            middles = [stack.convert("RGB").getpixel((width // 2, int((k + 0.5) * height))) for k in range(3)]
        assert [to_hex([part / 255 for part in pixel]) for pixel in middles] == expected


def test_two_publications_of_one_figure_are_the_same_bytes(out, monkeypatch):
    publish()
    first = json.loads((out / "figures" / "probe-line" / "figure.json").read_text())["files"]
    monkeypatch.delenv("COMPANION_CHAPTER")
    publish()
    assert json.loads((out / "figures" / "probe-line" / "figure.json").read_text())["files"] == first


def test_the_dark_variant_exchanges_the_palette_and_gives_it_back():
    figure = draw()
    figure.draw_without_rendering()
    ax = figure.axes[0]

    def colours():
        return [
            to_hex(ax.lines[0].get_color()),
            to_hex(ax.collections[0].get_facecolor()[0]),
            to_hex(ax.texts[0].get_color()),
            to_hex(ax.texts[0].arrow_patch.get_facecolor()),
            to_hex(ax.texts[0].get_bbox_patch().get_facecolor()),
            to_hex(ax.xaxis.get_ticklabels()[0].get_color()),
            to_hex(ax.spines["left"].get_edgecolor()),
            to_hex(ax.get_legend().get_texts()[0].get_color()),
        ]

    light = colours()
    with themes.dark(figure, style.DARK):
        assert colours() == [style.DARK[colour] for colour in light]
        assert ax.collections[0].get_facecolor()[0][3] == 0.5
        assert ax.images[0].get_cmap().name == style.SEQUENTIAL
    assert colours() == light
    plt.close(figure)


def test_points_that_a_drawing_has_as_pixels_are_dark_too(out):
    figure = wide()
    figure.axes[0].scatter([0, 1], [1, 0], color=style.INK, rasterized=True)
    figures.publish(figure, "probe-line", **TEXT | {"data": {"x": np.arange(2.0)}})
    drawings = (out / "figures" / "probe-line" / f"probe-line{variant}.svg" for variant in ("", "-dark"))
    light, dark = (re.search(r"base64,[^\"]+", drawing.read_text())[0] for drawing in drawings)
    assert light != dark


def contrast(first, second):
    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    bright, dim = sorted((luminance(first), luminance(second)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


@pytest.mark.parametrize("colour", [style.INK, style.GREY, *style.QUALITATIVE])
def test_every_colour_of_a_figure_stands_out_in_both_themes(colour):
    assert contrast(colour, style.PAPER) >= 4.0
    assert contrast(style.DARK[colour], style.DARK[style.PAPER]) >= 4.5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alt": "A line."}, "alt: expected at least 60 characters"),
        ({"alt": ""}, "alt: expected at least 60 characters"),
        ({"caption": " "}, "caption: expected a text"),
        ({"source": ""}, "source: expected a text"),
        ({"data": {}}, "data: expected every plotted number"),
        ({"data": {"x": [[1], [1, 2]]}}, "ragged|inhomogeneous"),
        ({"data": {r"$\beta$": [1]}}, r"data: expected names in plain words .*, got '\$"),
        ({"data": {"beta/beta_c": [1]}}, "data: expected names in plain words"),
        ({"data": {" x": [1]}}, "data: expected names in plain words"),
        ({"data": {"x\n": [1]}}, "data: expected names in plain words"),
        ({"data": {1.5: [1]}}, "data: expected names in plain words .*, got 1.5"),
        ({"data": {"file": [1], "x": 0.0}}, "data: 'file' is an argument of numpy.savez"),
        ({"data": {"x": np.ma.masked_equal([1, 2], 2)}}, "data: expected arrays without masked values"),
        ({"frames": {}}, "frames: expected two or more"),
        ({"frames": {"one": draw()}}, "frames: expected two or more"),
        ({"frames": {"one": draw(), "other": wide()}}, "of one size"),
        ({"id": "Probe Line"}, "id: expected CHAPTER-NAME"),
        ({"id": "other-line"}, "id: expected it to begin with 'probe'"),
    ],
)
def test_an_incomplete_publication_names_what_is_missing(out, change, message):
    with pytest.raises(ValueError, match=message):
        publish(**change)
    plt.close("all")


def test_one_id_is_published_once_in_a_chapter(out):
    publish()
    with pytest.raises(ValueError, match="published before"):
        publish()
    plt.close("all")


def test_markup_of_an_animation_is_hidden_without_script_and_carries_the_words_of_every_frame():
    labels = ['beta = 1: "low"', "beta = 2: high & dry"]
    record = {"id": "probe-line", "frames": {"labels": labels, "size": [600, 200]}}
    markup = fill("figures.frames", record=record, labels=json.dumps(labels), to_root="../")
    player, window, *images = BeautifulSoup(markup, "html.parser").find_all(True)
    assert "hidden" in player.attrs
    assert json.loads(player["data-labels"]) == labels
    assert window["style"] == "aspect-ratio: 600 / 200"
    assert [(image["src"], image["height"]) for image in images] == [
        ("../figures/probe-line/probe-line-frames.png", "400"),
        ("../figures/probe-line/probe-line-frames-dark.png", "400"),
    ]


def test_a_rough_figure_is_one_small_picture_with_its_record(rough):
    publish(frames={"first": draw(), "second": draw()})
    folder = rough / "figures" / "probe-line"
    assert {path.name for path in folder.iterdir()} == {"probe-line.png", "probe-line.csv", "figure.json"}
    assert "frames" not in json.loads((folder / "figure.json").read_text())
    assert plt.get_fignums() == []


def test_a_figure_that_cannot_be_read_is_not_published(out):
    figure = draw()
    figure.axes[0].set_xlabel("time", fontsize=3.0)
    with pytest.raises(ValueError, match=r"probe-line is hard to read: text of 3 points"):
        figures.publish(figure, "probe-line", **TEXT | {"data": {"x": np.arange(3.0)}})
    assert not (out / "figures" / "probe-line").exists()
    plt.close("all")


def test_a_crowded_figure_says_so_in_its_record(out):
    figure = draw()
    for place in (0.50, 0.51):
        figure.axes[0].text(place, 1.9, "late", color=style.INK)
    figures.publish(figure, "probe-line", **TEXT | {"data": {"x": np.arange(3.0)}})
    record = json.loads((out / "figures" / "probe-line" / "figure.json").read_text())
    assert "texts overlap: 'late' and 'late'" in record["crowded"]


def test_arrays_alone_are_saved_whatever_the_version_of_numpy(tmp_path, monkeypatch):
    saved, real = {}, np.savez_compressed
    monkeypatch.setattr(np, "savez_compressed", lambda path, **given: (saved.update(given), real(path, **given)))
    figures._save_data(tmp_path, "probe-square", {"square": np.ones((2, 2))})
    # Before NumPy 2.1 an option would be one more array.
    assert list(saved) == ["square"]
