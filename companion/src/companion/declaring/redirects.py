"""Reads ``book/redirects.yml``, old and short addresses of pages, and writes the pages that lead from them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from companion import manuscript

__all__ = ["NAME", "read", "write"]

NAME = "redirects.yml"
_PAGE = re.compile(r"(?!.*\.\.)[\w-][\w.-]*(?:/[\w-][\w.-]*)*\.html", re.ASCII)
"""A page inside the site: an address that begins with / or leads upwards does not match."""
_PLACE = re.compile(rf"{_PAGE.pattern}(#[\w:.-]+)?", re.ASCII)


def read(root: Path) -> Mapping[str, str]:
    """The new address of every old one. Raises ``ValueError`` if one of the two is no page inside the site."""
    path = root / "book" / NAME
    found = manuscript.mapping(path, "old addresses with the new one of each")
    for old, new in found.items():
        if not _PAGE.fullmatch(old) or not isinstance(new, str) or not _PLACE.fullmatch(new):
            reason = f"{old}: expected two pages inside the site, as book/claims.html, got {old!r} and {new!r}"
            raise manuscript.Unreadable(path, 0, reason)
    return found


def write(root: Path, html: Path) -> None:
    """A page at every old address that leads to the new one."""
    for old, new in read(root).items():
        page = html / old
        if page.exists():
            raise ValueError(f"{NAME}: {old} is a page of the book")
        if not (html / new.partition("#")[0]).is_file():
            raise ValueError(f"{NAME}: {old} leads to {new}, which is not in the site")
        target = "../" * old.count("/") + new
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(
            f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>Moved</title>\n'
            f'<meta http-equiv="refresh" content="0; url={target}">\n<link rel="canonical" href="{target}">\n</head>\n'
            f'<body><main><h1>Moved</h1><p>This page is now <a href="{target}">{target}</a>.</p></main></body>\n'
            "</html>\n",
            encoding="utf-8",
        )
