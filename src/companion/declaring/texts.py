"""Reads and writes ``book/sources.yml``: which version of each text was read, section by section, as digests.

A text changes without notice, or is superseded; what a claim rests on is then another text. The digests say which
section changed, and ``compare`` which claims rest on it.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import yaml

from companion import claims
from companion.declaring import shapes
from companion.findings import Finding
from companion.manuscript import entries

NAME = "sources.yml"


@dataclass(frozen=True)
class Section:
    """One section of a text: its number in the order of the headings, its title, and the digest of its words."""

    number: str
    title: str
    sha256: str


@dataclass(frozen=True)
class Text:
    """One text as it was read; ``file`` is the name of its copy in the folder that ``compare`` is given."""

    key: str
    version: str
    address: str
    file: str
    status: str
    sections: Sequence[Section]
    by: str = ""
    since: str = ""


def read(root: Path) -> dict[str, Text]:
    """The texts by key; a file that breaks a rule is read as far as it goes (see ``problems``)."""
    found = {}
    for entry, _ in entries(root / "book" / NAME):
        if not shapes.problems("text", entry):
            sections = [Section(**section) for section in entry["sections"]]
            words = {name: str(entry[name]) for name in entry if name != "sections"}
            found[entry["key"]] = Text(**words, sections=sections)
    return found


def problems(root: Path, known: Sequence[str]) -> list[Finding]:
    """Everything that is wrong with the file; ``known`` are the keys of references.bib."""
    found, seen = [], set()
    for entry, line in entries(root / "book" / NAME):
        reasons = shapes.problems("text", entry)
        if not reasons and entry["key"] not in known:
            reasons = [f"key: {entry['key']!r} is not in references.bib"]
        if not reasons and entry["key"] in seen:
            reasons = [f"key: {entry['key']!r} is listed more than once"]
        if not reasons:
            seen.add(entry["key"])
        name = entry.get("key", "a text") if isinstance(entry, Mapping) else "a text"
        found += [Finding(NAME, line, "text", f"{name}: {reason}") for reason in reasons]
    return found


def sections(text: str, titles: Sequence[str] = ()) -> list[Section]:
    """The sections of a text, what stands before the first heading as section 0.

    Headings are lines of Markdown that begin with #, or, in a text that has none, lines that are one of ``titles`` or
    begin with the number of a section. They are numbered by their depth, 1, 1.1, 1.2, 2, as readers count them; a
    number that the heading itself has counts instead.
    """
    lines = text.splitlines()
    depths = _depths(lines, titles)
    # The first heading is one of the main ones; those above it, as of footnotes, are no deeper.
    top = next((depth for depth, _ in depths.values()), 1)
    counts: list[int] = []
    found: list[tuple[str, str, list[str]]] = [("0", "", [])]
    for place, line in enumerate(lines):
        if place in depths:
            depth, title = depths[place]
            depth = max(depth - top, 0)
            counts = [*counts[: depth + 1], *([0] * (depth + 1 - len(counts)))]
            counts[depth] += 1
            own = re.match(r"(\d+(?:\.\d+)*|[A-Z]\.\d+)\.?\s+(?=\S)", title)
            number = own[1] if own else ".".join(str(count) for count in counts if count)
            if own and own[1][0].isdigit():
                # What follows without a number of its own is counted on from here.
                counts = list(map(int, own[1].split(".")))
            found.append((number, title, []))
        else:
            found[-1][2].append(line)
    return [Section(number, title, digest("\n".join([title, *body]))) for number, title, body in found]


def _depths(lines: Sequence[str], titles: Sequence[str]) -> dict[int, tuple[int, str]]:
    """Depth and title of every heading by the place of its line; the title of the text itself is left out."""
    fences = accumulate(line.lstrip().startswith("```") for line in lines)
    outside = [(place, line) for (place, line), count in zip(enumerate(lines), fences, strict=True) if count % 2 == 0]
    marked = {}
    for place, line in outside:
        if heading := re.match(r"(#{1,6})\s+(.+?)\s*#*$", line):
            marked[place] = (len(heading[1]), heading[2])
    if marked:
        first = min(marked)
        levels = [depth for depth, _ in marked.values()]
        if levels.count(marked[first][0]) == 1 and marked[first][0] == min(levels):
            del marked[first]
        return marked
    for place, line in outside:
        # An indented line belongs to a table of contents.
        words = line.rstrip()
        if (words and words in titles) or re.fullmatch(r"\d+(?:\.\d+)*\.?\s+[A-Z][^.]{2,80}", words):
            number = re.match(r"(\d+(?:\.\d+)*)\.?\s", words)
            marked[place] = (number[1].count(".") + 1 if number else 2, words)
    return marked


def digest(text: str) -> str:
    """sha256 of the words: spaces, kinds of quotation marks and hyphens, and marks of emphasis make no difference."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    for kinds, one in (("‘’", "'"), ("“”", '"'), ("–—", "-"), ("\u00ad", "")):
        plain = re.sub(f"[{kinds}]", one, plain)
    plain = re.sub(r"[*`#]|(?<!\w)_|_(?!\w)", "", plain)
    return hashlib.sha256(" ".join(plain.split()).encode()).hexdigest()


def words(text: str) -> str:
    """The letters and numbers of a text: marks of TeX and Markdown, hyphens and addresses of links make no difference.

    >>> words("It is [*near-zero*](https://example.org), $m_{i} < 0$.")
    'it is nearzero m i 0'
    """
    plain = re.sub(r"\]\([^()]*\)", "]", unicodedata.normalize("NFKC", text).casefold())
    plain = re.sub("[-\u2010-\u2015\u2212\u00ad]", "", plain)
    return " ".join(re.findall(r"[^\W_]+", plain))


