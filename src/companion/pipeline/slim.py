"""Makes a finished site lighter where readers lose nothing: the same words, colours, icons and fonts in fewer bytes."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

__all__ = ["site"]

_CODE = re.compile(r'<div class="highlight">.*?</pre>', re.DOTALL)
_TOKEN = re.compile(r'<span class="([a-z0-9]+)">([^<]*)</span>')
_COLOUR = re.compile(r'html\[data-theme="(\w+)"\] \.highlight(?: \.(\w+))? *\{([^}]*)\}')
_KEPT = re.compile(r"(<(pre|script|style|textarea)\b.*?</\2>)", re.DOTALL)
_ICON = re.compile(
    r'(?P<key>"[\w-]+"|[a-z]\w*):\[\d+,\d+,\[(?P<aliases>[^\]]*)\],"[0-9a-f]+",(?:"[^"]*"|\["[^"]*","[^"]*"\])\],?'
)
_FONT = re.compile(r',\s*url\([^)]*\.ttf[^)]*\)\s*format\("truetype"\)')
_SCRIPTED = {"xmark"}
"""Icons that the theme's scripts put on a page."""


def site(html: Path) -> None:
    """Rewrite the pages, the theme's script of icons and its style sheets in place."""
    plain = _plain(html / "_static" / "pygments.css")
    icons = set(_SCRIPTED)
    for page in sorted(html.rglob("*.html")):
        text = page.read_text(encoding="utf-8")
        icons |= set(re.findall(r"\bfa-([a-z0-9-]+)", text))
        lean = _without_indents(_CODE.sub(lambda match: _unwrapped(match[0], plain), text))
        if lean != text:
            page.write_text(lean, encoding="utf-8")
    script = html / "_static" / "scripts" / "fontawesome.js"
    if script.is_file():
        script.write_text(_only(script.read_text(encoding="utf-8"), icons), encoding="utf-8")
    _without_old_fonts(html / "_static")
    # Translations of the theme's words; the pages are made and no script reads them.
    shutil.rmtree(html / "_static" / "locales", ignore_errors=True)


def _plain(sheet: Path) -> set[str]:
    """The kinds of tokens that have the colour of all code, in every theme: their marks change nothing."""
    themes: dict[str, dict[str, str]] = {}
    for theme, kind, style in _COLOUR.findall(sheet.read_text(encoding="utf-8") if sheet.is_file() else ""):
        themes.setdefault(theme, {})[kind] = re.sub(r"/\*.*?\*/", "", style).strip(" ;")
    kinds = set.intersection(*(set(styles) for styles in themes.values())) - {""} if themes else set()

    def same(styles: dict[str, str], kind: str) -> bool:
        colour = re.search(r"(?<![\w-])color: *#\w+", styles.get("", ""))
        return colour is not None and styles[kind] == colour[0]

    return {kind for kind in kinds if all(same(styles, kind) for styles in themes.values())}


def _unwrapped(code: str, plain: set[str]) -> str:
    return _TOKEN.sub(lambda token: token[2] if token[1] in plain else token[0], code)


def _without_indents(text: str) -> str:
    """Line breaks in place of the indents of the theme's templates, where white space is one space whatever it is."""
    parts = _KEPT.split(text)
    # Three parts in turn: markup, what keeps its white space, and the name of its element.
    pieces: Iterable[str] = (
        re.sub(r"[ \t]*\n\s*", "\n", part) if place % 3 == 0 else part
        for place, part in enumerate(parts)
        if place % 3 < 2
    )
    return "".join(pieces)


def _only(script: str, icons: set[str]) -> str:
    """The theme's script with those of its two thousand icons that a page has."""

    def kept(icon: re.Match[str]) -> str:
        names = {icon["key"].strip('"'), *re.findall(r'"([\w-]+)"', icon["aliases"])}
        return icon[0] if names & icons else ""

    return _ICON.sub(kept, script)


def _without_old_fonts(static: Path) -> None:
    """Every browser that can show the pages reads the first form of the icons' font, half as large as the second."""
    for sheet in static.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        if (lean := _FONT.sub("", text)) != text:
            sheet.write_text(lean, encoding="utf-8")
    for font in static.rglob("*.ttf"):
        if font.with_suffix(".woff2").is_file():
            font.unlink()
