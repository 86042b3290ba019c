"""Makes a finished site lighter where readers lose nothing: the same words, icons and fonts in fewer bytes.

The colours of code stay but for that of operators, of which a page has more than of all other tokens together.
"""

from __future__ import annotations

import html
import json
import posixpath
import re
import shutil
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from companion.site import drawings

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
_WHOLE = re.compile(r'<span class="pre">([^<]*)</span>')
_UNBROKEN = re.compile(r"""[(\[]?(?:[\w.=*"'<>]|(?<=\w)[(\[]|[)\],:;](?=[\w)\],:;.]|$))*|.""", re.ASCII)
"""A word of code that no browser breaks over two lines, whether or not it is told so."""
_SIGNATURE = re.compile(r'<dt class="sig\b.*?</dt>', re.DOTALL)
_SPAN = re.compile(r"<span\b[^>]*>|</span>")
_TOLD = re.compile(r'<span class="(?:[a-np-z]|[a-z][a-z0-9])">')
"""The mark of a token outside a listing, where style sheets know operators (``o``) alone."""
_TITLE = re.compile(r'(<a class="reference (?:in|ex)ternal[^"]*" href="[^"#]*#([^"]*)") title="([^"]*)"')
_SIDEBAR = re.compile(r'<div id="pst-primary-sidebar".*?(?=<main\b)', re.DOTALL)
_FOLDED = re.compile(r"<details><summary\b(?:(?!<details).)*?</details>", re.DOTALL)
_COMMENT = re.compile(r"<!--(?!\[).*?-->", re.DOTALL)
_DARK = re.compile(r'(src="[^"]*figures/([a-z0-9-]+)/\2)-dark\.svg"')
_DARK_ALONE = re.compile(r'<a href="[^"]*figures/([a-z0-9-]+)/\1-dark\.svg" download>[^<]*</a>(?:, )?')
_UNUSED = re.compile(
    r'<script type="text/x-thebe-config">.*?</script>\s*<script>kernelName = [^<]*</script>\s*|'
    r'<div id="ethical-ad-placement"[^>]*>\s*</div>\s*',
    re.DOTALL,
)
"""What the theme writes for kernels in the page and for advertisements, and the book has not."""
_PRINTED_CONTENTS = re.compile(r'<div id="jb-print-toc">.*?</nav>\s*</div>\s*', re.DOTALL)
"""The list of sections that the theme prints above a page, where there are no numbers of pages to find them by."""
_ICON_RULE = re.compile(r'(?:\.fa-[a-z0-9-]+::?before,?)+\{content:"[^"]*"\}')
_OPERATOR = "o"
"""The kind of token that operators are."""
_OWN_SOURCE = re.compile(r'<li><a href="[^"]*_sources/(?:(?!</li>).)*?</li>\s*', re.DOTALL)


def site(folder: Path, *, generated: str = "") -> None:
    """Rewrite the pages, drawings of figures, the theme's script of icons and its style sheets in place.

    ``generated`` is the folder of pages that are made from code, many and of one kind, or "". Every page leads to the
    first of them; the contents in its margin list the others only around the page that is open. On these pages the
    contents list of the rest of the book what is at the top alone. The texts that they were made from are not kept.
    """
    plain = _plain(folder / "_static" / "pygments.css") | {_OPERATOR}
    icons = set(_SCRIPTED)
    both = drawings.in_both_themes(folder / "figures")
    for page in sorted(folder.rglob("*.html")):
        text = page.read_text(encoding="utf-8")
        icons |= set(re.findall(r"\bfa-([a-z0-9-]+)", text))
        name = page.relative_to(folder).as_posix()
        lean = _DARK.sub(lambda match: f'{match[1]}.svg#{drawings.DARK}"' if match[2] in both else match[0], text)
        lean = _DARK_ALONE.sub(lambda match: "" if match[1] in both else match[0], lean)
        lean = _CODE.sub(lambda match: _unwrapped(match[0], plain), _UNUSED.sub("", _PRINTED_CONTENTS.sub("", lean)))
        lean = _SIGNATURE.sub(lambda match: _unmarked(match[0]), _WHOLE.sub(_without_guard, lean))
        lean = _SIDEBAR.sub(partial(_contents, page=name, generated=generated), _TITLE.sub(_untitled, lean))
        if generated and name.startswith(f"{generated}/"):
            lean = _OWN_SOURCE.sub("", lean)
        lean = _without_indents(lean)
        if lean != text:
            page.write_text(lean, encoding="utf-8")
    script = folder / "_static" / "scripts" / "fontawesome.js"
    if script.is_file():
        script.write_text(_only(script.read_text(encoding="utf-8"), icons), encoding="utf-8")
    for sheet in (folder / "_static").rglob("*.css"):
        rules = sheet.read_text(encoding="utf-8")
        if (lean := _ICON_RULE.sub(lambda rule: rule[0] if _names(rule[0]) & icons else "", rules)) != rules:
            sheet.write_text(lean, encoding="utf-8")
    _without_old_fonts(folder / "_static")
    # Translations of the theme's words; the pages are made and no script reads them.
    shutil.rmtree(folder / "_static" / "locales", ignore_errors=True)
    if generated:
        shutil.rmtree(folder / "_sources" / generated, ignore_errors=True)
    for notebook in (folder / "_sources").rglob("*.ipynb"):
        content = json.loads(notebook.read_text(encoding="utf-8"))
        notebook.write_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


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


