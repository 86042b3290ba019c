"""Publishing a figure: image files in two themes, its numbers, and a record to cite. Nothing here draws.

`publish` writes a folder that stands alone; the page, the gallery and the index are made from these folders.
"""

import base64
import hashlib
import io
import json
import logging
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from IPython.display import display
from matplotlib.figure import Figure
from PIL import Image

import spinbook
from spinbook import project
from spinbook.plot import style

DOTS_PER_INCH = 200
SHORTEST_ALT = 60
"""Fewest characters of an alternative text that can say what is seen."""


def publish(
    figure: Figure,
    id: str,
    *,
    data: Mapping[str, Any],
    caption: str,
    alt: str,
    source: str,
) -> None:
    """Write `figure` to the folder `figures/ID` and show it.

    The folder holds ID.png, ID.svg, ID.pdf, ID-dark.png, ID-dark.svg, the plotted numbers (ID.csv for columns of one
    length, ID.npz otherwise) and figure.json.

    Parameters
    ----------
    figure
        drawn with the colours of `spinbook.plot.style`, from which the dark variant follows.
    id
        CHAPTER-NAME in lower case, digits and hyphens: the anchor that readers cite.
    data
        every plotted number, by name.
    caption
        MyST text, self-contained.
    alt
        one or two sentences that say what is seen, with its numbers; at least 60 characters.
    source
        the published figure that this one reproduces ("Fig. 3a of ..."), or "this book".

    Raises
    ------
    ValueError
        naming the argument that is missing, too short or malformed, or an `id` that was published before.
    """
    chapter = os.environ.get("SPINBOOK_CHAPTER", "")
    _check(id, chapter, data, caption, alt, source)
    folder = Path(os.environ.get("SPINBOOK_OUT", "_build")) / "figures" / id
    if folder.exists() and chapter:
        raise ValueError(f"id: a figure {id!r} was published before in this chapter")
    draft = folder.with_name(f".{id}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    _save_images(figure, draft, id)
    _save_data(draft, id, data)
    record = {
        "id": id,
        "chapter": chapter or project.chapter_of(id),
        "caption": " ".join(caption.split()),
        "alt": " ".join(alt.split()),
        "source": source,
        "parameters": json.loads(os.environ.get("SPINBOOK_PARAMETERS", "{}")),
        "library_version": spinbook.__version__,
        "commit": os.environ.get("SPINBOOK_COMMIT", "unknown"),
        "size": [round(side * DOTS_PER_INCH) for side in figure.get_size_inches()],
        "files": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(draft.iterdir())},
        **_citations(id, chapter or project.chapter_of(id), caption),
    }
    (draft / "figure.json").write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    shutil.rmtree(folder, ignore_errors=True)
    draft.rename(folder)
    plt.close(figure)
    picture = (folder / f"{id}.png").read_bytes()
    metadata = {"spinbook": {"figure": id}, "image/png": {"width": int(100 * figure.get_size_inches()[0])}}
    display(
        {"image/png": base64.b64encode(picture).decode("ascii"), "text/plain": record["alt"]},
        metadata=metadata,
        raw=True,
    )


def _check(id: str, chapter: str, data: Mapping[str, Any], caption: str, alt: str, source: str) -> None:
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", id):
        raise ValueError(f"id: expected CHAPTER-NAME in lower case with hyphens, got {id!r}")
    if chapter and not id.startswith(f"{chapter}-"):
        raise ValueError(f"id: expected it to begin with {chapter!r}-, got {id!r}")
    if not data:
        raise ValueError("data: expected every plotted number by name, got nothing")
    for name, text in {"caption": caption, "source": source}.items():
        if not text.strip():
            raise ValueError(f"{name}: expected a text, got an empty one")
    if len(" ".join(alt.split())) < SHORTEST_ALT:
        raise ValueError(
            f"alt: expected at least {SHORTEST_ALT} characters that say what is seen, got {len(alt)}: {alt!r}"
        )


def _save_images(figure: Figure, folder: Path, id: str) -> None:
    # A fixed salt and no dates make the files the same bytes in every run.
    with mpl.rc_context({**style.RC, "svg.hashsalt": id}), _quiet_fonts():
        # The layout is the same in all five files: it is computed once. Without an engine no save draws twice; the
        # setting must stay off meanwhile, or the first save puts an engine back.
        figure.draw_without_rendering()
        with mpl.rc_context({"figure.constrained_layout.use": False}):
            figure.set_layout_engine(None)
            _save_pair(figure, folder / id, style.PAPER)
            figure.savefig(folder / f"{id}.pdf", metadata={"CreationDate": None, "ModDate": None})
            with style.dark(figure):
                _save_pair(figure, folder / f"{id}-dark", style.DARK[style.PAPER])


def _save_pair(figure: Figure, stem: Path, paper: str) -> None:
    figure.savefig(stem.with_suffix(".svg"), facecolor=paper, metadata={"Date": None})
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", facecolor=paper, dpi=DOTS_PER_INCH, metadata={"Software": None})
    # A palette of 256 colours chosen for the picture: a third of the size, and no difference to the eye. Chosen so that
    # colours of few pixels, such as a mark in a legend, are kept, and then moved to where the pixels are.
    with Image.open(drawn) as picture:
        small = picture.convert("RGB").quantize(
            256, method=Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE
        )
        small.save(stem.with_suffix(".png"), optimize=True, dpi=(DOTS_PER_INCH, DOTS_PER_INCH))


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


def _save_data(folder: Path, id: str, data: Mapping[str, Any]) -> None:
    columns = {name: np.asarray(values) for name, values in data.items()}
    if any(column.dtype == object for column in columns.values()):
        raise ValueError("data: expected arrays of numbers or text, got ragged or mixed values")
    shapes = {column.shape for column in columns.values()}
    if len(shapes) == 1 and len(next(iter(shapes))) == 1:
        header = ",".join(columns)
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        lines = [",".join(_cell(value) for value in row) for row in rows]
        (folder / f"{id}.csv").write_text("\n".join([header, *lines]) + "\n")
    else:
        np.savez_compressed(folder / f"{id}.npz", allow_pickle=False, **columns)


def _cell(value: Any) -> str:
    text = repr(value) if isinstance(value, float) else str(value)
    return f'"{text}"' if "," in text else text


def _citations(id: str, chapter: str, caption: str) -> dict[str, Any]:
    who = project.identity()
    first = re.split(r"(?<=[.:])\s", " ".join(caption.split()))[0].rstrip(".:")
    entry = f"spinbook:{id}", f"Figure {id}: {first}", who.chapter_url(chapter, id)
    return {"bibtex": who.bibtex(*entry), "csl": who.csl(*entry)}
