"""Reads the book's identity (title, authors, public address, library, references) from ``_config.yml``.

The section ``companion`` of ``_config.yml`` holds what the press must know of the book: ``library``, the package that
the chapters import; ``versions``, the packages whose versions a page names; ``doi``, that of the archived release, once
there is one.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from companion import manuscript


@dataclass(frozen=True)
class Identity:
    """What a citation of the book needs, and the packages whose versions its pages name."""

    title: str
    author: str
    year: str
    repository: str
    branch: str
    library: str
    version: str
    versions: Sequence[str]
    doi: str

    @property
    def ref(self) -> str:
        """What git calls this version: the tag of a release, or the branch while the version is still ".dev"."""
        return self.branch if ".dev" in self.version else f"v{self.version}"

    def source_url(self, path: str) -> str:
        """Public address of a file of the repository as it is in this version."""
        return f"{self.repository}/blob/{self.ref}/{path}"

    @property
    def site(self) -> str:
        """Public address of the site: the GitHub Pages address that belongs to the repository."""
        owner, name = self.repository.rstrip("/").split("/")[-2:]
        return f"https://{owner}.github.io/{name}/"

    def chapter_url(self, page: str, anchor: str = "") -> str:
        """Public address of a page of a chapter, or of one place in it."""
        return f"{self.site}notebooks/{page}.html" + (f"#{anchor}" if anchor else "")

    def bibtex(self, key: str, title: str, url: str) -> str:
        """A BibTeX entry for one part of the book."""
        fields = {
            "author": f"{{{self.author}}}",
            "title": title,
            "howpublished": f"In: {self.title}, version {self.version}",
            "year": self.year,
            "url": url,
        } | ({"doi": self.doi} if self.doi else {})
        return "\n".join([f"@misc{{{key},", *(f"  {name} = {{{value}}}," for name, value in fields.items()), "}"])


def config(base: Path) -> dict[str, Any]:
    """Everything that ``_config.yml`` says, as a copy."""
    return copy.deepcopy(manuscript.mapping(base / "_config.yml", "the settings of the book"))


def _text(base: Path, name: str, pattern: str = r".*\S.*", expected: str = "words") -> str:
    """An entry of ``_config.yml`` that is a text, by the names of those around it and its own."""
    value = _entry(base, name)
    if not isinstance(value, str) or not re.fullmatch(pattern, value):
        raise manuscript.Unreadable(base / "_config.yml", 0, f"{name}: expected {expected}, got {value!r}")
    return value


def _entry(base: Path, name: str) -> Any:
    value: Any = config(base)
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def identity(base: Path) -> Identity:
    """Read the identity from ``_config.yml`` in ``base``; raises ``ValueError`` for an entry of another form."""
    library = _text(base, "companion.library", r"[A-Za-z_]\w*", "the name of a package")
    address = _text(base, "repository.url", r"https?://[^\s/]+/\S+/\S+", "an address, https://PLACE/OWNER/NAME")
    return Identity(
        title=_text(base, "title"),
        author=_text(base, "author"),
        year=_text(base, "copyright", r"\d{4}", 'a year in quotation marks, "YYYY"'),
        repository=address.rstrip("/"),
        branch=_text(base, "repository.branch", r"[^\s~^:?*\[\\]+", "the name of a branch"),
        library=library,
        version=_version(base / "src" / library / "__init__.py"),
        versions=_entry(base, "companion.versions") or (),
        doi=_text(base, "companion.doi", r"(10\.\S+/\S+)?", 'a DOI, 10.NUMBER/NAME, or ""'),
    )


def _version(path: Path) -> str:
    """``__version__`` of a module, read without importing it."""
    for statement in manuscript.code(path).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__version__":
            return str(ast.literal_eval(statement.value))
    raise manuscript.Unreadable(path, 0, "expected a line that sets __version__, got none")


def sources(base: Path) -> Mapping[str, str]:
    """Titles of the works in ``references.bib`` that this book accompanies (keyword ``source``), by key."""
    return {key: entry["title"] for key, entry in references(base).items() if entry.get("keywords") == "source"}


def references(base: Path) -> Mapping[str, Mapping[str, str]]:
    """Fields of every entry of ``references.bib``, by key, as pybtex reads them; ``author`` joins them by "and".

    Raises ``ValueError`` where the file is no BibTeX, for a key that is given twice, and for an entry without a title
    or a year.
    """
    path = base / "book" / "references.bib"
    return _entries(path, manuscript.text(path))


@lru_cache(maxsize=8)
def _entries(path: Path, text: str) -> Mapping[str, Mapping[str, str]]:
    from pybtex.database import BibliographyDataError, parse_string
    from pybtex.exceptions import PybtexError

    try:
        database = parse_string(text, "bibtex")
    except (BibliographyDataError, PybtexError) as error:
        raise manuscript.Unreadable(path, getattr(error, "lineno", None) or 0, f"expected BibTeX: {error}") from error
    works: dict[str, Mapping[str, str]] = {}
    for key, entry in database.entries.items():
        work = {name.lower(): _plain(entry.fields[name]) for name in entry.fields}
        if whole := database.entries.get(entry.fields.get("crossref", "")):
            work = {name.lower(): _plain(whole.fields[name]) for name in whole.fields} | work
        people = entry.persons.get("author") or entry.persons.get("editor") or []
        work["author"] = " and ".join(map(_person, people)) or work.get("organization", "")
        for name in ("title", "year"):
            if not work.get(name):
                raise manuscript.Unreadable(path, 0, f"{key}: {name}: expected in every entry, got none")
        works[key] = work
    return works


def _person(person: Any) -> str:
    last = " ".join([*person.prelast_names, *person.last_names])
    return _plain(", ".join(filter(None, [last, " ".join([*person.first_names, *person.middle_names])])))


def _plain(tex: str) -> str:
    """Words of a field as people read them: accents of TeX as letters, without braces."""
    from pylatexenc.latex2text import LatexNodes2Text

    words = LatexNodes2Text().latex_to_text(tex.replace("%", r"\%")) if re.search(r"[\\{}$~]", tex) else tex
    return " ".join(words.split())


def names_and_year(work: Mapping[str, str]) -> str:
    """How prose names a work: family names and year, as in "Author (2000)" or "Author et al. (2001)"."""
    people = [person.partition(",")[0] for person in (work["author"] or work["title"]).split(" and ")]
    names = people[0] if len(people) == 1 else " and ".join(people) if len(people) == 2 else f"{people[0]} et al."
    return f"{names} ({work['year']})"