def section_of(where: str, text: Text) -> list[str]:
    """Numbers of the sections of ``text`` that a place names, with all that lies below them; [] where none is named.

    A place is a title, or begins with a number as in "section 2.5, below the figure".
    """
    numbers = [section.number for section in text.sections]
    titled = [section.number for section in text.sections if section.title and section.title.lower() == where.lower()]
    named = titled or re.findall(r"(?:sections?|appendix|§)\s*([A-Z]?\.?\d+(?:\.\d+)*|[A-Z](?:\.\d+)*)", where)
    named = named or [
        section.number for section in text.sections if len(section.title) > 3 and section.title.lower() in where.lower()
    ]
    return [number for number in numbers if any(number == one or number.startswith(f"{one}.") for one in named)]


@dataclass(frozen=True)
class Change:
    """What differs between a newer copy of a text and the one that was read, and the claims that rest on it."""

    key: str
    changed: Sequence[str]
    gone: Sequence[str]
    new: Sequence[str]
    claims: Sequence[str]
    unplaced: Sequence[str]
    unquoted: Sequence[str]
    """Claims whose quotation is not in the copy."""

    def __bool__(self) -> bool:
        return bool(self.changed or self.gone or self.new or self.unquoted)


def compare(root: Path, folder: Path) -> tuple[list[Change], list[str]]:
    """Newer copies of the texts in ``folder`` against the digests, section by section; and the texts without a copy."""
    changes, absent = [], []
    declared = [claim for claim in claims.of_book(root).values() if not claim.retired]
    for key, text in read(root).items():
        path = folder / text.file
        if not path.is_file():
            absent.append(f"{key}: {text.file}")
            continue
        titles = [section.title for section in text.sections]
        copy = path.read_text(encoding="utf-8")
        before, now, said = _by_title(text.sections), _by_title(sections(copy, titles)), f" {words(copy)} "
        changed = [one for title, one in before.items() if title in now and now[title].sha256 != one.sha256]
        gone = [section for title, section in before.items() if title not in now]
        new = [section for title, section in now.items() if title not in before]
        touched = {section.number for section in (*changed, *gone)}
        resting, unplaced, unquoted = [], [], []
        for claim in declared:
            if claim.source.get("key") != key:
                continue
            if claim.quote and f" {words(claim.quote)} " not in said:
                unquoted.append(claim.id)
            place = section_of(claim.source.get("section") or claim.source["where"], text)
            if not place:
                unplaced.append(claim.id)
            elif touched & set(place):
                resting.append(claim.id)
        changes.append(Change(key, _named(changed), _named(gone), _named(new), resting, unplaced, unquoted))
    return changes, absent


def record(root: Path, folder: Path) -> list[str]:
    """Write the digests of the copies in ``folder`` into ``book/sources.yml``; returns the keys whose copy was read.

    Titles that are listed there already tell the sections of a text whose headings are not marked.
    """
    path = root / "book" / NAME
    text = path.read_text(encoding="utf-8")
    head = "".join(f"{line}\n" for line in text.splitlines() if line.startswith("#"))
    entries, found = yaml.safe_load(text), []
    for entry in entries:
        copy = folder / entry["file"]
        if copy.is_file():
            titles = [section["title"] for section in entry.get("sections", [])]
            now = sections(copy.read_text(encoding="utf-8"), titles)
            entry["sections"] = [{"number": one.number, "title": one.title, "sha256": one.sha256} for one in now]
            found.append(entry["key"])
    written = []
    for entry in entries:
        rows = "".join(f"    - {_flow(section)}\n" for section in entry.pop("sections", []))
        plain = "".join(f"  {name}: {_flow(value)}\n" for name, value in entry.items())
        written.append(f"- {plain.lstrip()}  sections:{' []' if not rows else ''}\n{rows}")
    path.write_text(head + "\n" + "\n".join(written), encoding="utf-8")
    return found


def _flow(value: Any) -> str:
    """YAML in one line."""
    shown: str = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10**6)
    return shown.removesuffix("...\n").strip()


def report(changes: Sequence[Change], absent: Sequence[str]) -> str:
    """What ``compare`` found, in words."""
    said = []
    for change in changes:
        if not change:
            said.append(f"{change.key}: as it was read")
            continue
        if change.changed or change.gone or change.new:
            said.append(f"{change.key}: another text than the one that was read")
        else:
            said.append(f"{change.key}: as it was read, but quoted otherwise")
        for word, titles in (("changed", change.changed), ("gone", change.gone), ("new", change.new)):
            said += [f"  section {word}: {title or '(before the first heading)'}" for title in titles]
        said += [f"  quotation that is not there: {id}" for id in change.unquoted]
        said += [f"  claim that rests on it: {id}" for id in change.claims]
        said += [f"  claim at no section that is listed, look for yourself: {id}" for id in change.unplaced]
    said += [f"no newer copy of {one}" for one in absent]
    return "\n".join(said)


def _by_title(listed: Sequence[Section]) -> dict[tuple[str, int], Section]:
    """Sections by title, those of one title in their order."""
    found: dict[tuple[str, int], Section] = {}
    for section in listed:
        found[section.title, sum(title == section.title for title, _ in found)] = section
    return found


def _named(listed: Sequence[Section]) -> list[str]:
    return [f"{section.number} {section.title}".strip() for section in listed]
