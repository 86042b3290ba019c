"""Checks every rule of claims and pages that needs no run, and says all that is wrong at once, with lines.

What only a run can show (a claim that misses its bound, a page that loads something from outside) is found later.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

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
_VERBS = {
    "claims.measure": ("measure", 0, "id"),
    "figures.publish": ("publish", 1, "id"),
    "glue": ("glue", 0, "key"),
    "numbers.glue": ("glue", 0, "key"),
}
"""What the calls do of which a page is asked, and the place and the name of the argument that says with what."""


@dataclass(frozen=True)
class _Call:
    """One call of ``_VERBS`` in a cell; ``id`` is "" where it is computed, and not written out."""

    verb: str
    id: str
    line: int
    named: Mapping[str, ast.expr]


@dataclass(frozen=True)
class _Cell:
    kind: str
    source: str
    line: int
    tags: Collection[str]
    calls: Sequence[_Call]

    @property
    def measured(self) -> Sequence[_Call]:
        return [call for call in self.calls if call.verb == "measure" and call.id]


@dataclass(frozen=True)
class _Page:
    chapter: notebooks.Chapter
    file: str
    cells: Sequence[_Cell]

    def calls(self, verb: str) -> list[_Call]:
        """What the code says that it will do, where it says so in plain words."""
        return [call for cell in self.cells for call in cell.calls if call.verb == verb and call.id]

    def computes(self, verb: str) -> bool:
        """Whether an id is computed, so that the list of calls is not whole."""
        return any(call.verb == verb and not call.id for cell in self.cells for call in cell.calls)

    def prose(self, pattern: re.Pattern[str]) -> Iterator[tuple[int, re.Match[str]]]:
        """Every match in the prose, with its line."""
        for cell in self.cells:
            for match in pattern.finditer(cell.source if cell.kind == "markdown" else ""):
                yield cell.line + cell.source.count("\n", 0, match.start()), match


_Broken = Iterator[tuple[int, str, str]]
"""Line, rule and message of everything that is wrong with one page."""


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
    for path in (path for folder in ("book", "notebooks") for path in manuscript.listed(root / folder, "**/*")):
        name = path.relative_to(root).as_posix()
        if path.suffix in _READERS:
            read.append((name, functools.partial(_READERS[path.suffix], path)))
        elif not path.is_dir() and (other := manuscript.kind(path)):
            found.append(Finding(name, 0, "unreadable", f"expected a file, got {other}"))
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
    labels = notebooks.labels(root)
    found += texts.problems(root, list(works))
    seen: dict[str, str] = {}
    written: set[str] = set()
    retired: set[str] = set()
    for path in manuscript.listed(root / "book" / "claims", "*.yml"):
        declared, broken = claims.check(path)
        lines = declaration.lines(path)
        found += broken
        # Of a claim that breaks a rule that is said, and not that nobody declares it.
        written |= set(lines)
        retired |= {claim.id for claim in declared if claim.retired}
        for claim in declared:
            for rule, message in (*_about_texts(claim, works, read), *_about_names(claim, public, labels)):
                found.append(Finding(path.name, lines[claim.id], rule, f"{claim.id}: {message}"))
            for id in (claim.id, *claim.was):
                if seen.setdefault(id, path.name) != path.name:
                    message = f"{id}: declared in {seen[id]} too"
                    found.append(Finding(path.name, lines[claim.id], "repeated-id", message))
    found += compared.findings(root, written - retired)
    return found + items.problems(root, written | seen.keys(), list(works))


def _about_names(claim: claims.Claim, public: library.Library, labels: Collection[str]) -> Iterator[tuple[str, str]]:
    """The functions and the equations that a claim names and that are not there."""
    for name in claim.functions:
        if public.find(name) is None:
            yield "functions", f"functions: src has no public {name}"
    if missing := [label for label in claim.equation if label not in labels]:
        yield "equation", f"equation: no page has {', '.join(missing)}"


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
    for page_name in (page for page in notebooks.names(root) if notebooks.chapter_of(page) == name):
        try:
            pages.append(_page(root, page_name))
        except (ValueError, SyntaxError) as error:
            file, _, message = str(error).partition(": ")
            file = f"notebooks/{page_name}.md" if " " in file else f"notebooks/{file}"
            found.append(Finding(file, 0, "page", message or str(error)))
    path = root / "book" / "claims" / f"{name}.yml"
    declared = {claim.id: claim for claim in (claims.check(path)[0] if path.is_file() else [])}
    labels, works = notebooks.labels(root).keys() | _figure_ids(root), project.references(root)
    for page in pages:
        broken = [*_about_prose(root, page, labels, works), *_about_code(root, page), *_about_cells(page, declared)]
        broken += _about_size(page) if len(pages) > 1 and not page.chapter.is_audit else []
        found += [Finding(page.file, line, rule, message) for line, rule, message in broken]
    found += _about_pair(path, declared, pages)
    stale = notebooks.out_of_sync(root) if pages and not found else []
    found += [
        Finding(page.file, 0, "pair", "its .ipynb is not what the text says: run `make fix`")
        for page in pages
        if page.chapter.name in stale
    ]
    return found


def _page(root: Path, name: str) -> _Page:
    """A page with the lines of its cells; every call of interest is read from the syntax tree."""
    file = f"notebooks/{name}.md"
    loaded, text = notebooks.load(root, name), manuscript.text(root / file)
    cells, place = [], 0
    # The first cell, which installs the library, does not stand in the text.
    for cell in loaded.notebook.cells[1:]:
        at = text.find(cell.source, place)
        line = text.count("\n", 0, at) + 1 if at >= 0 else 0
        place = at + len(cell.source) if at >= 0 else place
        calls = list(_calls(cell.source, line)) if cell.cell_type == "code" else []
        cells.append(_Cell(cell.cell_type, cell.source, line, cell.metadata.get("tags", []), calls))
    return _Page(loaded, file, cells)


def _calls(source: str, line: int) -> Iterator[_Call]:
    for node in ast.walk(ast.parse(notebooks.python(source))):
        if isinstance(node, ast.Call) and (known := _VERBS.get(ast.unparse(node.func))):
            verb, place, name = known
            named = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
            given = node.args[place] if len(node.args) > place else named.get(name)
            yield _Call(verb, _constant(given) or "", line + node.lineno - 1, named)


def _about_prose(root: Path, page: _Page, labels: Collection[str], works: Collection[str]) -> _Broken:
    name = page.chapter.chapter
    has_audit = (root / "notebooks" / notebooks.AUDITS / f"{name}.md").is_file()
    for line, display in page.prose(_DISPLAY):
        label = display[1]
        needs_none = not label.strip() and has_audit
        if not needs_none and not re.fullmatch(rf" \(eq:{name}-[a-z0-9-]+\)", label):
            yield line, "equation-label", f"expected $$ (eq:{name}-NAME), got {('$$' + label).strip()!r}"
    glued = {call.id for call in page.calls("glue")}
    for line, pasted in page.prose(_PASTED):
        if not re.fullmatch(r"[\w.-]+(:[^\s{}$]+)?", pasted[1]):
            yield line, "glue-key", f"expected KEY or KEY:FORMAT, got {pasted[1]!r}"
        elif (key := pasted[1].partition(":")[0]) not in glued and not page.computes("glue"):
            yield line, "glue-missing", f"no cell computes {key!r}"
    quotable = _quotable(root) if any(page.prose(_QUOTED)) else {}
    for line, asked in page.prose(_QUOTED):
        if message := _unanswered(asked[1], quotable):
            yield line, "measured", message
    for line, role in page.prose(_ROLE):
        cites = role[1].startswith("cite")
        for wanted in re.split(r"\s*,\s*", role[2].strip()) if cites else [role[2]]:
            if wanted not in (works if cites else labels):
                yield line, "reference", f"{{{role[1]}}}: no page or bibliography has {wanted!r}"
    if page.chapter.source not in project.sources(root):
        yield 0, "source", f"front matter: source: {page.chapter.source!r} is no source of references.bib"


def _about_code(root: Path, page: _Page) -> _Broken:
    """Cells are short, and a figure says what readers need to know of it."""
    for cell in page.cells:
        lines = cell.source.splitlines()
        if cell.kind == "code" and len(lines) > LONGEST_CELL and not lines[0].startswith("figures.publish"):
            yield cell.line, "long-cell", f"{len(lines)} lines; expected at most {LONGEST_CELL}"
    entries, name = compared.read(root), page.chapter.chapter
    spoken = {role[2] for _, role in page.prose(_ROLE)}
    for call in page.calls("publish"):
        id, line = call.id, call.line
        if not id.startswith(f"{name}-"):
            yield line, "figure-id", f"{id}: expected an id that begins with {name!r}-"
        if id not in spoken:
            yield line, "figure-unspoken", f"{id}: no {{numref}} of this page speaks of it"
        alt = _constant(call.named.get("alt"))
        if alt is not None and len(" ".join(alt.split())) < figures.SHORTEST_ALT:
            yield line, "alt", f"{id}: alt: expected at least {figures.SHORTEST_ALT} characters, got {len(alt)}"
        source = _constant(call.named.get("source"))
        if source is not None and source.strip() != compared.OWN and id not in entries:
            yield line, "compared", f"{id}: no entry in {compared.NAME}, but its source is {source!r}"


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


def _about_cells(page: _Page, declared: Mapping[str, claims.Claim]) -> _Broken:
    """Readers find every claim: by the line under its cell, or by the mark of a removed cell at a sentence.

    In an audit a cell stands for one claim, or for the parts of one.
    """
    marks: dict[str, int] = {}
    for line, mark in page.prose(_CHECKED):
        if mark[1] in marks:
            message = f"{mark[1]}: one mark, expected at the sentence that says the claim; got a second"
            yield line, "checked", message
        marks[mark[1]] = line
    removed = {call.id for cell in page.cells if "remove-cell" in cell.tags for call in cell.measured}
    for id in sorted(marks.keys() - removed):
        yield marks[id], "checked", f"{id}: expected a cell of this page, with the tag remove-cell, that measures it"
    for cell in page.cells:
        hiding = _HIDING & set(cell.tags)
        for call in cell.measured if hiding else []:
            if not (call.id in removed and call.id in marks):
                wanted = "expected a cell that is seen, or the tag remove-cell and {checked} with this id in the text"
                yield call.line, "claim-hidden", f"{call.id}: {wanted}; got the tag {min(hiding)}"
        ids = {call.id for call in cell.measured}
        if page.chapter.is_audit and len(ids) > 1 and not any(ids <= set(claim.parts) for claim in declared.values()):
            message = f"one cell measures {', '.join(sorted(ids))}; give each claim a cell of its own"
            yield cell.measured[1].line, "one-cell-one-claim", message
    if page.chapter.is_audit and page.computes("measure"):
        yield 0, "one-cell-one-claim", "claims.measure: expected ids that are written out, each in a cell of its own"


def _about_size(page: _Page) -> _Broken:
    """A lesson that has an audit is short: what it need not say, the audit says."""
    code = sum(cell.kind == "code" for cell in page.cells)
    for count, most, what in (
        (page.chapter.words, MOST_WORDS, "words of prose outside of folds"),
        (len(page.calls("publish")), MOST_FIGURES, "figures"),
        (code, MOST_CELLS, "cells of code"),
    ):
        if count > most:
            yield 0, "lesson-size", f"{count} {what}; a lesson has at most {most}"


def _about_pair(path: Path, declared: Mapping[str, claims.Claim], pages: Sequence[_Page]) -> Iterator[Finding]:
    """What concerns the pages of a chapter together: ids are unique, and every claim is measured once.

    ``path`` is that of the claims, of which those that are ``declared`` break no rule.
    """
    lines = declaration.lines(path) if path.is_file() else {}
    places: dict[tuple[str, str], str] = {}
    for page in pages:
        listed = [("figure", "repeated-figure", call.id, call.line) for call in page.calls("publish")]
        listed += [("claim", "measured-twice", call.id, call.line) for call in page.calls("measure")]
        listed += [
            ("label", "repeated-label", match[match.lastindex or 0], line)
            for line, match in page.prose(notebooks.LABEL)
        ]
        for kind, rule, id, line in listed:
            if (kind, id) in places:
                yield Finding(page.file, line, rule, f"{id}: {kind} of {places[kind, id]} too")
            places.setdefault((kind, id), f"{page.file}:{line}")
        written = dict(rivals.written_down(page.chapter.code))
        for call in page.calls("measure"):
            claim = declared.get(call.id)
            if claim is None and call.id not in lines:
                yield Finding(page.file, call.line, "undeclared-claim", f"{call.id}: not declared in {path.name}")
            for rule, message in _about_call(call, claim, written) if claim else ():
                yield Finding(page.file, call.line, rule, f"{call.id}: {message}")
    measured = {call.id for page in pages for call in page.calls("measure")}
    if pages and not any(page.computes("measure") for page in pages):
        for id, claim in declared.items():
            if claim.is_measured and id not in measured:
                message = f"{id}: no page of the chapter measures it"
                yield Finding(path.name, lines.get(id, 0), "unmeasured-claim", message)
    published = {call.id for page in pages for call in page.calls("publish")}
    for page in pages:
        shown = page.chapter.thumbnail
        if not page.chapter.is_audit and shown not in published and not any(one.computes("publish") for one in pages):
            yield Finding(page.file, 0, "thumbnail", f"front matter: thumbnail: no page publishes {shown!r}")


def _about_call(call: _Call, claim: claims.Claim, written: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What is wrong with the measurement of a declared claim; ``written`` are the rivals that are no measurements."""
    if not claim.is_measured:
        yield "not-measured", f"declared {'retired' if claim.retired else claim.verdict}, but measured"
    elif claim.rival and _needs_rival(claim) and "rival" not in call.named:
        yield "rival-unmeasured", f"expected rival=, {claim.rival!r}"
    elif claim.control and not {"rival", "control"} & set(call.named):
        yield "control-unmeasured", f"expected control=, {claim.control!r}"
    elif call.id in written:
        yield "rival-literal", f"rival: expected what the same code gives, got {written[call.id]}"


def _needs_rival(claim: claims.Claim) -> bool:
    """A printed number is its own rival; every other one has to be measured."""
    return claim.verdict != "corrected" or claim.published is None


def _constant(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _figure_ids(root: Path) -> set[str]:
    """Ids of figures of all pages, where they are written out."""
    pattern = re.compile(r"[\"']([a-z0-9-]+)[\"'],\s*(?:data|caption|alt|source|frames)=")
    return {id for path in notebooks.prose(root) for id in pattern.findall(manuscript.text(path))}
