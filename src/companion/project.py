"""The book's identity (title, authors, public address, library, references), read from ``_config.yml``.

The section ``companion`` of ``_config.yml`` holds what the machinery must know of the book: ``library``, the package
that the chapters import and the notebooks install; ``style``, a module of the library that gives the figures their look
(see ``companion.themes``); ``versions``, the packages whose versions a page names; ``doi``, that of the archived
release, once there is one; ``paper``, the pages that the editions for paper have beside the ``lessons`` and the
``audits``.
"""

from __future__ import annotations

import ast
import copy
import importlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata, util
from pathlib import Path
from typing import Any

import yaml

__all__ = [
    "BOOKS",
    "Identity",
    "Settings",
    "chapter_of",
    "identity",
    "install_requirement",
    "is_book",
    "names_and_year",
    "references",
    "root",
    "settings",
    "sources",
    "version_file",
]

BOOKS = "companion.books"
"""Entry points of this group name the packages that carry a book's claims and references in their wheel."""


@dataclass(frozen=True)
class Identity:
    """What a citation of the book needs."""

    title: str
    author: str
    year: str
    repository: str
    branch: str
    library: str
    version: str
    doi: str = ""

    @property
    def ref(self) -> str:
        """What git calls this version: the tag of a release, or the branch while the version is still ".dev"."""
        return self.branch if ".dev" in self.version else f"v{self.version}"

    def source_url(self, path: str, commit: str = "") -> str:
        """Public address of a file of the repository as it is in a commit, or in this version: it never changes."""
        return f"{self.repository}/blob/{commit or self.ref}/{path}"

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

    def csl(self, key: str, title: str, url: str) -> dict[str, Any]:
        """The same as a CSL-JSON item, which reference managers import."""
        return {
            "id": key,
            "type": "graphic",
            "title": title,
            "author": [{"literal": self.author}],
            "container-title": self.title,
            "version": self.version,
            "issued": {"date-parts": [[int(self.year)]]},
            "URL": url,
        } | ({"DOI": self.doi} if self.doi else {})


def root() -> Path:
    """The folder that holds ``_config.yml`` and ``book/``: the repository, or its copy inside an installed wheel.

    It is ``COMPANION_ROOT``, which the pipeline sets for the kernels that it starts; or the book that the current
    folder lies in; or the one of the installed library.

    Raises ``ValueError`` if there is no book, or several are installed.
    """
    if override := os.environ.get("COMPANION_ROOT"):
        return Path(override)
    here = Path.cwd()
    for folder in (here, *here.parents):
        if is_book(folder):
            return folder
    return _installed()


def is_book(folder: Path) -> bool:
    """Whether ``folder`` holds a book: a ``_config.yml`` with the section ``companion``."""
    path = folder / "_config.yml"
    return path.is_file() and re.search(r"^companion:", path.read_text(encoding="utf-8"), re.MULTILINE) is not None


@cache
def _installed() -> Path:
    """The book beside this package, where both lie in one repository, or in the wheel of a library."""
    if is_book(repository := Path(__file__).resolve().parents[2]):
        return repository
    found = {}
    for entry in metadata.entry_points(group=BOOKS):
        spec = util.find_spec(entry.value)
        for place in (spec.submodule_search_locations or []) if spec else []:
            if book := next((path for path in (Path(place) / "_book", Path(place).parents[1]) if is_book(path)), None):
                found[entry.name] = book
    if len(found) != 1:
        raise ValueError(f"COMPANION_ROOT: expected the folder of a book; installed books: {sorted(found) or 'none'}")
    return found.popitem()[1]


@dataclass(frozen=True)
class Settings:
    """The section ``companion`` of ``_config.yml``."""

    library: str
    style: str = ""
    versions: Sequence[str] = ()
    doi: str = ""
    paper: Mapping[str, Sequence[str]] = field(default_factory=dict)


