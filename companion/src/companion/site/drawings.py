"""One drawing for both themes: where a figure's dark variant differs in colours alone, the light one carries them too.

Written for the figures of a site and their archives; a chapter's run publishes two drawings.
"""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["DARK", "has_both_themes", "in_both_themes", "merge"]

DARK = "dark"
"""The fragment of an address that shows the dark theme: ``ID.svg#dark``."""
_PAINT = re.compile(r'(?<= )(fill|stroke|stop-color)="([^"]*)"')
_ID = re.compile(r' id="([^"]+)"')
_NAMED = re.compile(r'(?<= id=")[^"]+(?=")|(?<=href="#)[^"]+(?=")|(?<=url\(#)[^)]+(?=\))')


def merge(light: str, dark: str) -> str | None:
    """The SVG ``light`` with rules that give it the colours of ``dark`` when it is addressed as ``#dark``.

    Both must be the same drawing but for colours, and each colour of an attribute must always become the same other
    one; otherwise no rules can do it, and the answer is None.
    """
    ids = dict(zip(_ID.findall(dark), _ID.findall(light), strict=False))
    if DARK in ids.values() or "</style>" not in light or len(set(ids.values())) < len(ids):
        return None
    same = _NAMED.sub(lambda name: ids.get(name[0], name[0]), dark)
    here, there = _PAINT.split(light), _PAINT.split(same)
    # Three parts in turn: what lies between colours, the name of an attribute, its colour.
    if [part for place, part in enumerate(here) if place % 3 < 2] != [
        part for place, part in enumerate(there) if place % 3 < 2
    ]:
        return None
    becomes: dict[tuple[str, str], str] = {}
    for name, before, after in zip(here[1::3], here[2::3], there[2::3], strict=True):
        if becomes.setdefault((name, before), after) != after:
            return None
    changed = sorted((name, before, after) for (name, before), after in becomes.items() if after != before)
    # As variables, since elements that are used many times inherit these but do not see what stands above them.
    # Programs that do not know variables skip the whole, and find the light theme in the attributes.
    light_ones = ";".join(f"--c{place}:{before}" for place, (_, before, _) in enumerate(changed))
    dark_ones = ";".join(f"--c{place}:{after}" for place, (_, _, after) in enumerate(changed))
    uses = "".join(f'[{name}="{before}"]{{{name}:var(--c{place})}}' for place, (name, before, _) in enumerate(changed))
    rules = f"@supports (--c:0){{:root{{{light_ones}}}:root:target{{{dark_ones}}}{uses}}}"
    return light.replace("</style>", f"{rules}</style>", 1).replace("<svg ", f'<svg id="{DARK}" ', 1)


def has_both_themes(folder: Path) -> bool:
    """Whether the drawing in the folder of a figure, which has the figure's id for a name, shows both themes."""
    drawing = folder / f"{folder.name}.svg"
    if not drawing.is_file():
        return False
    with drawing.open(encoding="utf-8") as text:
        return f'<svg id="{DARK}" ' in text.read(2000)


def in_both_themes(figures: Path) -> set[str]:
    """Put the two drawings of every figure in ``figures`` into one where they can be; returns the ids of those.

    Figures whose drawings were put into one before are among them.
    """
    found = set()
    for folder in sorted(path for path in figures.glob("*") if path.is_dir()):
        light, dark = folder / f"{folder.name}.svg", folder / f"{folder.name}-dark.svg"
        if light.is_file() and dark.is_file():
            both = merge(light.read_text(encoding="utf-8"), dark.read_text(encoding="utf-8"))
            if both is not None:
                light.write_text(both, encoding="utf-8")
                dark.unlink()
        if not dark.is_file() and has_both_themes(folder):
            found.add(folder.name)
    return found
