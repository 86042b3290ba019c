"""Publishes a figure: image files in two themes, its numbers, and a record to cite.

``publish`` writes a folder that stands alone; the page, the gallery and the index are made from these folders.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import logging
import os
import pickle
import re
import shutil
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from IPython.display import display
from matplotlib.figure import Figure
from PIL import Image
from scour import scour

from companion import legible, project, themes
from companion.plain import plain

DOTS_PER_INCH = 200
FRAME_DOTS_PER_INCH = 115
HEAVIEST_DRAWING = 200_000
"""Most bytes of an SVG that a page shows; a drawing of more points than that is lighter as an image of its pixels."""
MANY_NUMBERS = 5_000
"""Most numbers of an array that are kept to all digits beside a figure."""
_SCOUR = SimpleNamespace(
    digits=5,
    strip_ids=True,
    strip_comments=True,
    shorten_ids=True,
    remove_metadata=True,
    indent_type="none",
    newlines=False,
    quiet=True,
)
SHORTEST_ALT = 60
"""Fewest characters of an alternative text that can say what is seen."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.,=+-]*(?: [A-Za-z0-9_.,=+-]+)*")
"""Names of columns and arrays: plain words, with single spaces."""
_PLACES = re.compile(r'(?<= )(?:d|x|y|width|height)="[^"]*"')
_LONG = re.compile(r"-?\d+\.\d{3,}(?:e-?\d+)?")
_TAKEN = {"file", "allow_pickle"}
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
_Values = TypeVar("_Values")


