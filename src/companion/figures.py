"""Saves the figure that a cell of a page left open: pictures, the numbers in them, and a record."""

from __future__ import annotations

import csv
import io
import json
import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection, PolyCollection, QuadMesh
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure
from PIL import Image
from scour import scour

from companion import project

DARK = {
    "#1b1f24": "#e6e9ee",
    "#5f6773": "#a3acb9",
    "#d5d9df": "#3a4150",
    "#0069a8": "#5ab8f0",
    "#c94f00": "#ff9a57",
    "#00805c": "#3ecfa3",
    "#9a4294": "#dd97d8",
    "#9a7400": "#e8c455",
    "#7a2e2e": "#e58f8f",
}
"""The dark colour of every colour of the style; greys go from white, which becomes ``_NIGHT``, to black, ``_DAY``."""
_NIGHT, _DAY = np.array([0x14, 0x18, 0x1E]), np.array([0xE6, 0xE9, 0xEE])
_DOTS_PER_INCH, _ROUGH_DOTS_PER_INCH = 200, 40
_HEAVIEST_DRAWING = 200_000
"""Most bytes of an SVG that a page shows; a drawing of more points than that is lighter as an image of its pixels."""
_MANY_NUMBERS = 5_000
"""Most numbers of an array that are kept to all digits beside a figure."""
_SCOUR = SimpleNamespace(
    digits=5,
    strip_ids=True,
    strip_comments=True,
    shorten_ids=True,
    simple_colors=False,
    remove_metadata=True,
    indent_type="none",
    newlines=False,
    quiet=True,
)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.,=+-]*(?: [A-Za-z0-9_.,=+-]+)*")
"""Names of columns and arrays: plain words, with single spaces."""
_PLACES = re.compile(r'(?<= )(?:d|x|y|width|height)="[^"]*"')
_COLOUR = re.compile(r'(?<!href=")(?<=[":])#([0-9a-f]{6}|[0-9a-f]{3})(?=[";])')
_LONG = re.compile(r"-?\d+\.\d{3,}(?:e-?\d+)?")
_SPOKEN = (
    (r"\\langle\s*(.+?)\s*\\rangle", r"mean of \1"),
    (r"\|([^|]+)\|", r"length of \1"),
    (r"\\sqrt\s*\{?(\w+)\}?", r"root of \1"),
    (r"\\geq?\b", " at least "),
    (r"\\infty\b", "infinity"),
    (r"\\times\b|\\cdot\b", " times "),
    (r"\\[,;! ]", " "),
    (r"_\{?\\?(\w+)\}?", r"_\1"),
    (r"\\([A-Za-z]+)", r" \1"),
    (r"/", " over "),
    (r"\^\{?(-?\w+)\}?", r" to the \1 "),
    (r"^-", "minus "),
    (r"'s\b", ""),
    (r"[${}()']", ""),
    (r"[–—−]", "-"),
    (r":", ","),
    (r"\s*=\s*", " = "),
)
"""What TeX and signs in the label of a legend are called, in the order in which they are replaced."""


def take(id: str) -> None:
    """Save the open figure to ``figures/ID`` and close it.

    The folder has ID.png, ID.svg, ID.pdf, a dark variant of the kind that pages show (ID-dark.svg, or ID-dark.png for a
    drawing that is too heavy for a page), the numbers (ID.csv for columns of one length, ID.npz otherwise) and
    figure.json. The numbers are those of the artists, or ``figure.data`` (name -> array) where that is set. Where the
    variable COMPANION_ROUGH is set, as in the tests of chapters, the only picture is a small ID.png.

    Raises ``ValueError`` unless exactly one figure is open.
    """
    numbers = plt.get_fignums()
    try:
        if len(numbers) != 1:
            hint = "close those that belong to other cells" if numbers else "has the cell drawn one, and kept it open?"
            raise ValueError(f"expected one open figure when the cell ends, got {len(numbers)}; {hint}")
        figure = plt.figure(numbers[0])
        data = getattr(figure, "data", None)
        _save(id, figure, shown(figure) if data is None else data)
    finally:
        plt.close("all")


