"""Tells whether a drawn figure can be read and its words are true, as far as a program can tell.

The checks read the laid-out figure: boxes of its texts, paths of its curves. `publish` refuses a figure for what is
wrong whatever its numbers are (`faults`), and records what a reader should look at (`crowded`), which the audit of the
site reports: a label on a curve may be meant. Neither can see whether a figure says what it should.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PathCollection
from matplotlib.colors import to_rgb, to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.path import Path
from matplotlib.text import Annotation, Text
from matplotlib.transforms import Bbox

SMALLEST, LARGEST = 6.0, 12.5
"""Points of the smallest and the largest letters of a figure as the page shows it."""
PAGE_WIDTH = 7.0
"""Inches; a page shows a wider figure smaller, and no figure larger in proportion than this one."""
FAINTEST = 1.4
"""Contrast to the paper of the faintest curve that a legend may name; 1 is invisible."""

_TOUCHING = 0.3
"""Share of the lower one of two texts that may lie in the other's box, which is higher than its letters."""
_CODE = re.compile(r"\{[\w:-]+\}`[^`]*`|`[^`]*`")
_MATHEMATICS = re.compile(r"(?<!\\)\$([^$]*)(?<!\\)\$")
_TEX = re.compile(r"\\[A-Za-z\\]|\$|[\^_]\{|\{[\w:-]+\}`")
_EXCHANGED = re.compile(r"\b(?:black|white|(?:dark|light|pale|bright)(?:er|est)?)\b", re.IGNORECASE)
_OTHER_NAMES = re.compile(r"\b[Pp]anels? \(?[a-l]\b\)?|(?:^|(?<=[.;] ))[a-l]: |\(?\b(?:[Ll]eft|[Rr]ight)\) ")
_LETTER = re.compile(r"\(?([a-l])\)?(?:\s|$)")
_PLACES = re.compile(r"(?:^|(?<=[.;] ))(?:Left|Right|Middle|Centre|Top|Bottom|Above|Below): ")


def faults(figure: Figure, *, caption: str, alt: str, source: str) -> list[str]:
    """What makes a figure hard to read or its words untrue whatever it shows, one sentence each; it is laid out.

    Texts of other than ordinary sizes, entries of legends too faint to see, TeX in words, panels named otherwise than
    "(a)", and colours that are others in the dark theme.
    """
    faint = (found for ax in figure.axes if ax.get_visible() for found in _faint(ax))
    return [*_sizes(figure), *faint, *_words(figure, caption=caption, alt=alt, source=source)]


def crowded(figure: Figure) -> list[str]:
    """Texts that overlap, texts and legends on curves, and entries of legends whose curve is not to be seen."""
    panels = (found for ax in figure.axes if ax.get_visible() for found in (*_on_curves(ax), *_entries(ax)))
    return [*_overlaps(list(_texts(figure))), *panels]


def _words(figure: Figure, *, caption: str, alt: str, source: str) -> list[str]:
    found = []
    prose = _MATHEMATICS.sub(" ", _CODE.sub(" ", caption))
    if tex := _TEX.search(prose):
        found.append(f"caption: TeX outside of a formula, {_near(prose, tex.start())!r}")
    for formula in _MATHEMATICS.findall(caption):
        if twice := re.search(r"\\\\[A-Za-z]{2,}", formula):
            found.append(f"caption: {twice[0]!r} is shown as it stands, a command has one backslash")
    for name, text in (("alt", alt), ("source", source)):
        if tex := _TEX.search(text):
            found.append(f"{name}: expected plain words, got {_near(text, tex.start())!r}")
    mapped = any(isinstance(part, ScalarMappable) and part.get_array() is not None for part in figure.findobj())
    for name, text in (("caption", prose), ("alt", alt)):
        # A colour map has the same colours in both themes.
        untrue = None if mapped else _EXCHANGED.search(text)
        if untrue:
            found.append(
                f"{name}: {untrue[0]!r} is another shade in the dark theme, in {_near(text, untrue.start())!r}"
            )
    return found + _panels(figure, prose)


def _panels(figure: Figure, prose: str) -> list[str]:
    letters = {match[1] for text, _, _ in _texts(figure) if (match := _LETTER.match(text.get_text().strip()))}
    named = set(re.findall(r"\(([a-l])\)", prose))
    found = [f"caption: no panel has the letter of ({name})" for name in sorted(named - letters) if "a" in named]
    other = _OTHER_NAMES.search(prose) or (None if letters else _PLACES.search(prose))
    if other:
        found.append(f"caption: panels have letters and are named by them, as in (a), got {other[0].strip()!r}")
    return found


def _near(text: str, place: int) -> str:
    return text[max(0, place - 15) : place + 25].strip()


