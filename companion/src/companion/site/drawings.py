"""One drawing for both themes: where a figure's dark variant differs in colours alone, the light one carries them too.

Written for the figures of a site and their archives; a chapter's run publishes two drawings.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["DARK", "join", "merge", "refuse_changes", "shown"]

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


def shown(record: Mapping[str, Any]) -> tuple[str, str]:
    """The addresses, in a figure's folder, of the pictures that pages show in the light theme and in the dark one."""
    id, files = record["id"], record["files"]
    for kind in ("svg", "png"):
        if f"{id}-dark.{kind}" in files:
            return f"{id}.{kind}", f"{id}-dark.{kind}"
    return f"{id}.svg", f"{id}.svg#{DARK}"


def join(folder: Path) -> None:
    """Put the two drawings in the folder of a figure into one where they can be; its record then lists that one alone.

    Raises ``ValueError`` if a file is not the one that the record lists.
    """
    path = folder / "figure.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    refuse_changes(folder, record["files"])
    light, dark = (folder / f"{record['id']}{theme}.svg" for theme in ("", "-dark"))
    if not dark.is_file():
        return
    both = merge(light.read_text(encoding="utf-8"), dark.read_text(encoding="utf-8"))
    if both is not None:
        light.write_text(both, encoding="utf-8")
        dark.unlink()
        del record["files"][dark.name]
        record["files"][light.name] = hashlib.sha256(light.read_bytes()).hexdigest()
        path.write_text(json.dumps(record, ensure_ascii=False), encoding="utf-8")


def refuse_changes(folder: Path, files: Mapping[str, str]) -> None:
    """Raise ``ValueError`` if a file of a figure has another digest than its record says."""
    changed = [
        name
        for name, digest in sorted(files.items())
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != digest
    ]
    if changed:
        raise ValueError(f"figure {folder.name}: the files {changed} are not those that figure.json lists")