def settings(base: Path | None = None) -> Settings:
    """Read the section ``companion`` of ``_config.yml`` in ``base`` (default: ``root()``).

    Raises ``ValueError`` if it is missing, names no library, or has an entry that nobody reads.
    """
    section = _config(base or root()).get("companion") or {}
    known = set(Settings.__dataclass_fields__)
    if "library" not in section or (unknown := set(section) - known):
        raise ValueError(
            f"_config.yml: companion: expected library and some of {sorted(known - {'library'})}, got "
            f"{sorted(unknown if 'library' in section else section)}"
        )
    return Settings(**section)


def _config(base: Path) -> dict[str, Any]:
    return copy.deepcopy(_parsed((base / "_config.yml").read_text(encoding="utf-8")))


@cache
def _parsed(text: str) -> dict[str, Any]:
    """One check of the book asks for its settings a hundred times."""
    config: dict[str, Any] = yaml.safe_load(text)
    return config


def identity(base: Path | None = None) -> Identity:
    """Read the identity from ``_config.yml`` in ``base`` (default: ``root()``)."""
    base = base or root()
    config, library = _config(base), settings(base).library
    repository = config["repository"]
    return Identity(
        title=config["title"],
        author=config["author"],
        year=str(config["copyright"]),
        repository=repository["url"].rstrip("/"),
        branch=repository["branch"],
        library=library,
        version=_version(base, library),
        doi=settings(base).doi,
    )


def version_file(base: Path, library: str) -> Path:
    """Where the repository in ``base`` says the version of its library."""
    return base / "src" / library / "__init__.py"


def _version(base: Path, library: str) -> str:
    """``__version__`` of the library in the repository, read without importing it; of the installed one elsewhere."""
    path = version_file(base, library)
    if not path.is_file():
        return str(importlib.import_module(library).__version__)
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__version__":
            return str(ast.literal_eval(statement.value))
    raise ValueError(f"{path}: expected a line that sets __version__, got none")


def chapter_of(figure_id: str) -> str:
    """The chapter that a figure's id begins with, among those that declare claims."""
    chapters = [path.stem for path in (root() / "book" / "claims").glob("*.yml")]
    return max((name for name in chapters if figure_id.startswith(f"{name}-")), key=len, default="")


def install_requirement(who: Identity) -> str:
    """What pip installs where there is only the notebook: the library of its version with the extra ``notebook``."""
    return f"{who.library}[notebook] @ git+{who.repository}@{who.ref}"


def sources(base: Path | None = None) -> Mapping[str, str]:
    """Titles of the works in ``references.bib`` that this book accompanies (keyword ``source``), by key."""
    return {
        key: entry["title"] for key, entry in references(base or root()).items() if entry.get("keywords") == "source"
    }


@cache
def references(base: Path) -> Mapping[str, Mapping[str, str]]:
    """Fields of every entry of ``references.bib``, by key. Only what citations need; Sphinx does the typesetting."""
    text = (base / "book" / "references.bib").read_text(encoding="utf-8")
    entries: dict[str, Mapping[str, str]] = {}
    for block in re.split(r"^@", text, flags=re.MULTILINE)[1:]:
        if head := re.match(r"\w+\{([^,\s]+),", block):
            fields = re.findall(r"^\s*(\w+)\s*=\s*[{\"](.+?)[}\"],?\s*$", block, flags=re.MULTILINE)
            entries[head[1]] = {name.lower(): re.sub(r"[{}]", "", value) for name, value in fields}
    return entries


def names_and_year(work: Mapping[str, str]) -> str:
    """How prose names a work: family names and year, as in "Author (2000)" or "Author et al. (2001)"."""
    people = [person.partition(",")[0] for person in work["author"].split(" and ")]
    names = people[0] if len(people) == 1 else " and ".join(people) if len(people) == 2 else f"{people[0]} et al."
    return f"{names} ({work['year']})"
