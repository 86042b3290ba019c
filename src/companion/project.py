"""Reads the book's identity (title, authors, public address, library, references) from ``_config.yml``.

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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib import metadata, util
from pathlib import Path
from typing import Any, TypeVar

from companion import manuscript

T = TypeVar("T")
MACHINERY = __name__.partition(".")[0]
PRESS = "companion-press"
"""The name under which pip installs this machinery."""
BOOKS = "companion.books"
"""Entry points of this group name the packages that carry a book's claims and references in their wheel."""
_BIBLIOGRAPHIC = {
    "author": (r".*\w.*", "names"),
    "title": (r".*\w.*", "words"),
    "year": (r"\d{4}", "four digits"),
    "url": (r"(https?://\S+)?", "an address, https://..."),
}
"""What an entry of ``references.bib`` must have, and how its address reads where there is one."""


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
    return path.is_file() and re.search(rb"^companion:", path.read_bytes(), re.MULTILINE) is not None


@cache
def _installed() -> Path:
    """The book beside this package, where both lie in one repository, or in the wheel of a library."""
    if is_book(repository := Path(__file__).resolve().parents[3]):
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
    base = base or root()
    section = entry(base, "companion", dict[str, Any]())
    known = set(Settings.__dataclass_fields__)
    if "library" not in section or (unknown := set(section) - known):
        raise ValueError(
            f"_config.yml: companion: expected library and some of {sorted(known - {'library'})}, got "
            f"{sorted(unknown if 'library' in section else section)}"
        )
    names = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*"
    paper = {name: _words(base, f"companion.paper.{name}") for name in entry(base, "companion.paper", dict[str, Any]())}
    return Settings(
        library=_text(base, "companion.library", r"[A-Za-z_]\w*", "the name of a package"),
        style=_text(base, "companion.style", rf"({names})?", "the name of a module") if "style" in section else "",
        versions=_words(base, "companion.versions"),
        doi=_text(base, "companion.doi", r"(10\.\S+/\S+)?", 'a DOI, 10.NUMBER/NAME, or ""') if "doi" in section else "",
        paper=paper,
    )


def config(base: Path) -> dict[str, Any]:
    """Everything that ``_config.yml`` says, as a copy."""
    return copy.deepcopy(manuscript.mapping(base / "_config.yml", "the settings of the book"))


def entry(base: Path, name: str, default: T) -> T:
    """An entry of ``_config.yml``, by the names of those around it and its own; it has the type of ``default``."""
    path = base / "_config.yml"
    value: Any = manuscript.mapping(path, "the settings of the book")
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if value is None:
        return default
    if not isinstance(value, type(default)):
        expected = {"dict": "a mapping", "list": "a list", "str": "a text"}[type(default).__name__]
        raise manuscript.Unreadable(path, 0, f"{name}: expected {expected}, got {value!r}")
    return value


def _text(base: Path, name: str, pattern: str = r".*\S.*", expected: str = "words") -> str:
    value = entry(base, name, "")
    if not re.fullmatch(pattern, value):
        raise manuscript.Unreadable(base / "_config.yml", 0, f"{name}: expected {expected}, got {value!r}")
    return value


def _words(base: Path, name: str) -> list[str]:
    value = entry(base, name, list[str]())
    if not all(isinstance(word, str) for word in value):
        raise manuscript.Unreadable(base / "_config.yml", 0, f"{name}: expected a list of words, got {value!r}")
    return value


def identity(base: Path | None = None) -> Identity:
    """Read the identity from ``_config.yml`` in ``base`` (default: ``root()``)."""
    base = base or root()
    library = settings(base).library
    address = _text(base, "repository.url", r"https?://[^\s/]+/\S+/\S+", "an address, https://PLACE/OWNER/NAME")
    return Identity(
        title=_text(base, "title"),
        author=_text(base, "author"),
        year=_text(base, "copyright", r"\d{4}", 'a year in quotation marks, "YYYY"'),
        repository=address.rstrip("/"),
        branch=_text(base, "repository.branch", r"[^\s~^:?*\[\\]+", "the name of a branch"),
        library=library,
        version=_version(base, library),
        doi=settings(base).doi,
    )


def packages(base: Path) -> list[str]:
    """The packages of the book in ``base``: its library, and those that lie beside it in ``src``."""
    library = settings(base).library
    beside = sorted(path.parent.name for path in (base / "src").glob("*/__init__.py"))
    return [library, *(name for name in beside if name not in (library, __package__))]


def version_file(base: Path, library: str) -> Path:
    """Where the repository in ``base`` says the version of its library."""
    return base / "src" / library / "__init__.py"