def _texts(artist: Artist, inside: Axes | None = None) -> Iterator[tuple[Text, Bbox, Artist | None]]:
    """Every text that is drawn, its box in dots, and the axis whose tick it labels."""
    if not artist.get_visible():
        return
    if isinstance(artist, Text):
        if (box := _box(artist, inside)) is not None:
            yield artist, box, None
        return
    if isinstance(artist, Axes):
        inside = artist
    if isinstance(artist, Axis):
        if inside is not None and not inside.axison:
            return
        yield from _tick_labels(artist)
        for part in (artist.label, artist.get_offset_text()):
            yield from _texts(part)
        return
    for child in artist.get_children():
        yield from _texts(child, inside)


def _tick_labels(axis: Axis) -> Iterator[tuple[Text, Bbox, Artist | None]]:
    low, high = sorted(axis.get_view_interval())
    room = 1e-6 * (high - low)
    for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
        if tick.get_visible() and low - room <= tick.get_loc() <= high + room:
            for text in (tick.label1, tick.label2):
                if text.get_visible() and (box := _box(text, None)) is not None:
                    yield text, box, axis


def _box(text: Text, ax: Axes | None) -> Bbox | None:
    """The box of the letters in dots; None where nothing is drawn."""
    if not text.get_text().strip() or text.get_alpha() == 0:
        return None
    if isinstance(text, Annotation) and ax is not None and text.xycoords == "data":
        clipped = text.get_annotation_clip()
        point = ax.transData.transform(text.xy)
        if clipped is not False and not ax.bbox.padded(1).contains(*point):
            return None
    # That of an annotation would have its arrow in it.
    box = Text.get_window_extent(text)
    clip = text.get_clip_box()
    return Bbox.intersection(box, clip) if text.get_clip_on() and clip is not None else box


def _sizes(figure: Figure) -> list[str]:
    scale = min(1.0, PAGE_WIDTH / figure.get_size_inches()[0])
    sizes = {round(scale * float(text.get_fontsize()), 1): text for text, _, _ in _texts(figure)}
    return [
        f"text of {size:g} points, expected {SMALLEST:g} to {LARGEST:g}: {text.get_text()!r}"
        for size, text in sorted(sizes.items())
        if not SMALLEST <= size <= LARGEST
    ]


def _overlaps(texts: list[tuple[Text, Bbox, Artist | None]]) -> list[str]:
    found = []
    for (one, box, axis), (two, other, other_axis) in combinations(texts, 2):
        # Labels of one axis need a gap, or two numbers read as one.
        gap = 0.12 * float(one.get_fontsize()) * _dots(one) if axis is not None and axis is other_axis else 0.0
        across = min(box.x1, other.x1) - max(box.x0, other.x0) + gap
        along = min(box.y1, other.y1) - max(box.y0, other.y0)
        if across > 0.5 * _dots(one) and along > _TOUCHING * min(box.height, other.height):
            found.append(f"texts overlap: {one.get_text()!r} and {two.get_text()!r}")
    return found


def _dots(text: Text) -> float:
    """Dots in a point."""
    figure = text.get_figure(root=True)
    return 1.0 if figure is None else figure.dpi / 72


def _on_curves(ax: Axes) -> list[str]:
    """Texts and legends that lie on a curve or its markers; one that clears the ground behind it may."""
    found = []
    for text in ax.texts:
        if not text.get_visible() or ((patch := text.get_bbox_patch()) is not None and _opaque(patch)):
            continue
        if text.get_rotation() % 90 or (box := _box(text, ax)) is None:
            continue
        curves = (line for line in _curves(ax) if not _same_colour(text, line) and not _behind(line, text, box, ax))
        if any(_meets(line, box, ax) for line in curves):
            found.append(f"a text lies on a curve: {text.get_text()!r}")
    legend = ax.get_legend()
    if legend is not None and legend.get_visible():
        names, ground = [text.get_text() for text in legend.get_texts()], legend.get_window_extent()
        if any(_meets(line, ground, ax) for line in _curves(ax)):
            found.append(f"a legend lies on a curve: {names}")
    return found


def _behind(curve: Line2D | PathCollection, text: Text, box: Bbox, ax: Axes) -> bool:
    """Whether the text stands in a marker that is as high as itself, or in a filled box that covers the curve."""
    if isinstance(curve, Line2D):
        height = curve.get_markersize() if curve.get_marker() not in ("", "None", None, " ") else 0.0
    else:
        height = float(np.sqrt(np.max(np.asarray(curve.get_sizes()), initial=0.0)))
    if height >= 0.9 * float(text.get_fontsize()):
        return True
    middle = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    return any(
        patch.get_visible()
        and patch.get_zorder() >= curve.get_zorder()
        and _opaque(patch)
        and patch.get_window_extent().contains(*middle)
        for patch in ax.patches
    )


def _opaque(patch: Patch) -> bool:
    return to_rgba(patch.get_facecolor())[3] > 0.5


def _data(line: Line2D) -> np.ndarray:
    return np.asarray(line.get_xydata(), dtype=float)


def _same_colour(text: Text, line: Line2D | PathCollection) -> bool:
    """A label may begin on the curve that it names in the curve's colour."""
    return isinstance(line, Line2D) and to_rgb(text.get_color()) == to_rgb(line.get_color())