def _without_guard(word: re.Match[str]) -> str:
    """A word of code without the element that keeps it in one line, where nothing would break it."""
    return word[1] if _UNBROKEN.fullmatch(html.unescape(word[1])) else word[0]


def _unmarked(signature: str) -> str:
    """The signature of an entry without marks of tokens that no style sheet knows."""
    kept: list[bool] = []

    def piece(span: re.Match[str]) -> str:
        if span[0] == "</span>":
            return span[0] if not kept or kept.pop() else ""
        kept.append(_TOLD.fullmatch(span[0]) is None)
        return span[0] if kept[-1] else ""

    return _SPAN.sub(piece, signature)


def _untitled(link: re.Match[str]) -> str:
    """A link without a title that says again where it leads, or only of which project its target is."""
    return link[1] if link[3] == link[2] or re.fullmatch(r"\(in [^)]*\)", link[3]) else link[0]


def _contents(found: re.Match[str], page: str, generated: str) -> str:
    """The contents in the margin without closed lists of generated pages, and without any closed list on these.

    The first page of each list leads to the others.
    """

    def shown(fold: re.Match[str]) -> str:
        address = re.search(r'href="([^"#]*)', fold[0])
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), address[1])) if address else ""
        return "" if f"{generated}/" in (target[: len(generated) + 1], page[: len(generated) + 1]) else fold[0]

    sidebar = found[0]
    before = "" if generated else sidebar
    while before != sidebar:
        before, sidebar = sidebar, _FOLDED.sub(shown, sidebar)
    sidebar = re.sub(r' has-children"(>(?:(?!<details|</li>).)*</li>)', r'"\1', sidebar)
    # Style sheets and scripts know these classes in the text of a page alone. The theme's one rule for the margin,
    # which keeps a title off the arrow of its fold, is that of the book's own style sheet here.
    return sidebar.replace('<a class="reference internal" ', "<a ")


def _without_indents(text: str) -> str:
    """Line breaks in place of the indents of the theme's templates, where white space is one space whatever it is.

    Comments of the templates go too.
    """
    parts = _KEPT.split(text)
    # Three parts in turn: markup, what keeps its white space, and the name of its element.
    pieces: Iterable[str] = (
        re.sub(r"[ \t]*\n\s*", "\n", _COMMENT.sub("", part)) if place % 3 == 0 else part
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


def _names(rule: str) -> set[str]:
    """The icons that a rule of a style sheet is for."""
    return set(re.findall(r"\.fa-([a-z0-9-]+)", rule))


def _without_old_fonts(static: Path) -> None:
    """Every browser that can show the pages reads the first form of the icons' font, half as large as the second."""
    for sheet in static.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        if (lean := _FONT.sub("", text)) != text:
            sheet.write_text(lean, encoding="utf-8")
    for font in static.rglob("*.ttf"):
        if font.with_suffix(".woff2").is_file():
            font.unlink()
