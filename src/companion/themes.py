"""The look of a book's figures in a light and a dark theme. Nothing is drawn here.

The book's ``_config.yml`` names a module of its library as the style. Of that module three names are read: ``RC``,
settings of matplotlib; ``PAPER``, the light background; ``DARK``, the dark colour of every light one, ``PAPER`` among
them. A book without one has matplotlib's own look on white, and black on white is exchanged for white on black.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from matplotlib.artist import Artist
from matplotlib.cm import ScalarMappable
from matplotlib.collections import Collection
from matplotlib.colors import Colormap, ListedColormap, to_hex, to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Annotation, Text

from companion import project


@dataclass(frozen=True)
class Style:
    """Settings of matplotlib, the light background, and the dark colour of every light one."""

    rc: Any = field(default_factory=dict)
    paper: str = "#ffffff"
    exchange: Mapping[str, str] = field(default_factory=lambda: {"#ffffff": "#14181e", "#000000": "#e6e9ee"})

    @property
    def night(self) -> str:
        """The dark background."""
        return self.exchange[self.paper]


def of_the_book() -> Style:
    """The style that the book's ``_config.yml`` names, or the default."""
    name = project.settings().style
    if not name:
        return Style()
    module = importlib.import_module(name)
    return Style(module.RC, module.PAPER, module.DARK)


@contextmanager
def dark(figure: Figure, exchange: Mapping[str, str]) -> Iterator[Figure]:
    """Show ``figure``, drawn once before, in its dark colours inside the block; the light ones return at its end.

    ``exchange`` gives the dark colour of every light one. Colours that are not in it, colour maps among them, stay as
    they are.
    """
    _recolour(figure, exchange)
    try:
        yield figure
    finally:
        _recolour(figure, {night: day for day, night in exchange.items()})


def can_be_exchanged(figure: Figure) -> bool:
    """Whether other colours of the style would make nothing of ``figure`` but an exchange of colours.

    A colour map that is mixed of the style's colours would have others between them.
    """
    named = {colour for pair in of_the_book().exchange.items() for colour in pair}
    maps = [[colour in named for colour in _colours(part)] for part in _mapped(figure)]
    return all(all(told) or not any(told) for told in maps)


def exchange(figure: Figure, colours: Mapping[str, str]) -> None:
    """Give ``figure`` other colours, its colour maps of one colour among them, for good."""
    shaded = [part for part in _mapped(figure) if all(colour in colours for colour in _colours(part))]
    for part in shaded:
        part.set_cmap(ListedColormap(_swap_many(part.cmap(range(part.cmap.N)), colours)))
    _recolour(figure, colours)


def _mapped(figure: Figure) -> list[Any]:
    """The artists whose colours follow from numbers by a map that ``dark`` leaves as it is."""
    parts: list[Any] = figure.findobj(_takes_a_map)
    return [part for part in parts if not _is_short(part.cmap)]


def _takes_a_map(artist: Artist) -> bool:
    return isinstance(artist, ScalarMappable) and artist.get_array() is not None


def _is_short(cmap: Colormap) -> bool:
    """Contours drawn with named colours keep them in a listed colour map."""
    return isinstance(cmap, ListedColormap) and cmap.N <= 32


def _colours(artist: Any) -> list[str]:
    return [to_hex(colour) for colour in artist.cmap(range(artist.cmap.N))]


def _recolour(figure: Figure, exchange: Mapping[str, str]) -> None:
    seen: set[int] = set()
    for artist in figure.findobj():
        for part in _with_hidden_parts(artist):
            if id(part) not in seen:
                seen.add(id(part))
                _recolour_artist(part, exchange)


def _with_hidden_parts(artist: Artist) -> Iterator[Artist]:
    """The artist and the patches that ``findobj`` does not reach."""
    yield artist
    if isinstance(artist, Annotation) and artist.arrow_patch is not None:
        yield artist.arrow_patch
    if isinstance(artist, Text) and (box := artist.get_bbox_patch()) is not None:
        yield box


def _recolour_artist(artist: Any, exchange: Mapping[str, str]) -> None:
    if _takes_a_map(artist):
        # Its colours follow from its numbers; contour lines, given colours of their own, would be filled with them.
        if _is_short(artist.cmap):
            artist.set_cmap(ListedColormap(_swap_many(artist.cmap(range(artist.cmap.N)), exchange)))
    elif isinstance(artist, Text):
        artist.set_color(_swap(artist.get_color(), exchange))
    elif isinstance(artist, Line2D):
        markers = {"markerfacecolor": artist.get_markerfacecolor(), "markeredgecolor": artist.get_markeredgecolor()}
        artist.set_color(_swap(artist.get_color(), exchange))
        for name, colour in markers.items():
            artist.set(**{name: _swap(colour, exchange)})
    elif isinstance(artist, Patch):
        # An alpha set on the patch itself would be applied twice if the colours were read back with it.
        alpha = artist.get_alpha()
        face, edge = artist.get_facecolor(), artist.get_edgecolor()
        artist.set_facecolor(_swap(face, exchange))
        artist.set_edgecolor(_swap(edge, exchange))
        artist.set_alpha(alpha)
    elif isinstance(artist, Collection):
        artist.set_facecolor(_swap_many(artist.get_facecolor(), exchange))
        artist.set_edgecolor(_swap_many(artist.get_edgecolor(), exchange))


def _swap(colour: Any, exchange: Mapping[str, str]) -> Any:
    if isinstance(colour, str) and colour in ("auto", "none"):
        return colour
    rgba = to_rgba(colour)
    other = exchange.get(to_hex(rgba))
    return colour if other is None else (*to_rgba(other)[:3], rgba[3])


def _swap_many(colours: Any, exchange: Mapping[str, str]) -> list[tuple[float, float, float, float]]:
    return [to_rgba(_swap(colour, exchange)) for colour in colours]
