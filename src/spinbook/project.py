"""The book's identity (title, authors, public address, references), read from `_config.yml`. Nothing is computed."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

import spinbook


@dataclass(frozen=True)
class Identity:
    """What a citation of the book needs."""

    title: str
    author: str
    year: str
    repository: str
    branch: str
    version: str

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

    def chapter_url(self, chapter: str, anchor: str = "") -> str:
        """Public address of a chapter, or of one place in it."""
        return f"{self.site}notebooks/{chapter}.html" + (f"#{anchor}" if anchor else "")

    def bibtex(self, key: str, title: str, url: str) -> str:
        """A BibTeX entry for one part of the book."""
        fields = {
            "author": f"{{{self.author}}}",
            "title": title,
            "howpublished": f"In: {self.title}, version {self.version}",
            "year": self.year,
            "url": url,
        }
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
        }


def root() -> Path:
    """The folder that holds `_config.yml` and `book/`: the repository, or its copy inside an installed wheel.

    `SPINBOOK_ROOT` overrides it; the pipeline sets it for the kernels that it starts.
    """
    if override := os.environ.get("SPINBOOK_ROOT"):
        return Path(override)
    package = Path(__file__).resolve().parent
    repository = package.parent.parent
    return repository if (repository / "_config.yml").is_file() else package / "_book"


def identity(base: Path | None = None) -> Identity:
    """Read the identity from `_config.yml` in `base` (default: `root()`)."""
    path = (base or root()) / "_config.yml"
    config: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    repository = config["repository"]
    return Identity(
        title=config["title"],
        author=config["author"],
        year=str(config["copyright"]),
        repository=repository["url"].rstrip("/"),
        branch=repository["branch"],
        version=spinbook.__version__,
    )


def chapter_of(figure_id: str) -> str:
    """The chapter that a figure's id begins with, among those that declare claims."""
    chapters = [path.stem for path in (root() / "book" / "claims").glob("*.yml")]
    return max((name for name in chapters if figure_id.startswith(f"{name}-")), key=len, default="")


def install_requirement(who: Identity) -> str:
    """What pip installs on a machine that has only the notebook: the library of the notebook's own version."""
    return f"spinbook @ git+{who.repository}@{who.ref}"


def sources(base: Path | None = None) -> Mapping[str, str]:
    """Titles of the works in `references.bib` that this book accompanies (keyword `source`), by key."""
    return {
        key: entry["title"] for key, entry in references(base or root()).items() if entry.get("keywords") == "source"
    }


@cache
def references(base: Path) -> Mapping[str, Mapping[str, str]]:
    """Fields of every entry of `references.bib`, by key. Only what citations need; Sphinx does the typesetting."""
    text = (base / "book" / "references.bib").read_text(encoding="utf-8")
    entries: dict[str, Mapping[str, str]] = {}
    for block in re.split(r"^@", text, flags=re.MULTILINE)[1:]:
        if head := re.match(r"\w+\{([^,\s]+),", block):
            fields = re.findall(r"^\s*(\w+)\s*=\s*[{\"](.+?)[}\"],?\s*$", block, flags=re.MULTILINE)
            entries[head[1]] = {name.lower(): re.sub(r"[{}]", "", value) for name, value in fields}
    return entries


def names_and_year(work: Mapping[str, str]) -> str:
    """How prose names a work: family names and year, as in "Bal (2020)" or "Aguilera et al. (2021)"."""
    people = [person.partition(",")[0] for person in work["author"].split(" and ")]
    names = people[0] if len(people) == 1 else " and ".join(people) if len(people) == 2 else f"{people[0]} et al."
    return f"{names} ({work['year']})"