def _curves(ax: Axes) -> list[Line2D | PathCollection]:
    """What carries data: no guide lines, which have two points and leave the panel."""
    lines = [line for line in ax.lines if line.get_visible() and len(_data(line)) > 0]
    guides = [line for line in lines if line.get_transform() != ax.transData]
    points = [part for part in ax.collections if isinstance(part, PathCollection) and part.get_visible()]
    return [*(line for line in lines if line not in guides), *points]


def _meets(curve: Line2D | PathCollection, box: Bbox, ax: Axes) -> bool:
    """Whether a curve, or a marker's middle, lies in the inner part of a box."""
    inner = Bbox.from_extents(
        box.x0 + 0.06 * box.width, box.y0 + 0.22 * box.height, box.x1 - 0.06 * box.width, box.y1 - 0.2 * box.height
    )
    inner = Bbox.intersection(inner, ax.bbox) or Bbox.null()
    if not np.isfinite(inner.get_points()).all() or inner.width <= 0 or inner.height <= 0:
        return False
    if isinstance(curve, PathCollection):
        return _holds(inner, curve.get_offset_transform().transform(np.ma.getdata(curve.get_offsets())))
    vertices = curve.get_transform().transform(_data(curve))
    if curve.get_marker() not in ("", "None", None, " ") and _holds(inner, vertices):
        return True
    return curve.get_linestyle() not in ("None", "", " ") and _crosses(inner, vertices)


def _holds(box: Bbox, points: np.ndarray) -> bool:
    x, y = np.asarray(points, dtype=float).reshape(-1, 2).T
    with np.errstate(invalid="ignore"):
        return bool(((x > box.x0) & (x < box.x1) & (y > box.y0) & (y < box.y1)).any())


def _crosses(box: Bbox, vertices: np.ndarray) -> bool:
    finite = np.isfinite(vertices).all(axis=1)
    pieces = np.split(vertices, np.flatnonzero(~finite))
    paths = (piece[np.isfinite(piece).all(axis=1)] for piece in pieces)
    return any(Path(path).intersects_bbox(box, filled=False) for path in paths if len(path) > 1)


def _entries(ax: Axes) -> list[str]:
    """Entries of the legend of `ax` whose curve cannot be seen in it."""
    legend = ax.get_legend()
    if legend is None or not legend.get_visible():
        return []
    named = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    found = []
    for label in (text.get_text() for text in legend.get_texts()):
        curve = named.get(label)
        if isinstance(curve, Line2D) and (reason := _unseen(curve, ax)):
            found.append(f"a legend names a curve that is not to be seen: {label!r}, {reason}")
    return found


def _faint(ax: Axes) -> list[str]:
    """Entries of the legend of `ax` that do not stand out from its paper."""
    legend = ax.get_legend()
    if legend is None or not legend.get_visible():
        return []
    paper = _luminance(ax.get_facecolor())
    found = []
    for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True):
        if isinstance(handle, Line2D):
            colours = [handle.get_color()] if handle.get_linestyle() not in ("None", "") else []
            if handle.get_marker() not in ("", "None", None):
                colours += [handle.get_markerfacecolor(), handle.get_markeredgecolor()]
            shades = [_luminance(colour) for colour in colours if not isinstance(colour, str) or colour != "none"]
            contrasts = [(max(paper, shade) + 0.05) / (min(paper, shade) + 0.05) for shade in shades]
            if contrasts and max(contrasts) < FAINTEST:
                found.append(f"a legend names a curve that is too faint on its paper: {text.get_text()!r}")
    return found


def _luminance(colour: Any) -> float:
    channels = np.array(to_rgb(colour))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def _unseen(curve: Line2D, ax: Axes) -> str:
    if not len(_data(curve)):
        # Drawn for the legend alone, as what a kind of line means.
        return ""
    if not curve.get_visible() or curve.get_alpha() == 0:
        return "it is not drawn"
    with np.errstate(invalid="ignore", divide="ignore"):
        vertices = curve.get_transform().transform(_data(curve))
    panel = ax.bbox.padded(1.0)
    if not _holds(panel, vertices) and not _crosses(panel, vertices):
        return "no point of it lies in the panel"
    for other in ax.lines[list(ax.lines).index(curve) + 1 :]:
        if _covers(other, curve, ax, vertices):
            return f"{other.get_label()!r} lies on all of it"
    return ""


def _covers(other: Line2D, curve: Line2D, ax: Axes, vertices: np.ndarray) -> bool:
    """Whether a solid curve that is drawn later has the same points and is no thinner."""
    drawn_over = other.get_visible() and other.get_linestyle() == "-" and other.get_zorder() >= curve.get_zorder()
    if not drawn_over or other.get_linewidth() < curve.get_linewidth() or other.get_alpha() not in (None, 1):
        return False
    if curve.get_marker() not in ("", "None", None) or len(_data(other)) != len(vertices):
        return False
    with np.errstate(invalid="ignore", divide="ignore"):
        apart = np.abs(other.get_transform().transform(_data(other)) - vertices)
    return bool(np.nanmax(apart, initial=0.0) < 0.5 and np.isfinite(apart).any())