def _version(base: Path, library: str) -> str:
    """``__version__`` of the library in the repository, read without importing it; of the installed one elsewhere."""
    path = version_file(base, library)
    if not path.parent.exists():
        try:
            return str(importlib.import_module(library).__version__)
        except ModuleNotFoundError as error:
            if error.name != library:
                raise
            reason = f"expected the library {library} that _config.yml names, here or installed, got nothing"
            raise manuscript.Unreadable(path, 0, reason) from error
    for statement in manuscript.code(path).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__version__":
            if isinstance(statement.value, ast.Constant):
                return str(statement.value.value)
            reason = f"__version__: expected a text, got {ast.unparse(statement.value)[:80]}"
            raise manuscript.Unreadable(path, statement.lineno, reason)
    raise manuscript.Unreadable(path, 0, "expected a line that sets __version__, got none")


def chapter_of(figure_id: str, base: Path | None = None) -> str:
    """The chapter that a figure's id begins with, among those of the book in ``base`` that declare claims."""
    chapters = [path.stem for path in manuscript.listed((base or root()) / "book" / "claims", "*.yml")]
    return max((name for name in chapters if figure_id.startswith(f"{name}-")), key=len, default="")


def code(base: Path) -> list[Path]:
    """The folders of code of the repository in ``base``: ``src``, and ``FOLDER/src`` where a folder is a project."""
    return [base / "src", *sorted(path.parent / "src" for path in base.glob("[!._]*/pyproject.toml"))]


def install_requirements(base: Path, ref: str = "") -> list[str]:
    """What pip installs where there is only the notebook: the library with the extra ``notebook``, and the machinery.

    The machinery is named where it lies in the repository of the book. ``ref`` is
    the tag, branch or commit to take; by default that of the version.
    """
    who = identity(base)
    address = f"git+{who.repository}@{ref or who.ref}"
    folders = [folder.parent.relative_to(base) for folder in code(base)[1:] if (folder / MACHINERY).is_dir()]
    press = [f"{PRESS} @ {address}#subdirectory={folder.as_posix()}" for folder in folders]
    return [f"{who.library}[notebook] @ {address}", *press]


def sources(base: Path | None = None) -> Mapping[str, str]:
    """Titles of the works in ``references.bib`` that this book accompanies (keyword ``source``), by key."""
    return {
        key: entry["title"] for key, entry in references(base or root()).items() if entry.get("keywords") == "source"
    }


def references(base: Path) -> Mapping[str, Mapping[str, str]]:
    """Fields of every entry of ``references.bib``, by key. Only what citations need; Sphinx does the typesetting.

    Raises ``ValueError`` for an entry that does not end, a key that is given twice, a missing author, title or year,
    and an address that is not https://...
    """
    path = base / "book" / "references.bib"
    return _entries(path, manuscript.text(path))


@lru_cache(maxsize=8)
def _entries(path: Path, text: str) -> Mapping[str, Mapping[str, str]]:
    entries: dict[str, Mapping[str, str]] = {}
    for start in re.finditer(r"^@(?!comment|preamble|string)", text, flags=re.MULTILINE | re.IGNORECASE):
        line = text.count("\n", 0, start.start()) + 1
        block = re.split(r"^[@%]", text[start.end() :], maxsplit=1, flags=re.MULTILINE)[0]
        head = re.match(r"\w+\{([^,\s]+),", block)
        if head is None or block.count("{") != block.count("}"):
            reason = f"expected @KIND{{KEY, ...}} with as many {{ as }}, got {block.partition(chr(10))[0]!r}"
            raise manuscript.Unreadable(path, line, reason)
        fields = re.findall(r"^\s*(\w+)\s*=\s*[{\"](.+?)[}\"],?\s*$", block, flags=re.MULTILINE)
        key, work = head[1], {name.lower(): re.sub(r"[{}]", "", value) for name, value in fields}
        if key in entries:
            raise manuscript.Unreadable(path, line, f"{key}: expected every key once, got this one twice")
        for name, (pattern, expected) in _BIBLIOGRAPHIC.items():
            if not re.fullmatch(pattern, work.get(name, "")):
                reason = f"{key}: {name}: expected {expected} in a line of its own, got {work.get(name, 'none')!r}"
                raise manuscript.Unreadable(path, line, reason)
        entries[key] = work
    return entries


def mentioned(text: str, works: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[list[str], list[str]]]:
    """For every "Author (2000)" in a text the works of these names and this year, by their keys.

    And those among them whose title has the word that follows, as in "Author (2000), Waves".
    """
    by_name: dict[str, list[str]] = {}
    for key, work in works.items():
        by_name.setdefault(names_and_year(work), []).append(key)
    for name, keys in by_name.items():
        for mention in re.finditer(rf"(?<!\w){re.escape(name)}(?:, (\w+))?", text):
            word = mention[1]
            yield keys, [key for key in keys if word and re.search(rf"\b{word}\b", works[key]["title"])]


def names_and_year(work: Mapping[str, str]) -> str:
    """How prose names a work: family names and year, as in "Author (2000)" or "Author et al. (2001)"."""
    people = [person.partition(",")[0] for person in work["author"].split(" and ")]
    names = people[0] if len(people) == 1 else " and ".join(people) if len(people) == 2 else f"{people[0]} et al."
    return f"{names} ({work['year']})"
