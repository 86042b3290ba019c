"""Saved figures: every file of their folders, the same bytes every time, two themes, and the numbers of the artists."""

import csv
import hashlib
import json
import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from PIL import Image

from companion import figures

RNG = np.random.default_rng(1)


@pytest.fixture(autouse=True)
def out(tmp_path, monkeypatch):
    told = {"CHAPTER": "probe", "PAGE": "audits/probe", "COMMIT": "abc", "PARAMETERS": '{"size": 3}'}
    for name, value in {"ROOT": str(Path.cwd()), "OUT": str(tmp_path), **told}.items():
        monkeypatch.setenv(f"COMPANION_{name}", value)
    with plt.style.context("spinbook.book"):
        yield tmp_path


@pytest.fixture
def rough(monkeypatch):
    monkeypatch.setenv("COMPANION_ROUGH", "1")


def draw():
    figure, ax = plt.subplots(figsize=(4.6, 2.0))
    ax.plot([0, 1, 2], [0, 1, 2], label="line")
    ax.plot([0, 1, 2], [2, 2, 1], "k--")
    ax.fill_between([0, 1, 2], [0, 1, 2], color="0.8", alpha=0.5)
    ax.text(0.2, 1.6, "black", color="black")
    ax.legend()
    return figure


def folder(out, id="probe-line"):
    return out / "figures" / id


def record(out, id="probe-line"):
    return json.loads((folder(out, id) / "figure.json").read_text())


def table(out):
    with (folder(out) / "probe-line.csv").open(newline="") as file:
        names, *rows = csv.reader(file)
    return dict(zip(names, np.array(rows, float).T.tolist(), strict=True))


def test_a_figure_that_is_taken_has_every_file_and_is_closed(out):
    draw()
    figures.take("probe-line")
    names = {f"probe-line.{kind}" for kind in ("png", "svg", "pdf", "npz")} | {"probe-line-dark.svg"}
    assert {path.name for path in folder(out).iterdir()} == names | {"figure.json"}
    assert set(record(out)["files"]) == names
    assert (record(out)["chapter"], record(out)["parameters"]) == ("probe", {"size": 3})
    assert record(out)["size"] == [920, 400]
    assert not {"caption", "alt", "source"} & set(record(out))
    assert plt.get_fignums() == []


def test_the_same_figure_has_the_same_bytes(out):
    digests = []
    for id in ("probe-line", "probe-line"):
        draw()
        figures.take(id)
        digests.append({path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder(out).iterdir()})
        folder(out).rename(out / f"{len(digests)}")
    assert digests[0] == digests[1]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"$x$": [1]}, "plain words"),
        ({"x": [[1], [1, 2]]}, "inhomogeneous|arrays of numbers"),
        ({"x": np.array([1, None])}, "arrays of numbers or text"),
        ({"x": np.ma.masked_less([1, 2], 2)}, "without masks"),
    ],
)
def test_what_cannot_be_saved_is_refused(out, rough, data, message):
    draw().data = data
    with pytest.raises(ValueError, match=message):
        figures.take("probe-line")
    assert not folder(out).exists()


# The dark variant.


def colours(path):
    return set(re.findall(r"#[0-9a-f]{6}\b|#[0-9a-f]{3}\b", path.read_text()))


def test_the_dark_drawing_has_the_dark_colour_of_every_light_one(out):
    draw()
    figures.take("probe-line")
    light, dark = (colours(folder(out) / f"probe-line{variant}.svg") for variant in ("", "-dark"))
    assert {"#0069a8", "#1b1f24", "#5f6773", "#ffffff"} <= light
    assert {"#5ab8f0", "#e6e9ee", "#a3acb9", "#14181e"} <= dark
    assert not light & dark
    assert (folder(out) / "probe-line-dark.svg").read_text().count("<svg ") == 1
    assert re.search(r'<svg [^>]*fill="#e6e9ee"', (folder(out) / "probe-line-dark.svg").read_text())


def test_every_colour_of_the_style_has_a_dark_one():
    cycle = set(plt.rcParams["axes.prop_cycle"].by_key()["color"])
    named = {value for value in plt.rcParams.values() if isinstance(value, str) and re.fullmatch("[0-9a-f]{6}", value)}
    assert {colour.removeprefix("#") for colour in cycle | named} <= {colour[1:] for colour in figures.DARK}
    assert figures._dark("#ffffff") == "#14181e"
    assert figures._dark("#000000") == "#e6e9ee"
    assert figures._dark("#123456") == "#123456"


def test_a_heavy_drawing_is_shown_as_a_picture_whose_greys_are_inverted(out):
    _, ax = plt.subplots()
    ax.scatter(*RNG.normal(size=(2, 4000)), s=3)
    ax.pcolormesh(RNG.normal(size=(30, 30)))
    figures.take("probe-line")
    assert "probe-line-dark.png" in record(out)["files"]
    assert "probe-line-dark.svg" not in record(out)["files"]
    with Image.open(folder(out) / "probe-line-dark.png") as dark:
        assert dark.convert("RGB").getpixel((3, 3)) == (0x14, 0x18, 0x1E)


