"""Checks every rule of claims and pages that needs no run, and says all that is wrong at once, with lines.

What only a run can show (a claim that misses its bound, a page that loads something from outside) is found later.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import jupytext

from companion import claims, figures, manuscript, project
from companion.declaring import compared, declaration, items, library, notebooks, rivals, texts
from companion.evidence import faults
from companion.findings import Finding, Findings
from companion.site import releases

LONGEST_CELL = 22
"""Most lines of a cell that readers see; a call that publishes a figure may be longer."""
MOST_WORDS, MOST_FIGURES, MOST_CELLS = 2_200, 8, 40
"""What a lesson may have: words of prose outside of folds, figures, and cells of code."""
_DISPLAY = re.compile(r"^\$\$$.*?^\$\$([^\n]*)$", re.DOTALL | re.MULTILINE)
_HIDING = {"remove-cell", "remove-output", "hide-cell", "hide-output"}
"""Tags of a cell whose output readers do not see, or not at once."""
_QUOTED = re.compile(r"\{measured\}`([^`]*)`")
_CHECKED = re.compile(r"\{checked\}`([^`]*)`")
_PASTED = re.compile(r"\{glue:text\}`([^`]*)`")
_ROLE = re.compile(r"\{(numref|eq|cite(?::[a-z]+)?)\}`(?:[^`<]*<)?([^`>]+)>?`")
_LABEL = re.compile(r"^\$\$[^\n]*\(([^\s()]+)\)\s*$|^\(([^\s()]+)\)=\s*$|^:(?:label|name):\s*(\S+)\s*$", re.MULTILINE)


@dataclass
class _Calls:
    """What the code of a page says that it will do, where it says so in plain words: value and line of each.

    ``unknown`` names the functions that are called with something computed, so that the list is not whole.
    """

    measured: list[tuple[str, int, Mapping[str, ast.expr]]] = field(default_factory=list)
    published: list[tuple[str, int, Mapping[str, ast.expr]]] = field(default_factory=list)
    glued: list[tuple[str, int, Mapping[str, ast.expr]]] = field(default_factory=list)
    unknown: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class _Cell:
    kind: str
    source: str
    line: int
    tags: Collection[str]
    measured: Sequence[tuple[str, int]]
    """The claims that it measures, with the line of each."""


@dataclass
class _Page:
    chapter: notebooks.Chapter
    file: str
    cells: Sequence[_Cell]
    calls: _Calls

    @property
    def prose(self) -> Iterator[tuple[str, int]]:
        return ((cell.source, cell.line) for cell in self.cells if cell.kind == "markdown")


def book(root: Path, *, only: str | None = None) -> list[Finding]:
    """What is wrong with all declarations; with ``only`` one chapter, also with its pages. No kernel starts."""
    if found := unreadable(root):
        # What else would be wrong is wrong because of that.
        return found
    found = declarations(root)
    for name in [only] if only else []:
        found += chapter(root, name)
    return sorted(set(found))


def unreadable(root: Path) -> list[Finding]:
    """The files of the book that cannot be read, and those that are no files: the checks before all others."""
    found = []
    read: list[tuple[str, Callable[[], object]]] = [
        ("_config.yml", lambda: project.identity(root)),
        ("_toc.yml", lambda: notebooks.names(root)),
        ("book/references.bib", lambda: project.references(root)),
        (f"book/{compared.NAME}", lambda: compared.read(root)),
        ("book/releases/reasons.yml", lambda: releases.reasons(root)),
        ("book/releases", lambda: releases.frozen(root)),
    ]
    for folder in ("book", "notebooks"):
        for path in manuscript.listed(root / folder, "**/*"):
            if path.suffix in _READERS or not path.is_dir():
                read.append((path.relative_to(root).as_posix(), functools.partial(_try, path)))
    for name, tried in read:
        try:
            tried()
        except manuscript.Unreadable as error:
            found.append(Finding(error.file, error.line, "unreadable", error.reason))
        except ValueError as error:
            found.append(Finding(name, 0, "unreadable", str(error).removeprefix(f"{name}: ")))
    if not found:
        said = "expected a page, because _toc.yml lists it, got nothing"
        found = [Finding(file, 0, "unreadable", said) for file in notebooks.absent(root)]
    return sorted(set(found))


def _try(path: Path) -> None:
    if path.suffix in _READERS:
        _READERS[path.suffix](path)
    elif other := manuscript.kind(path):
        raise manuscript.Unreadable(path, 0, f"expected a file, got {other}")


_READERS: Mapping[str, Callable[[Path], object]] = {
    ".bib": manuscript.text,
    ".json": manuscript.data,
    ".md": manuscript.text,
    ".yml": manuscript.parse,
}


def declarations(root: Path) -> list[Finding]:
    """What is wrong with all claims, the comparisons and lists that name them, their texts, and the planted faults."""
    found: list[Finding] = []
    try:
        faults.read(root)
    except Findings as error:
        found += error.findings
    works, read, public = project.references(root), texts.read(root), library.of_book(root)
    found += texts.problems(root, list(works))
    seen: dict[str, str] = {}
    everything: list[claims.Claim] = []
    written: set[str] = set()
    for path in manuscript.listed(root / "book" / "claims", "*.yml"):
        declared, broken = claims.check(path)
        found += broken
        lines = declaration.lines(path)
        written |= set(lines)
        for claim in declared:
            line = lines.get(claim.id, 0)
            for rule, message in _about_texts(claim, works, read):
                found.append(Finding(path.name, line, rule, f"{claim.id}: {message}"))
            for id in (claim.id, *claim.was):
                if seen.setdefault(id, path.name) != path.name:
                    message = f"{id}: declared in {seen[id]} too"
                    found.append(Finding(path.name, line, "repeated-id", message))
            for name in claim.functions:
                if public.find(name) is None:
                    found.append(
                        Finding(path.name, line, "functions", f"{claim.id}: functions: src has no public {name}")
                    )
        everything += declared
    labels = _labels(root)
    for claim in everything:
        if missing := [label for label in claim.equation if label not in labels]:
            path = root / "book" / "claims" / f"{claim.chapter}.yml"
            message = f"{claim.id}: equation: no page has {', '.join(missing)}"
            found.append(Finding(path.name, declaration.lines(path).get(claim.id, 0), "equation", message))
    # Of a claim that breaks a rule that is said, and not that nobody declares it.
    known = written | {claim.id for claim in everything} | {old for claim in everything for old in claim.was}
    found += _about_comparisons(root, known)
    return found + items.problems(root, known, list(works))


def _about_comparisons(root: Path, known: Collection[str]) -> Iterator[Finding]:
    """The entries of ``book/compared.yml`` that say nothing usable, or name a claim that nobody declares."""
    entries, wrong = compared.read(root)
    messages = [message.removeprefix(f"{compared.NAME}: ") for message in wrong]
    for id, entry in entries.items():
        messages += [f"{id}: claims: unknown claim {claim!r}" for claim in entry.claims if claim not in known]
    for message in messages:
        lines = manuscript.text(root / "book" / compared.NAME).splitlines()
        key = f"{message.partition(':')[0]}:"
        line = next((number for number, words in enumerate(lines, 1) if words.startswith(key)), 0)
        yield Finding(compared.NAME, line, "comparison", message)


def _about_texts(
    claim: claims.Claim, works: Collection[str], read: Mapping[str, texts.Text]
) -> Iterator[tuple[str, str]]:
    key = claim.source.get("key")
    if key is None:
        return
    if key not in works:
        yield "reference", f"source: key: {key!r} is not in references.bib"
    text = read.get(key)
    if text is not None and not claim.retired and not claim.quote:
        yield "quote", f"quote: required, at most {declaration.LONGEST_QUOTE} words of the text as they stand there"
    if claim.state not in (None, "standing") and (text is None or text.status != "superseded"):
        yield "state", f"state: {claim.state!r} is for superseded texts, and {key} is not superseded"
    section = claim.source.get("section")
    if section and text is not None and not texts.section_of(section, text):
        known = ", ".join(repr(one.title) for one in text.sections if one.title)
        yield "section", f"source: section: {key} has no section {section!r}; it has {known}"


def chapter(root: Path, name: str) -> list[Finding]:
    """What is wrong with the pages of one chapter."""
    found: list[Finding] = []
    pages = []
    for page_name in (one for one in notebooks.names(root) if notebooks.chapter_of(one) == name):
        try:
            pages.append(_page(root, page_name))
        except (ValueError, SyntaxError) as error:
            file, _, message = str(error).partition(": ")
            file = f"notebooks/{page_name}.md" if " " in file else f"notebooks/{file}"
            found.append(Finding(file, 0, "page", message or str(error)))
    figure_ids = _figure_ids(root)
    labels, works = _labels(root) | figure_ids, project.references(root)
    for page in pages:
        found += [Finding(page.file, line, rule, text) for line, rule, text in _about_page(root, page, labels, works)]
        if len(pages) > 1 and not page.chapter.is_audit:
            found += [Finding(page.file, 0, rule, text) for rule, text in _about_size(page)]
    found += _about_pair(root, name, pages)
    stale = notebooks.out_of_sync(root) if pages and not found else []
    found += [
        Finding(page.file, 0, "pair", "its .ipynb is not what the text says: run `make fix`")
        for page in pages
        if page.chapter.name in stale
    ]
    return found


def _page(root: Path, name: str) -> _Page:
    """A page with the lines of its cells; every call of interest is read from the syntax tree."""
    path = root / "notebooks" / f"{name}.md"
    loaded = notebooks.load(root, name)
    text = manuscript.text(path)
    cells, place, calls = [], 0, _Calls()
    for cell in jupytext.reads(text, fmt="md:myst").cells:
        at = text.find(cell.source, place)
        line = text.count("\n", 0, at) + 1 if at >= 0 else 0
        place = at + len(cell.source) if at >= 0 else place
        before = len(calls.measured)
        if cell.cell_type == "code":
            _read_calls(cell.source, line, calls)
        measured = [(id, at) for id, at, _ in calls.measured[before:]]
        cells.append(_Cell(cell.cell_type, cell.source, line, cell.metadata.get("tags", []), measured))
    return _Page(loaded, f"notebooks/{name}.md", cells, calls)


def _read_calls(source: str, line: int, calls: _Calls) -> None:
    tree = ast.parse(notebooks.python(source))
    lists = {"measure": calls.measured, "publish": calls.published, "glue": calls.glued}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        verb = {"claims.measure": "measure", "figures.publish": "publish", "glue": "glue", "numbers.glue": "glue"}.get(
            name
        )
        if verb is None:
            continue
        named = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
        place = 1 if verb == "publish" else 0
        given = node.args[place] if len(node.args) > place else named.get("key" if verb == "glue" else "id")
        value = given.value if isinstance(given, ast.Constant) else None
        if isinstance(value, str):
            lists[verb].append((value, line + node.lineno - 1, named))
        else:
            calls.unknown.add(verb)


def _about_page(
    root: Path, page: _Page, labels: Collection[str], works: Collection[str]
) -> Iterator[tuple[int, str, str]]:
    name = page.chapter.chapter
    has_audit = (root / "notebooks" / notebooks.AUDITS / f"{name}.md").is_file()
    spoken = set()
    quotable = _quotable(root) if any(_QUOTED.search(source) for source, _ in page.prose) else {}
    glued = {key for key, _, _ in page.calls.glued}
    for source, first in page.prose:
        for line, display in _matches(_DISPLAY, source, first):
            label = display[1]
            if not label.strip() and has_audit:
                continue
            if not re.fullmatch(rf" \(eq:{name}-[a-z0-9-]+\)", label):
                yield line, "equation-label", f"expected $$ (eq:{name}-NAME), got {('$$' + label).strip()!r}"
        for line, pasted in _matches(_PASTED, source, first):
            if not re.fullmatch(r"[\w.-]+(:[^\s{}$]+)?", pasted[1]):
                yield line, "glue-key", f"expected KEY or KEY:FORMAT, got {pasted[1]!r}"
            elif (key := pasted[1].partition(":")[0]) not in glued and "glue" not in page.calls.unknown:
                yield line, "glue-missing", f"no cell computes {key!r}"
        for line, asked in _matches(_QUOTED, source, first):
            if message := _unanswered(asked[1], quotable):
                yield line, "measured", message
        for line, role in _matches(_ROLE, source, first):
            wanted = [role[2]] if not role[1].startswith("cite") else [key.strip() for key in role[2].split(",")]
            known = works if role[1].startswith("cite") else labels
            for one in wanted:
                if one not in known:
                    yield line, "reference", f"{{{role[1]}}}: no page or bibliography has {one!r}"
            spoken |= set(wanted)
    for cell in page.cells:
        lines = cell.source.splitlines()
        if cell.kind == "code" and len(lines) > LONGEST_CELL and not lines[0].startswith("figures.publish"):
            yield cell.line, "long-cell", f"{len(lines)} lines; expected at most {LONGEST_CELL}"
    entries, _ = compared.read(root)
    for id, line, named in page.calls.published:
        if not id.startswith(f"{name}-"):
            yield line, "figure-id", f"{id}: expected an id that begins with {name!r}-"
        if id not in spoken:
            yield line, "figure-unspoken", f"{id}: no {{numref}} of this page speaks of it"
        alt = _constant(named.get("alt"))
        if alt is not None and len(" ".join(alt.split())) < figures.SHORTEST_ALT:
            yield line, "alt", f"{id}: alt: expected at least {figures.SHORTEST_ALT} characters, got {len(alt)}"
        source_words = _constant(named.get("source"))
        if source_words is not None and source_words.strip() != compared.OWN and id not in entries:
            yield line, "compared", f"{id}: no entry in {compared.NAME}, but its source is {source_words!r}"
    if page.chapter.source not in project.sources(root):
        yield 0, "source", f"front matter: source: {page.chapter.source!r} is no source of references.bib"


def _matches(pattern: re.Pattern[str], source: str, first: int) -> Iterator[tuple[int, re.Match[str]]]:
    """Every match in the source of a cell, with its line in the file, where the cell begins at the ``first``."""
    return ((first + source.count("\n", 0, match.start()), match) for match in pattern.finditer(source))


def _quotable(root: Path) -> dict[str, claims.Claim]:
    """The declared claims of the book by each of their ids."""
    listed = [claim for path in manuscript.listed(root / "book" / "claims", "*.yml") for claim in claims.check(path)[0]]
    return {id: claim for claim in listed for id in (claim.id, *claim.was)}


def _unanswered(text: str, known: Mapping[str, claims.Claim]) -> str:
    """Why the role ``measured`` cannot give a number, "" if it can."""
    match = claims.QUOTED.fullmatch(text)
    if match is None:
        return f"expected ID, ID:FORMAT or ID rival:FORMAT, got {text!r}"
    claim = known.get(match["id"])
    if claim is None:
        return f"{match['id']}: no such claim"
    if not claim.is_measured:
        return f"{claim.id}: declared {'retired' if claim.retired else claim.verdict}, so that nothing is measured"
    try:
        format(1.0, match["format"] or "")
    except ValueError:
        return f"{claim.id}: {match['format']!r} is no format of a number"
    return ""


def _about_cells(page: _Page, declared: Mapping[str, claims.Claim]) -> Iterator[tuple[int, str, str]]:
    """Readers find every claim: by the line under its cell, or by the mark of a removed cell at a sentence.

    In an audit a cell stands for one claim, or for the parts of one.
    """
    marks = {}
    for source, first in page.prose:
        for line, mark in _matches(_CHECKED, source, first):
            if mark[1] in marks:
                yield (
                    line,
                    "checked",
                    f"{mark[1]}: one mark, expected at the sentence that says the claim; got a second",
                )
            marks[mark[1]] = line
    removed = {id for cell in page.cells for id, _ in cell.measured if "remove-cell" in cell.tags}
    for id in sorted(set(marks) - removed):
        yield marks[id], "checked", f"{id}: expected a cell of this page, with the tag remove-cell, that measures it"
    for cell in page.cells:
        for id, line in cell.measured if _HIDING & set(cell.tags) else []:
            if not (id in removed and id in marks):
                tag = min(_HIDING & set(cell.tags))
                wanted = "expected a cell that is seen, or the tag remove-cell and {checked} with this id in the text"
                yield line, "claim-hidden", f"{id}: {wanted}; got the tag {tag}"
        ids = {id for id, _ in cell.measured}
        if page.chapter.is_audit and len(ids) > 1 and not any(ids <= set(claim.parts) for claim in declared.values()):
            _, line = cell.measured[1]
            names = ", ".join(sorted(ids))
            yield line, "one-cell-one-claim", f"one cell measures {names}; give each claim a cell of its own"
    if page.chapter.is_audit and "measure" in page.calls.unknown:
        yield 0, "one-cell-one-claim", "claims.measure: expected ids that are written out, each in a cell of its own"


def _about_size(page: _Page) -> Iterator[tuple[str, str]]:
    """A lesson that has an audit is short: what it need not say, the audit says."""
    code = sum(cell.kind == "code" for cell in page.cells)
    for count, most, what in (
        (page.chapter.words, MOST_WORDS, "words of prose outside of folds"),
        (len(page.calls.published), MOST_FIGURES, "figures"),
        (code, MOST_CELLS, "cells of code"),
    ):
        if count > most:
            yield "lesson-size", f"{count} {what}; a lesson has at most {most}"


def _about_pair(root: Path, name: str, pages: Sequence[_Page]) -> Iterator[Finding]:
    """What concerns the pages of a chapter together: ids are unique, and every claim is measured once."""
    path = root / "book" / "claims" / f"{name}.yml"
    declared = {claim.id: claim for claim in (claims.check(path)[0] if path.is_file() else [])}
    lines = declaration.lines(path) if path.is_file() else {}
    places: dict[tuple[str, str], str] = {}
    codes = {page.file: [cell.source for cell in page.cells if cell.kind == "code"] for page in pages}
    written = {file: dict(rivals.written_down(code)) for file, code in codes.items()}
    for page in pages:
        for at, rule, message in _about_cells(page, declared):
            yield Finding(page.file, at, rule, message)
        listed = [("figure", id, line) for id, line, _ in page.calls.published]
        listed += [("claim", id, line) for id, line, _ in page.calls.measured]
        for source, first in page.prose:
            for line, label in _matches(_LABEL, source, first):
                listed.append(("label", next(filter(None, label.groups())), line))
        for kind, id, line in listed:
            here = f"{page.file}:{line}"
            if (kind, id) in places:
                rule = {"figure": "repeated-figure", "claim": "measured-twice", "label": "repeated-label"}[kind]
                yield Finding(page.file, line, rule, f"{id}: {kind} of {places[kind, id]} too")
            places.setdefault((kind, id), here)
        for id, line, named in page.calls.measured:
            claim = declared.get(id)
            if claim is None:
                if id not in lines:
                    yield Finding(page.file, line, "undeclared-claim", f"{id}: not declared in {path.name}")
            elif not claim.is_measured:
                reason = "retired" if claim.retired else claim.verdict
                yield Finding(page.file, line, "not-measured", f"{id}: declared {reason}, but measured")
            elif claim.rival and _needs_rival(claim) and "rival" not in named:
                yield Finding(page.file, line, "rival-unmeasured", f"{id}: expected rival=, {claim.rival!r}")
            elif claim.control and not {"rival", "control"} & set(named):
                yield Finding(page.file, line, "control-unmeasured", f"{id}: expected control=, {claim.control!r}")
            elif id in (of_page := written[page.file]):
                message = f"{id}: rival: expected what the same code gives, got {of_page[id]}"
                yield Finding(page.file, line, "rival-literal", message)
    measured = {id for page in pages for id, _, _ in page.calls.measured}
    if pages and not any("measure" in page.calls.unknown for page in pages):
        for claim in declared.values():
            if claim.is_measured and claim.id not in measured:
                message = f"{claim.id}: no page of the chapter measures it"
                yield Finding(path.name, lines.get(claim.id, 0), "unmeasured-claim", message)
    published = {id for page in pages for id, _, _ in page.calls.published}
    for page in pages:
        thumbnail = page.chapter.thumbnail
        if (
            not page.chapter.is_audit
            and thumbnail not in published
            and not any("publish" in one.calls.unknown for one in pages)
        ):
            yield Finding(page.file, 0, "thumbnail", f"front matter: thumbnail: no page publishes {thumbnail!r}")


def _needs_rival(claim: claims.Claim) -> bool:
    """A printed number is its own rival; every other one has to be measured."""
    return claim.verdict != "corrected" or claim.published is None


def _constant(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _markdown(root: Path) -> Iterator[tuple[str, str]]:
    for path in notebooks.prose(root):
        yield path.name, manuscript.text(path)


def _labels(root: Path) -> set[str]:
    """Labels of equations, sections and tables of all pages."""
    return {next(filter(None, match.groups())) for _, text in _markdown(root) for match in _LABEL.finditer(text)}


def _figure_ids(root: Path) -> set[str]:
    """Ids of figures of all pages, where they are written out."""
    return {
        id
        for _, text in _markdown(root)
        for id in re.findall(r"[\"']([a-z0-9-]+)[\"'],\s*(?:data|caption|alt|source|frames)=", text)
    }