def _save(id: str, figure: Figure, data: Mapping[str, Any]) -> None:
    folder = Path(os.environ["COMPANION_OUT"]) / "figures" / id
    draft = folder.with_name(f".{id}.draft")
    draft.mkdir(parents=True)
    if "COMPANION_ROUGH" in os.environ:
        figure.savefig(draft / f"{id}.png", dpi=_ROUGH_DOTS_PER_INCH, metadata={"Software": None})
    else:
        # It remarks on the fonts' creation dates whenever a PDF embeds them.
        logging.getLogger("fontTools").setLevel(logging.ERROR)
        _save_images(figure, draft, id)
    if data:
        _save_data(draft, id, data)
    record = {
        "id": id,
        "chapter": os.environ["COMPANION_CHAPTER"],
        "page": os.environ["COMPANION_PAGE"],
        "parameters": json.loads(os.environ["COMPANION_PARAMETERS"]),
        "library_version": project.identity(Path(os.environ["COMPANION_ROOT"])).version,
        "commit": os.environ["COMPANION_COMMIT"],
        "size": [round(side * _DOTS_PER_INCH) for side in figure.get_size_inches()],
        "files": sorted(path.name for path in draft.iterdir()),
    }
    (draft / "figure.json").write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    draft.rename(folder)


def _save_images(figure: Figure, folder: Path, id: str) -> None:
    # A fixed salt and no dates make the files the same bytes in every run.
    with mpl.rc_context({"svg.hashsalt": id, "svg.fonttype": "path"}):
        # The layout is the same in all files: it is computed once, from a first one, which it corrects. Without an
        # engine no save draws twice; the setting must stay off meanwhile, or the first save puts an engine back.
        if engine := figure.get_layout_engine():
            engine.execute(figure)
            engine.execute(figure)
        with mpl.rc_context({"figure.constrained_layout.use": False}):
            figure.set_layout_engine(None)
            drawn = io.StringIO()
            figure.savefig(drawn, format="svg", facecolor="white", metadata={"Date": None})
            drawing = _light(drawn.getvalue())
            heavy = len(drawing) > _HEAVIEST_DRAWING
            # A picture that is beside a drawing is for the archive; curves need fewer colours than a heat map.
            picture = _picture(figure)
            _save_picture(picture, folder / f"{id}.png", 256 if heavy else 128)
            figure.savefig(folder / f"{id}.pdf", metadata={"CreationDate": None, "ModDate": None})
    (folder / f"{id}.svg").write_text(drawing, encoding="utf-8")
    if heavy:
        _save_picture(_dark_picture(picture), folder / f"{id}-dark.png", 256)
    else:
        (folder / f"{id}-dark.svg").write_text(_dark_drawing(drawing), encoding="utf-8")


def _light(svg: str) -> str:
    """A drawing without what matplotlib repeats for every marker and letter: a third of the size, to 1/100 point."""
    # Places are rounded before they become differences, so that no error adds up along a curve.
    short = _PLACES.sub(lambda places: _LONG.sub(_to_hundredths, places[0]), svg)
    return str(scour.scourString(short, scour.sanitizeOptions(_SCOUR)))


def _to_hundredths(number: re.Match[str]) -> str:
    return f"{round(float(number[0]), 2) + 0.0:g}" if abs(float(number[0])) < 1e4 else number[0]