def test_a_colour_stays_in_the_dark_picture_and_black_becomes_light():
    strip = np.array([[to_rgb(colour) for colour in ("white", "black", "blue", "0.5")]]) * 255
    dark = np.asarray(figures._dark_picture(Image.fromarray(strip.astype(np.uint8))))[0].tolist()
    assert dark[:3] == [[0x14, 0x18, 0x1E], [0xE6, 0xE9, 0xEE], [0, 0, 255]]
    assert 120 < dark[3][0] < 140


# The numbers.


def numbers(figure):
    return {name: np.asarray(values).tolist() for name, values in figures.shown(figure).items()}


def test_lines_share_their_x_and_are_named_by_their_labels():
    _, ax = plt.subplots()
    ax.plot([1, 2], [3, 4], label=r"TAP, $\beta = 2$")
    ax.plot([1, 2], [5, 6])
    ax.plot([1, 3], [7, 8], label="_hidden")
    ax.plot([1, 2], [9, 9], label=r"TAP, $\beta = 2$")
    ax.axhline(0)
    ax.axvline(1)
    assert numbers(ax.figure) == {
        "x": [1, 2],
        "TAP, beta = 2": [3, 4],
        "line 2": [5, 6],
        "line 3 x": [1, 3],
        "line 3": [7, 8],
        "TAP, beta = 2 copy 2": [9, 9],
    }


def test_error_bars_have_their_lengths_or_their_ends():
    _, ax = plt.subplots()
    ax.errorbar([1, 2], [3.0, 4.0], [0.5, 0.25], fmt="o", label="runs")
    ax.errorbar([1, 2], [3.0, 4.0], [[1, 1], [2, 3]], xerr=0.5, label="ends")
    assert numbers(ax.figure) == {
        "x": [1, 2],
        "runs": [3, 4],
        "runs error": [0.5, 0.25],
        "ends": [3, 4],
        "ends x error": [0.5, 0.5],
        "ends error low": [2, 3],
        "ends error high": [5, 7],
    }


def test_points_bars_and_fills_are_found():
    _, ax = plt.subplots()
    ax.scatter([1, 2], [3, 4], c=[0.1, 0.2], label="dots")
    ax.bar([1, 2], [5, 6], label="counts")
    ax.barh([7], [8], label="flat")
    ax.fill_between([0, 1], [0, 0], [1, 2], label="band")
    found = numbers(ax.figure)
    assert (found["dots"], found["dots value"], found["counts"]) == ([3, 4], [0.1, 0.2], [5, 6])
    assert (found["flat x"], found["flat"]) == ([7], [8])
    assert set(found["band outline y"]) == {0, 1, 2}


def test_images_and_meshes_are_found_and_panels_are_told_apart(out, rough):
    figure, (left, right) = plt.subplots(1, 2)
    left.set_title("(a) Now")
    figure.colorbar(left.imshow(np.eye(2)))
    right.pcolormesh(np.ones((2, 3)), label="weights")
    figures.take("probe-line")
    with np.load(folder(out) / "probe-line.npz") as stored:
        assert {name: stored[name].tolist() for name in stored} == {
            "a Now image 1": np.eye(2).tolist(),
            "panel 2 weights": np.ones((2, 3)).tolist(),
        }


def test_data_that_are_set_take_the_place_of_what_is_shown(out, rough):
    draw().data = {"all": [1, 2, 3], "spread": [0.5, 0.25, 0.125]}
    figures.take("probe-line")
    assert table(out) == {"all": [1, 2, 3], "spread": [0.5, 0.25, 0.125]}


def test_a_scheme_has_pictures_and_no_numbers(out, rough):
    plt.figure().text(0.5, 0.5, "a scheme")
    figures.take("probe-line")
    assert sorted(path.name for path in folder(out).iterdir()) == ["figure.json", "probe-line.png"]


def test_many_numbers_are_kept_to_sixteen_digits_and_few_to_all(out, rough):
    many, few = RNG.normal(size=6000), RNG.normal(size=(5, 2))
    draw().data = {"many": many, "few": few}
    figures.take("probe-line")
    with np.load(folder(out) / "probe-line.npz") as stored:
        assert stored["many"].dtype == np.float32
        assert np.abs(stored["many"] / many - 1).max() < 2**-16
        assert stored["few"].tolist() == few.tolist()


def test_long_columns_are_written_to_six_digits(out, rough):
    long = RNG.normal(size=6000)
    draw().data = {"a": long, "n": np.arange(6000)}
    figures.take("probe-line")
    assert np.allclose(table(out)["a"], long, rtol=5e-6, atol=0)
    assert (folder(out) / "probe-line.csv").stat().st_size < 6000 * 17
