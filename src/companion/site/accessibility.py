"""Mends markup of the theme that bars readers who do not see the page or do not use a mouse. Content is not touched.

Each exchange answers one rule of the axe-core audit, named beside it. For those who see, a formula keeps its stop.
"""

from __future__ import annotations

import re
from pathlib import Path

_EXCHANGES = [
    # label-content-name-mismatch: the visible text, not another label, must name the control.
    (re.compile(r'(<button class="btn search-button-field[^>]*?) aria-label="Search"'), r"\1"),
    (re.compile(r'(<i class="theme-switch [^>]*?)\s+title="[^"]*"'), r'\1 aria-hidden="true"'),
    (re.compile(r'<summary aria-label="Toggle hidden content">'), "<summary>"),
    # aria-required-children, aria-deprecated-role: a list of references without list items, in a role given up.
    (re.compile(r'<div role="list" class="citation-list">'), '<div class="citation-list">'),
    (re.compile(r'(<div class="citation" id="[^"]+") role="doc-biblioentry">'), r"\1>"),
    # region: the way to the title page stands outside every landmark.
    (re.compile(r'(<a class="navbar-brand logo".*?</a>)', re.DOTALL), r'<nav aria-label="Title page">\1</nav>'),
    # summary-name: a button that is an arrow alone.
    (
        re.compile(r'(>\s*([^<>"]*?)\s*</a><details[^>]*><summary)(><span class="toctree-toggle")'),
        r'\1 aria-label="Pages under: \2"\3',
    ),
]
_STOP = re.compile(r'(<span class="math [^"]*">[^<]*</span>[.,;:!?)\]’”]+)')
_SIGNATURE = re.compile(r'<dt class="sig\b.*?</dt>', re.DOTALL)


def mend(site: Path) -> None:
    """Rewrite the pages of ``site`` in place."""
    for page in site.rglob("*.html"):
        text = mended = page.read_text(encoding="utf-8")
        for pattern, replacement in _EXCHANGES:
            mended = pattern.sub(replacement, mended)
        mended = _SIGNATURE.sub(_in_lines, mended)
        # Browsers break a line between a formula and the stop that follows it.
        mended = _STOP.sub(r'<span class="book-held">\1</span>', mended)
        if mended != text:
            page.write_text(mended, encoding="utf-8")


def _in_lines(signature: re.Match[str]) -> str:
    """definition-list: the arguments of a long signature, one a line, as lines; they define no terms."""
    lines = signature[0].replace("<dl>", '<span class="book-lines">').replace("<dd>", "<span>")
    return lines.replace("</dl>", "</span>").replace("</dd>", "</span>")