def publish(
    figure: Figure,
    id: str,
    *,
    data: Mapping[str, Any],
    caption: str,
    alt: str,
    source: str,
    frames: Mapping[str, Figure] | None = None,
) -> None:
    """Write ``figure`` to the folder ``figures/ID`` and show it.

    The folder holds ID.png, ID.svg, ID.pdf, a dark variant of the kind that pages show (ID-dark.svg, or ID-dark.png
    where the drawing is heavier than ``HEAVIEST_DRAWING``), the plotted numbers (ID.csv for real columns of one length,
    ID.npz otherwise, with arrays of more than ``MANY_NUMBERS`` rounded to 16 binary digits) and figure.json; with
    ``frames`` also ID-frames.png and ID-frames-dark.png. Where the variable COMPANION_ROUGH is set, as in the tests of
    chapters, the only picture is a small ID.png.

    - ``figure``: drawn in the colours of the book's style (see ``companion.themes``), from which the dark variant
      follows.
    - ``id``: CHAPTER-NAME in lower case, digits and hyphens: the anchor that readers cite.
    - ``data``: every plotted number, under names in plain words, which are the columns or arrays that readers load;
      ``in_words`` makes them of the labels of a legend.
    - ``caption``: MyST text, self-contained.
    - ``alt``: one or two sentences that say what is seen, with its numbers; at least 60 characters.
    - ``source``: the published figure that this one reproduces ("Fig. 3a of ..."), or "this book".
    - ``frames``: the pictures of an animation by what each shows, in words and numbers, all of one size. They are
      stacked in one image; a script of the page turns it into frames to step through or play. Without the script the
      page still has ``figure``, so that must say the same in one still picture.

    Raises ``ValueError`` naming the argument that is missing, too short or malformed, or an ``id`` that was published
    before.
    """
    chapter = os.environ.get("COMPANION_CHAPTER", "")
    page = os.environ.get("COMPANION_PAGE", chapter)
    _check(id, chapter, data, caption, alt, source)
    _check_frames(frames)
    frames = frames or {}
    folder = Path(os.environ.get("COMPANION_OUT", "_build")) / "figures" / id
    if folder.exists() and chapter:
        raise ValueError(f"id: a figure {id!r} was published before in this chapter")
    draft = folder.with_name(f".{id}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    rough, crowded = "COMPANION_ROUGH" in os.environ, list[str]()
    if rough:
        _save_rough(figure, draft, id)
    else:
        _keep(figure, frames, folder.parents[1] / "drawn" / id)
        _save_images(figure, draft, id)
        # After the images, which lay the figure out. The quick profile of a chapter draws other numbers.
        if found := legible.faults(figure, caption=caption, alt=alt, source=source):
            raise ValueError(f"figure: {id} is hard to read: " + "; ".join(found))
        crowded = legible.crowded(figure)
    _save_data(draft, id, data)
    animation = {} if rough else _save_frames(frames, draft, id)
    record: dict[str, Any] = {
        "id": id,
        "chapter": chapter or project.chapter_of(id),
        "page": page or project.chapter_of(id),
        "caption": " ".join(caption.split()),
        "alt": " ".join(alt.split()),
        "source": source,
        "parameters": json.loads(os.environ.get("COMPANION_PARAMETERS", "{}")),
        "library_version": project.identity().version,
        "commit": os.environ.get("COMPANION_COMMIT", "unknown"),
        "size": [round(side * DOTS_PER_INCH) for side in figure.get_size_inches()],
        **animation,
        **({"crowded": crowded} if crowded else {}),
        "files": _digests(draft),
        **_citations(id, page or project.chapter_of(id), caption),
    }
    (draft / "figure.json").write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    draft.rename(folder)
    for drawn in (figure, *frames.values()):
        plt.close(drawn)
    metadata = {"companion": {"figure": id}, "image/png": {"width": int(100 * figure.get_size_inches()[0])}}
    display(
        {"image/png": _encoded(folder / f"{id}.png"), "text/plain": record["alt"]},
        metadata=metadata,
        raw=True,
    )


def redraw(folder: Path, exchange: Mapping[str, str]) -> str:
    """Draw the figure that was published to ``folder`` again, with other colours; returns its PNG in base64.

    ``exchange`` gives the colour of today for every one of the style at that time.

    Raises ``FileNotFoundError`` if the figure was not kept, as when a colour map was mixed of the style's colours, or
    when matplotlib's objects could not be pickled.
    """
    id = folder.name
    figure, frames = pickle.loads(zlib.decompress((folder.parents[1] / "drawn" / id).read_bytes()))
    for drawn in (figure, *frames.values()):
        themes.exchange(drawn, exchange)
    record = json.loads((folder / "figure.json").read_text(encoding="utf-8"))
    pictures = [folder / name for name in record["files"] if not name.endswith((".csv", ".npz"))]
    _keep(figure, frames, folder.parents[1] / "drawn" / id)
    for path in pictures:
        path.unlink()
    (folder / "figure.json").unlink()
    _save_images(figure, folder, id)
    _save_frames(frames, folder, id)
    record["files"] = _digests(folder)
    (folder / "figure.json").write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return _encoded(folder / f"{id}.png")


def _keep(figure: Figure, frames: Mapping[str, Figure], path: Path) -> None:
    """Keep what can be drawn again in other colours, as matplotlib's objects."""
    if all(map(themes.can_be_exchanged, (figure, *frames.values()))):
        try:
            kept = pickle.dumps((figure, dict(frames)))
        except (AttributeError, TypeError, pickle.PicklingError):
            return
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(zlib.compress(kept, 1))


def _digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode("ascii")


def _check(id: str, chapter: str, data: Mapping[str, Any], caption: str, alt: str, source: str) -> None:
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", id):
        raise ValueError(f"id: expected CHAPTER-NAME in lower case with hyphens, got {id!r}")
    if chapter and not id.startswith(f"{chapter}-"):
        raise ValueError(f"id: expected it to begin with {chapter!r}-, got {id!r}")
    if not data:
        raise ValueError("data: expected every plotted number by name, got nothing")
    _check_names(data)
    for name, text in {"caption": caption, "source": source}.items():
        if not text.strip():
            raise ValueError(f"{name}: expected a text, got an empty one")
    if len(" ".join(alt.split())) < SHORTEST_ALT:
        raise ValueError(
            f"alt: expected at least {SHORTEST_ALT} characters that say what is seen, got {len(alt)}: {alt!r}"
        )


def _save_images(figure: Figure, folder: Path, id: str) -> None:
    style = themes.of_the_book()
    # A fixed salt and no dates make the files the same bytes in every run.
    with mpl.rc_context({**style.rc, "svg.hashsalt": id}), _quiet_fonts():
        # The layout is the same in all files: it is computed once. Without an engine no save draws twice; the
        # setting must stay off meanwhile, or the first save puts an engine back.
        figure.draw_without_rendering()
        with mpl.rc_context({"figure.constrained_layout.use": False}):
            figure.set_layout_engine(None)
            drawing, picture = folder / f"{id}.svg", folder / f"{id}.png"
            _save_drawing(figure, drawing, style.paper)
            heavy = drawing.stat().st_size > HEAVIEST_DRAWING
            # A picture that stands beside a drawing is for the archive; curves need fewer colours than a heat map.
            _save_picture(figure, picture, style.paper, colours=256 if heavy else 128)
            figure.savefig(folder / f"{id}.pdf", metadata={"CreationDate": None, "ModDate": None})
            save, shown = (_save_picture, picture) if heavy else (_save_drawing, drawing)
            with themes.dark(figure, style.exchange):
                save(figure, shown.with_stem(f"{id}-dark"), style.night)


def _save_rough(figure: Figure, folder: Path, id: str) -> None:
    """One small picture: enough to see that a figure can be drawn, at a tenth of the time."""
    with mpl.rc_context(themes.of_the_book().rc), _quiet_fonts():
        figure.savefig(folder / f"{id}.png", dpi=40, metadata={"Software": None})


def _check_frames(frames: Mapping[str, Figure] | None) -> None:
    if frames is None:
        return
    sizes = {tuple(frame.get_size_inches()) for frame in frames.values()}
    if len(frames) < 2 or len(sizes) > 1:
        raise ValueError(f"frames: expected two or more figures of one size, got {len(frames)} of sizes {sizes}")


def _save_frames(frames: Mapping[str, Figure], folder: Path, id: str) -> dict[str, Any]:
    """Stack the frames from top to bottom, in both themes, and say how to cut them."""
    if not frames:
        return {}
    light, dark, style = [], [], themes.of_the_book()
    with mpl.rc_context(style.rc):
        for frame in frames.values():
            light.append(_picture(frame, style.paper, FRAME_DOTS_PER_INCH))
            with themes.dark(frame, style.exchange):
                dark.append(_picture(frame, style.night, FRAME_DOTS_PER_INCH))
            plt.close(frame)
    for pictures, variant in ((light, ""), (dark, "-dark")):
        width, height = pictures[0].size
        stack = Image.new("RGB", (width, height * len(pictures)))
        for place, picture in enumerate(pictures):
            stack.paste(picture, (0, place * height))
        _quantized(stack, 64).save(folder / f"{id}-frames{variant}.png", optimize=True)
    return {"frames": {"labels": list(frames), "size": list(light[0].size)}}


def _picture(figure: Figure, paper: str, dots_per_inch: int) -> Image.Image:
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", facecolor=paper, dpi=dots_per_inch, metadata={"Software": None})
    with Image.open(drawn) as picture:
        return picture.convert("RGB")


def _quantized(picture: Image.Image, colours: int) -> Image.Image:
    """With a palette chosen for the picture: a third of the size, and no difference to the eye.

    Chosen so that colours of few pixels, such as a mark in a legend, are kept, and then moved to where the pixels are.
    """
    return picture.quantize(colours, method=Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE)


def _save_drawing(figure: Figure, path: Path, paper: str) -> None:
    """Without what matplotlib repeats for every marker and letter: a third of the size, and the same to 1/100 point."""
    drawn = io.StringIO()
    figure.savefig(drawn, format="svg", facecolor=paper, metadata={"Date": None})
    # Places are rounded before they become differences, so that no error adds up along a curve.
    short = _PLACES.sub(lambda places: _LONG.sub(_to_hundredths, places[0]), drawn.getvalue())
    path.write_text(scour.scourString(short, scour.sanitizeOptions(_SCOUR)), encoding="utf-8")


def _to_hundredths(number: re.Match[str]) -> str:
    return f"{round(float(number[0]), 2) + 0.0:g}" if abs(float(number[0])) < 1e4 else number[0]


def _save_picture(figure: Figure, path: Path, paper: str, *, colours: int = 256) -> None:
    small = _quantized(_picture(figure, paper, DOTS_PER_INCH), colours)
    small.save(path, optimize=True, dpi=(DOTS_PER_INCH, DOTS_PER_INCH))


@contextmanager
def _quiet_fonts() -> Iterator[None]:
    """fontTools remarks on the fonts' creation dates whenever a PDF embeds them."""
    logger = logging.getLogger("fontTools")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def in_words(data: Mapping[str, _Values]) -> dict[str, _Values]:
    r"""The same values under names in plain words: "TAP, $|x|=R$" becomes "TAP, length of x = R".

    Labels of a legend are often the names of what is plotted; ``publish`` takes names that programs and people can
    type.

    Raises ``ValueError`` if a label has no name in plain words, or two labels have the same one.
    """
    named = {_words(label): values for label, values in data.items()}
    _check_names(named)
    if len(named) < len(data):
        names = [_words(label) for label in data]
        raise ValueError(f"data: two labels have the same name in plain words: {sorted(data)} become {sorted(names)}")
    return named


def _words(label: str) -> str:
    words = str(label)
    for pattern, spoken in _SPOKEN:
        words = re.sub(pattern, spoken, words)
    return " ".join(words.replace(" ,", ",").split())


def _check_names(data: Mapping[str, Any]) -> None:
    for name in data:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError(
                "data: expected names in plain words (letters, digits, spaces and _ . , = + -, a letter first), got "
                f"{name!r}; companion.figures.in_words makes names of the labels of a legend"
            )
        if name in _TAKEN:
            raise ValueError(f"data: {name!r} is an argument of numpy.savez and cannot be a name")


def _save_data(folder: Path, id: str, data: Mapping[str, Any]) -> None:
    """One table if the columns have one length, else arrays; both are read back, so that what is published loads."""
    columns = {name: np.asarray(values) for name, values in data.items()}
    if any(column.dtype == object for column in columns.values()):
        raise ValueError("data: expected arrays of numbers or text, got ragged or mixed values")
    if masked := [name for name, values in data.items() if np.ma.is_masked(values)]:
        raise ValueError(f"data: expected arrays without masked values, which a file cannot keep, got {masked}")
    shapes = {column.shape for column in columns.values()}
    plain = not any(np.iscomplexobj(column) for column in columns.values())
    if plain and len(shapes) == 1 and len(next(iter(shapes))) == 1:
        path = folder / f"{id}.csv"
        with path.open("w", newline="", encoding="utf-8") as table:
            writer = csv.writer(table, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
        _read_table_back(path, columns)
    else:
        path = folder / f"{id}.npz"
        arrays = {name: _rounded(values) for name, values in columns.items()}
        # Without an option: before NumPy 2.1 one more array would be saved. There are no objects here to be pickled.
        np.savez_compressed(path, **arrays)  # type: ignore[arg-type]
        _read_arrays_back(path, arrays)


def _read_table_back(path: Path, columns: Mapping[str, np.ndarray]) -> None:
    """Any reader of CSV must find the columns that were given, or the chapter fails here."""
    with path.open(newline="", encoding="utf-8") as table:
        header, *rows = csv.reader(table, strict=True)
    if ragged := [number for number, row in enumerate(rows, start=2) if len(row) != len(header)]:
        raise RuntimeError(f"{path.name} is no table: line {ragged[0]} has not the {len(header)} fields of the header")
    if header != list(columns):
        raise RuntimeError(f"{path.name} does not read back: expected the columns {list(columns)}, got {header}")
    for place, (name, column) in enumerate(columns.items()):
        if [row[place] for row in rows] != [str(value) for value in column.tolist()]:
            raise RuntimeError(f"{path.name} does not read back: the column {name!r} has changed")


def _read_arrays_back(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    with np.load(path, allow_pickle=False) as stored:
        if list(stored) != list(arrays):
            raise RuntimeError(f"{path.name} does not read back: expected {list(arrays)}, got {list(stored)}")
        for name, array in arrays.items():
            kept = stored[name]
            if (kept.dtype, kept.shape, kept.tobytes()) != (array.dtype, array.shape, array.tobytes()):
                raise RuntimeError(f"{path.name} does not read back: {name!r} has changed")


def _rounded(values: np.ndarray) -> np.ndarray:
    """To 16 binary digits if many, in single precision: a plot shows ten, and the digits of chance do not compress."""
    if values.dtype not in (np.float64, np.float32) or values.size <= MANY_NUMBERS:
        return values
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.round(mantissa * 2**16), exponent - 16).astype(np.float32)


def _citations(id: str, page: str, caption: str) -> dict[str, Any]:
    who = project.identity()
    first = re.split(r"(?<=[.:])\s", plain(caption))[0].rstrip(".:")
    entry = f"{who.library}:{id}", f"Figure {id}: {first}", who.chapter_url(page, id)
    return {"bibtex": who.bibtex(*entry), "csl": who.csl(*entry)}
