"""Maps every equation of the sources and of the book to the functions that compute it, their tests, and the claims.

It is made of what stands elsewhere: the lists of items (``book/items``), the labels of equations on the pages, the
fields ``equation``, ``functions`` and ``source`` of claims, the equations that docstrings cite, and the syntax trees of
the tests. A docstring or a claim cites an equation as ``eq. NAME``, ``eqs. NAME, NAME``, ``eq:NAME`` or ``equation 3``,
``equations (3) to (5)``, and a docstring after the word "Source:" also as ``label NAME``. Where several texts have the
name, the docstring, or that of its module, says which one is meant: by its title up to a colon, or as in "Author
(2000)", or, among works of the same names and year, as in "Author (2000), Waves", with a word of the title.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from pathlib import Path

from companion import claims, manuscript, project
from companion.declaring import calls, items, library, notebooks
from companion.findings import Finding

_NUMBER = r"\(?[A-Z]?\d+[a-z]?\)?"
_NUMBERS = rf"{_NUMBER}(?:(?:, | and | to |, and ){_NUMBER})*"
_SLUG = r"[A-Za-z][A-Za-z0-9]*(?:[-:_][A-Za-z0-9]+)*"
_CITATION = re.compile(
    rf"\b[Ee]quations?\s(?P<numbers>{_NUMBERS})"
    rf"|\b[Ee]qs\.\s(?P<several>(?:{_SLUG}|{_NUMBER})(?:(?:, | and | to )(?:{_SLUG}|{_NUMBER}))*)"
    rf"|\b[Ee]q\.\s(?P<one>{_SLUG}|{_NUMBER})"
    rf"|\b(?P<label>eq:{_SLUG})"
)
_LABELLED = re.compile(rf"\blabels?\s(?P<labels>{_SLUG}(?:(?:, and |, | and )(?={_SLUG}\b){_SLUG})*)")
_ORDINARY = {"and", "appendix", "section", "the", "there", "whose", "with"}
"""Words that may follow a label and are not labels."""


class Relation(Enum):
    """How the number of a claim rests on a function that the claim names; the value is what ``why`` says of it."""

    OWN = ""
    RECORD = ", which made a record that its cell reads"
    THROUGH = ", which its cell runs through others"
    NONE = ", which its cell does not run"


@dataclass(frozen=True)
class Test:
    """One test function: its name and its place in the repository."""

    name: str
    file: str
    line: int


@dataclass(frozen=True)
class Function:
    """One public function, class or method of the library: its place, the tests that call it, and what names it."""

    name: str
    file: str
    line: int
    tests: Sequence[Test]
    claims: Sequence[str]


@dataclass
class Row:
    """One equation. ``source`` is the key of the text it stands in, "" for one of the book, and then has ``label``."""

    source: str
    words: str
    section: str
    label: str = ""
    page: str = ""
    shown: list[str] = field(default_factory=list)
    """Labels of the book under which pages show it."""
    claims: list[str] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    """Those that its claims name, and those whose docstrings cite it."""
    places: list[str] = field(default_factory=list)
    """Where it is dealt with in words, as NAME#ANCHOR below ``notebooks``, or below ``book``."""
    reasons: list[str] = field(default_factory=list)
    """Why it is not computed."""

    @property
    def anchor(self) -> str:
        """Its place on the page of the map."""
        words = self.label.removeprefix("eq:") if self.label else f"{self.source} {self.section} {self.words}"
        return "row-" + re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def cited(text: str) -> list[str]:
    """The equations that a text cites, in order: names, or numbers as plain digits; a range gives all of its numbers.

    >>> cited("As eq. one says; see eqs. two, three-four. Source: equations (13) to (15), labels five and six.")
    ['one', 'two', 'three-four', '13', '14', '15', 'five', 'six']
    """
    found: list[str] = []
    text = " ".join(text.split())
    for match in _CITATION.finditer(text):
        given = match["numbers"] or match["several"] or match["one"] or match["label"].removeprefix("eq:")
        found += _expanded(given)
    for match in _LABELLED.finditer(text.partition("Source:")[2]):
        found += _expanded(match["labels"])
    return [one for one in dict.fromkeys(found) if one not in _ORDINARY]