def _dark_drawing(svg: str) -> str:
    """A light drawing in dark colours; what is black there without naming a colour gets one."""
    svg = svg.replace("<svg ", f'<svg fill="{_dark("#000000")}" ', 1)
    return _COLOUR.sub(lambda colour: _dark("#" + "".join(digit * (6 // len(colour[1])) for digit in colour[1])), svg)


def _dark(colour: str) -> str:
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    if red == green == blue:
        return "#" + "".join(f"{round(part):02x}" for part in _DAY + (_NIGHT - _DAY) * red / 255)
    return DARK.get(colour, colour)


def _dark_picture(picture: Image.Image) -> Image.Image:
    """A picture with the lightness of its greys inverted; colours stay, the more the stronger they are."""
    pixels = np.asarray(picture, dtype=np.float32)
    grey, chroma = pixels.mean(axis=2, keepdims=True), np.ptp(pixels, axis=2, keepdims=True) / 255
    inverted = pixels - grey + _DAY + (_NIGHT - _DAY) * grey / 255
    return Image.fromarray(np.clip(chroma * pixels + (1 - chroma) * inverted, 0, 255).astype(np.uint8))


def _picture(figure: Figure) -> Image.Image:
    # Only read back: not worth compressing.
    drawn, quick = io.BytesIO(), {"compress_level": 0}
    figure.savefig(drawn, format="png", facecolor="white", dpi=_DOTS_PER_INCH, pil_kwargs=quick)
    with Image.open(drawn) as picture:
        return picture.convert("RGB")


def _save_picture(picture: Image.Image, path: Path, colours: int) -> None:
    """With a palette chosen for the picture: a third of the size, and no difference to the eye.

    Chosen so that colours of few pixels, such as a mark in a legend, are kept, and then moved to where the pixels are,
    until fewer than a thousand of these change their colour.
    """
    small = picture.quantize(colours, method=Image.Quantize.MAXCOVERAGE, kmeans=1000, dither=Image.Dither.NONE)
    small.save(path, dpi=(_DOTS_PER_INCH, _DOTS_PER_INCH))


def shown(figure: Figure) -> dict[str, np.ndarray]:
    """The numbers of the artists of a figure: lines, error bars, scatters, bars, fills, images and meshes.

    They are named by the labels of the artists, or "line 1"; with several axes, by these first. Artists over the same x
    share it.
    """
    found: dict[str, np.ndarray] = {}

    def put(name: str, values: Any) -> None:
        copies = sum(known == name or known.startswith(f"{name} copy ") for known in found)
        found[f"{name} copy {copies + 1}" if copies else name] = np.asarray(values)

    axes = [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]
    for place, ax in enumerate(axes, start=1):
        title = ax.get_title() or ax.get_title("left")
        before = f"{_plain(title, f'panel {place}')} " if len(axes) > 1 else ""
        for name, arrays in _artists(ax):
            for part, values in arrays.items():
                if part != "x":
                    put(f"{before}{name}" if part == "y" else f"{before}{name} {part}", values)
                elif f"{before}x" not in found:
                    put(f"{before}x", values)
                elif not np.array_equal(found[f"{before}x"], values, equal_nan=True):
                    put(f"{before}{name} x", values)
    return found


def _artists(ax: Axes) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every artist that shows numbers, as a name and arrays: x, y, ..."""
    seen: set[int] = set()
    counts: dict[str, int] = {}

    def named(kind: str, label: Any) -> str:
        counts[kind] = counts.get(kind, 0) + 1
        return _plain(str(label), f"{kind} {counts[kind]}")

    for group in ax.containers:
        if isinstance(group, ErrorbarContainer):
            line, caps, bars = group
            seen |= {id(artist) for artist in (line, *caps, *bars)}
            x, y = (np.asarray(values, float) for values in line.get_data(orig=False)) if line else ([], [])
            yield named("line", group.get_label()), {"x": x, "y": y, **_errors((x, y), group)}
        elif isinstance(group, BarContainer):
            upright = group.orientation != "horizontal"
            middles = [bar.get_center()[0 if upright else 1] for bar in group]
            yield named("bars", group.get_label()), {"x": middles, "y": group.datavalues}
    for line in ax.lines:
        if id(line) not in seen and line.get_transform() == ax.transData:
            x, y = line.get_data(orig=False)
            yield named("line", line.get_label()), {"x": np.asarray(x, float), "y": np.asarray(y, float)}
    for artist in ax.collections:
        if isinstance(artist, PathCollection):
            x, y = _whole(artist.get_offsets()).T
            values = artist.get_array()
            yield named("points", artist.get_label()), {"x": x, "y": y} | ({} if values is None else {"value": values})
        elif isinstance(artist, PolyCollection):
            for path in artist.get_paths():
                x, y = np.asarray(path.vertices).T
                yield named("fill", artist.get_label()), {"outline x": x, "outline y": y}
        elif isinstance(artist, QuadMesh):
            yield named("mesh", artist.get_label()), {"y": _whole(artist.get_array())}
    for image in ax.images:
        yield named("image", image.get_label()), {"y": _whole(image.get_array())}


def _whole(values: Any) -> np.ndarray:
    """An array of numbers, with nan where it is masked."""
    return np.ma.filled(np.ma.asarray(values).astype(float), np.nan)


def _errors(middle: Sequence[Any], group: ErrorbarContainer) -> dict[str, Any]:
    """Lengths of error bars, or both of their ends where they are not symmetric."""
    found: dict[str, Any] = {}
    wanted = [axis for axis, there in enumerate((group.has_xerr, group.has_yerr)) if there]
    for axis, bars in zip(wanted, group[2], strict=True):
        low, high = np.array([segment[:, axis] for segment in bars.get_segments()]).reshape(-1, 2).T
        word = "x error" if axis == 0 else "error"
        if len(low) == len(middle[axis]) and np.allclose(high - middle[axis], middle[axis] - low):
            found[word] = high - middle[axis]
        else:
            found |= {f"{word} low": low, f"{word} high": high}
    return found


def _plain(label: str, otherwise: str) -> str:
    """A label in plain words, or another name where it has none."""
    words = label
    for pattern, spoken in _SPOKEN:
        words = re.sub(pattern, spoken, words)
    words = " ".join(words.replace(" ,", ",").split())
    return words if _NAME.fullmatch(words) and not label.startswith("_") else otherwise


def _save_data(folder: Path, id: str, data: Mapping[str, Any]) -> None:
    """One table if the columns are real and have one length, else arrays."""
    columns = {name: np.asarray(values) for name, values in data.items()}
    for name, column in columns.items():
        if not _NAME.fullmatch(name) or name == "file":
            raise ValueError(f"data: expected names in plain words, a letter first, got {name!r}")
        if column.dtype == object or np.ma.is_masked(data[name]):
            raise ValueError(f"data: expected arrays of numbers or text, whole and without masks, got {name!r}")
    shapes = {column.shape for column in columns.values()}
    if len(shapes) == 1 and len(shapes.pop()) == 1 and not any(map(np.iscomplexobj, columns.values())):
        with (folder / f"{id}.csv").open("w", newline="", encoding="utf-8") as table:
            writer = csv.writer(table, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(zip(*map(_cells, columns.values()), strict=True))
    else:
        arrays: dict[str, Any] = {name: _rounded(column) for name, column in columns.items()}
        np.savez_compressed(folder / f"{id}.npz", **arrays)


def _cells(column: np.ndarray) -> list[Any]:
    """The cells of a column; of many numbers to six digits."""
    is_long = column.dtype.kind == "f" and column.size > _MANY_NUMBERS
    return [f"{value:.6g}" for value in column] if is_long else column.tolist()


def _rounded(values: np.ndarray) -> np.ndarray:
    """To 16 binary digits if many, in single precision: a plot shows ten, and the digits of chance do not compress."""
    if values.dtype not in (np.float64, np.float32) or values.size <= _MANY_NUMBERS:
        return values
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.round(mantissa * 2**16), exponent - 16).astype(np.float32)