def named(words: str) -> set[str]:
    """The names and numbers under which the words of an item list an equation: every word, and every number named.

    >>> sorted(named("Equations 4 and 5, of a flow, phi"))[:4]
    ['4', '5', 'Equations', 'a']
    """
    numbers = {one for match in re.finditer(rf"\b[Ee]quations?\s({_NUMBERS})", words) for one in _expanded(match[1])}
    return set(re.findall(_SLUG, words)) | numbers


def _expanded(given: str) -> list[str]:
    parts = re.split(r"(, and |, | and | to )", given)
    found: list[str] = []
    for index in range(0, len(parts), 2):
        one = parts[index].strip("()")
        if index and parts[index - 1] == " to " and found[-1].isdigit() and one.isdigit():
            found += [str(number) for number in range(int(found[-1]) + 1, int(one) + 1)]
        else:
            found.append(one)
    return found


class Map:
    """Everything that the map shows, read from a repository once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.packages = project.packages(root)
        self.claims = {
            claim.id: claim
            for path in manuscript.listed(root / "book" / "claims", "*.yml")
            for claim in claims.check(path)[0]
            if not claim.retired
        }
        self._old = {old: claim.id for claim in self.claims.values() for old in claim.was}
        self.labels = {label: page for label, page in notebooks.labels(root).items() if label.startswith("eq:")}
        self._unresolved: list[tuple[str, str]] = []
        self._pages: dict[str, calls.Notebook] = {}
        self._found_behind: dict[str, tuple[str, calls.Reached | None]] = {}
        self.rows = self._rows()

    @cached_property
    def library(self) -> library.Library:
        """The public names of the library."""
        return library.of_book(self.root)

    @cached_property
    def code(self) -> calls.Code:
        """The definitions of the library and of its tests."""
        return calls.Code(self.root, self.packages)

    @cached_property
    def _called(self) -> list[tuple[Test, calls.Reached]]:
        return [
            (Test(one.name, one.path.relative_to(self.root).as_posix(), one.line), self.code.called(one))
            for one in self.code.tests()
        ]

    @cached_property
    def functions(self) -> dict[str, Function]:
        """Every function that the map names, by its name in the reference."""
        names = [name for row in self.rows for name in row.functions]
        names += [self.public(name) for claim in self.claims.values() for name in claim.functions]
        return {name: self.function(name) for name in sorted(set(names))}

    @cached_property
    def _names(self) -> list[str]:
        return notebooks.names(self.root)

    def _behind(self, id: str) -> tuple[str, calls.Reached | None]:
        """The page that measures a claim, and what the measurement rests on; ("", None) without one."""
        if id not in self._found_behind:
            pages = (page for page in self._names if notebooks.chapter_of(page) == id.partition(".")[0])
            found = ((page, self._code_of(page).behind("claims.measure", id)) for page in pages)
            self._found_behind[id] = next(((page, behind) for page, behind in found if behind), ("", None))
        return self._found_behind[id]

    def _code_of(self, page: str) -> calls.Notebook:
        if page not in self._pages:
            self._pages[page] = calls.Notebook(notebooks.load(self.root, page).code)
        return self._pages[page]

    def public(self, name: str) -> str:
        """The name under which the reference has a function; the given one where it has none."""
        return self.library.find(name) or name

    def place(self, name: str) -> tuple[str, int]:
        """File and line of a function or method of the library; ("", 0) where there is no such thing."""
        name = self.public(name)
        entry = self.library.entries.get(name) or self.library.entries.get(name.rpartition(".")[0])
        definition = self.code.definition(name)
        return (definition.path.relative_to(self.root).as_posix(), entry.line) if entry and definition else ("", 0)

    def function(self, name: str) -> Function:
        """What the map says of a function, by its name in the reference."""
        resolved = self.resolved(name)
        tests = [test for test, reached in self._called if reached.calls(resolved)]
        naming = [id for id, claim in self.claims.items() if name in map(self.public, claim.functions)]
        return Function(name, *self.place(name), tests, naming)

    def resolved(self, name: str) -> str:
        """Where a function is defined; of a method, its class, and its own name."""
        resolved = self.code.resolve(name) or name
        if resolved != name and (self.code.resolve(name.rpartition(".")[0]) == resolved):
            resolved = f"{resolved}.{name.rpartition('.')[2]}"
        return resolved

    @cached_property
    def _records(self) -> Sequence[frozenset[str]]:
        """For every data file of the library, the functions and classes that write or read it: they have its name."""
        every = (path for one in self.packages for path in manuscript.listed(self.root / "src" / one, "**/*"))
        files = {path.name for path in every if path.is_file() and path.suffix != ".py"}
        return [found for file in sorted(files) if (found := self.code.naming(file))]

    def relation(self, id: str, name: str) -> Relation:
        """How the number of a claim rests on a function of the library.

        A record is a data file of the library. Of the functions that have its name in their code, those that the cell
        runs have read it, and the others made it, with what they call; but what the cell runs besides reading it is
        no record.
        """
        _, behind = self._behind(id)
        if behind is None:
            return Relation.NONE
        name = self.public(name)
        if any(name == run or name.startswith(f"{run}.") for run in self.run_by(id)):
            return Relation.OWN
        resolved, reached = self.resolved(name), self.code.reached(behind.names, behind.attributes)
        ran = frozenset(one for one in self.run_by(id) if not one.rpartition(".")[2].isupper())
        for record in self._records:
            made = record & reached.names and self.code.reached(record - reached.names).calls(resolved)
            if made and not self.code.reached(ran - record).calls(resolved):
                return Relation.RECORD
        return Relation.THROUGH if reached.calls(resolved) else Relation.NONE

    def measured_on(self, id: str) -> str:
        """The page that measures a claim, "" if none does."""
        return self._behind(id)[0]

    def run_by(self, id: str) -> list[str]:
        """The functions of the library that the cell of a claim runs, on the way to its number.

        Those that these call in turn are not among them.
        """
        _, behind = self._behind(id)
        known = {self.code.resolve(name) for name in behind.names} - {None} if behind else set()
        return sorted({self.public(str(name)) for name in known})

    def resting_on(self, file: str, line: int) -> set[str]:
        """The claims whose cells run the definition at a line of a file of the library, through whatever calls it."""
        own = self.code.at(self.root / file, line)
        found = set()
        for id in self.claims if own else ():
            _, behind = self._behind(id)
            if behind and own in self.code.reached(behind.names, behind.attributes).names:
                found.add(id)
        return found

    def _rows(self) -> list[Row]:
        rows = list(self._of_sources())
        rows += [Row("", label, "", label=label, page=page) for label, page in self.labels.items()]
        by_label = {row.label: row for row in rows if row.label}
        for claim in self.claims.values():
            for label in claim.equation:
                if label in by_label:
                    _add(by_label[label].claims, [claim.id])
        for row in rows:
            # An equation that a page shows under a label rests on the claims about that label.
            for label in row.shown:
                _add(row.claims, by_label[label].claims if label in by_label else [])
            for id in row.claims:
                _add(row.functions, map(self.public, self.claims[id].functions))
        return rows + self._of_docstrings(rows, by_label)

    def _of_sources(self) -> Iterator[Row]:
        """The equations of the lists of items, with the claims that the list names, or that cite them themselves."""
        anchors = {f"equation-{label.replace(':', '-')}": label for label in self.labels}
        said = {
            id: set(cited(str(claim.source.get("where", ""))))
            for id, claim in self.claims.items()
            if claim.source.get("key")
        }
        for path in manuscript.listed(self.root / "book" / items.FOLDER, "*.yml"):
            for item in items.read(self.root, path.stem):
                if item.kind != "equation":
                    continue
                row = Row(path.stem, item.item, item.section)
                asked = [self._old.get(id, id) for id in item.answered.get("claim", ())]
                _add(row.claims, [id for id in asked if id in self.claims])
                names = named(item.item)
                _add(
                    row.claims,
                    [id for id, given in said.items() if given & names and self.claims[id].source["key"] == path.stem],
                )
                for page in item.answered.get("page", ()):
                    label = anchors.get(page.partition("#")[2])
                    _add(row.shown if label else row.places, [label or page])
                _add(row.reasons, item.answered.get("reason", ()))
                yield row

    def _of_docstrings(self, rows: Sequence[Row], by_label: Mapping[str, Row]) -> list[Row]:
        """Rows for what docstrings cite of texts whose equations nobody lists; the others are added to their rows."""
        works = project.references(self.root)
        listed = {row.source for row in rows if row.source}
        more: dict[tuple[str, str], Row] = {}
        for name, doc, module_doc in self._docstrings():
            for label in cited(doc):
                if f"eq:{label}" in by_label:
                    _add(by_label[f"eq:{label}"].functions, [name])
                    continue
                having = [row for row in rows if row.source and label in named(row.words)]
                texts = _texts(doc, works) or _texts(module_doc, works)
                chosen = [row for row in having if row.source in texts] or ([] if texts & listed else having)
                if len({row.source for row in chosen}) == 1:
                    for row in chosen:
                        _add(row.functions, [name])
                elif not chosen and len(texts) == 1 and not texts & listed:
                    (key,) = texts
                    row = more.setdefault((key, label), Row(key, f"equation {label}", ""))
                    _add(row.functions, [name])
                else:
                    self._unresolved.append((name, label))
        return list(more.values())

    def _docstrings(self) -> Iterator[tuple[str, str, str]]:
        """Every public function, class and method that says something, with its words and those of its module."""
        for module in self.library.modules.values():
            for entry in module.entries:
                yield f"{module.name}.{entry.name}", entry.doc, module.doc
                for member in entry.members:
                    yield f"{module.name}.{entry.name}.{member.name}", member.doc, f"{entry.doc}\n{module.doc}"

    def problems(self) -> list[Finding]:
        """What is missing from the map, in both directions; empty where it is complete."""
        found = []
        for id, claim in self.claims.items():
            file = f"{claim.chapter}.yml"
            if claim.kind == "formula" and claim.is_measured and not claim.functions and (runs := self.run_by(id)):
                found.append(Finding(file, 0, "map-functions", f"{id}: functions: none, but its cell runs {runs}"))
            measured = claim.is_measured and self.measured_on(id)
            if idle := [name for name in claim.functions if measured and self.relation(id, name) is Relation.NONE]:
                said = f"its cell runs none of {idle}, and none made a record that it reads"
                found.append(Finding(file, 0, "map-runs", f"{id}: functions: {said}"))
        for name, label in self._unresolved:
            message = f"its docstring cites equation {label!r}: no list of items has it, or several do"
            found.append(Finding(name, 0, "map-docstring", message))
        for one in self.functions.values():
            if one.file and not one.tests:
                found.append(Finding(one.file, one.line, "map-test", f"{one.name}: no test calls it"))
        return sorted(set(found))


def wanted(root: Path) -> bool:
    """Whether a page of the book shows the map, so that the site depends on the tests too."""
    return any("{equation-map}" in manuscript.text(path) for path in manuscript.listed(root / "book", "*.md"))


def _texts(doc: str, works: Mapping[str, Mapping[str, str]]) -> set[str]:
    """The works that a docstring names, by their titles up to a colon or by names and year."""
    words = " ".join(doc.split())
    titled = {
        key
        for key, work in works.items()
        if len(title := work.get("title", "").partition(":")[0]) > 8 and title.lower() in words.lower()
    }
    mentions = list(project.mentioned(words, works))
    dated, exact = ({key for mention in mentions for key in mention[place]} for place in (0, 1))
    return exact or titled & dated or titled or dated


def _add(to: list[str], more: Iterable[str | None]) -> None:
    to += [one for one in dict.fromkeys(more) if one and one not in to]
