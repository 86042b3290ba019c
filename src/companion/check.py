"""Checks the rules of claims and pages on their text alone, and reports all breaches at once, with file and line.

What only a run can show (a claim that misses its bound) and what Sphinx shows (a broken reference) is found later.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from companion import claims, manuscript, pages, project
from companion.manuscript import Finding

MOST_CELLS, MOST_LINES, LONGEST_CELL, LEAST_VISIBLE = 20, 150, 14, 0.85
"""What a lesson may have: cells of code, lines of code, lines of a cell, and the share of lines that is seen."""
LONGEST_CLAIM, LONGEST_FORMULA = 8, 12
"""Most lines of a cell of an audit that measures a claim, and of one that defines what it needs."""
LONGEST_CAPTION, SHORTEST_ALT = 45, 60
"""Most words of a caption; fewest characters of an alternative text that can say what is seen."""
TAGS = {"parameters", "hide-cell"}
MEASURED = ("measured", "rival", "control")
"""What a claim computes; its uncertainty may be a number of its own."""
OWN_PACKAGES = ("companion", "chapters", "experiments")
"""What a lesson may not import, because a reader who runs it elsewhere does not have it."""

_EVAL = re.compile(r"\{eval\}`[^`]*`")
_MARK = re.compile(r"\{checked\}`([^`]*)`")
_QUOTE = re.compile(r"\{measured\}`([^`]*)`")
_Broken = Iterator[tuple[int, str, str]]
"""Line, rule and message of everything that is wrong with a page."""


@dataclass(frozen=True)
class Page:
    """A page with the line of each cell in its file."""

    chapter: pages.Chapter
    file: str
    lines: Sequence[int]

    def cells(self, kind: str) -> Iterator[tuple[int, pages.NotebookNode]]:
        """The cells of a kind, ``code`` or ``markdown``, each with its line."""
        for line, cell in zip(self.lines, self.chapter.notebook.cells, strict=True):
            if cell.cell_type == kind:
                yield line, cell


def book(root: Path, *, only: str | None = None) -> list[Finding]:
    """What is wrong with all declarations, and with the pages of all chapters or of ``only`` one.

    Raises ``ValueError`` if ``only`` is no chapter.
    """
    if findings := unreadable(root):
        return findings
    if only not in (None, *(known := pages.chapters(root))):
        raise ValueError(f"NAME: expected one of {known}, got {only!r}")
    findings = declarations(root)
    for name in known if only is None else [only]:
        findings += chapter(root, name)
    return sorted(set(findings))


def unreadable(root: Path) -> list[Finding]:
    """The files of the book that cannot be read."""
    readers: list[tuple[str, Callable[[], object]]] = [
        ("_config.yml", lambda: project.identity(root)),
        ("_toc.yml", lambda: pages.names(root)),
        ("book/references.bib", lambda: project.references(root)),
    ]
    findings = [
        Finding(file, 0, "unreadable", "expected a page, because _toc.yml lists it, got nothing")
        for file in pages.absent(root)
    ]
    for name, read in readers:
        try:
            read()
        except ValueError as error:
            line, reason = getattr(error, "line", 0), getattr(error, "reason", str(error).removeprefix(f"{name}: "))
            findings.append(Finding(getattr(error, "file", name), line, "unreadable", reason))
    return sorted(set(findings))


def declarations(root: Path) -> list[Finding]:
    """What is wrong with the claims of all chapters: their fields, and the works, functions and labels they name."""
    labels = pages.labels(root)

    def broken_names(claim: claims.Claim) -> Iterator[tuple[list[str], str]]:
        yield from ((["equation"], f"no page has {label}") for label in claim.equation if label not in labels)
        yield from ((["functions"], f"src has no {name}") for name in claim.functions if not _is_there(root, name))

    return claims.check_book(root, project.references(root), broken_names)


def _is_there(root: Path, name: str) -> bool:
    """Whether ``package.module.name``, or a method of a class of that name, stands in a file of ``src``."""
    parts = name.split(".")
    for place in range(len(parts) - 1, 0, -1):
        module = (root / "src").joinpath(*parts[:place])
        for path in (module.with_suffix(".py"), module / "__init__.py"):
            if path.is_file():
                defined = rf"\b(?:def|class|import|as|,) {parts[place]}\b|^\s*{parts[place]}\b"
                return re.search(defined, path.read_text("utf-8"), re.MULTILINE) is not None
    return False


def chapter(root: Path, name: str) -> list[Finding]:
    """What is wrong with the pages of one chapter and its checks."""
    findings: list[Finding] = []
    loaded = []
    for page_name in (page for page in pages.names(root) if pages.chapter_of(page) == name):
        try:
            loaded.append(_page(root, page_name))
        except ValueError as error:
            file, _, message = str(error).partition(": ")
            findings.append(Finding(f"notebooks/{file}", 0, "page", message or str(error)))
    declared = {claim.id: claim for path in claims.files(root) for claim in claims.check(path)[0]}
    for page in loaded:
        broken = [*_about_quotations(page, declared), *_about_figures(page)]
        broken += _audit_cells(page) if page.chapter.is_audit else _lesson_visible(page)
        findings += [Finding(page.file, line, rule, message) for line, rule, message in broken]
        if page.chapter.source not in project.sources(root):
            message = f"front matter: source: {page.chapter.source!r} is no source of references.bib"
            findings.append(Finding(page.file, 0, "source", message))
    return findings + list(_about_measurements(root, name, declared, loaded))


def _page(root: Path, name: str) -> Page:
    file = f"notebooks/{name}.md"
    loaded, text = pages.load(root, name), manuscript.text(root / file)
    lines, place = [], 0
    for cell in loaded.notebook.cells:
        at = max(text.find(cell.source, place), place)
        lines.append(text.count("\n", 0, at) + 1)
        place = at + len(cell.source)
    return Page(loaded, file, lines)


def _figure(cell: pages.NotebookNode) -> Mapping[str, str]:
    figure = cell.metadata.get("mystnb", {}).get("figure", {})
    return figure if isinstance(figure, dict) else {}


def _about_quotations(page: Page, declared: Mapping[str, claims.Claim]) -> _Broken:
    """Marks and quotations name claims, and a quotation a format of a number."""
    known = {id: claim for claim in declared.values() for id in (claim.id, *claim.was)}
    for line, cell in page.cells("markdown"):
        for mark in _MARK.finditer(cell.source):
            if mark[1] not in known:
                yield line, "checked", f"{mark[1]}: no such claim"
        for quote in _QUOTE.finditer(cell.source):
            match = claims.QUOTED.fullmatch(quote[1])
            claim = known.get(match["id"]) if match else None
            if match is None:
                yield line, "measured", f"expected ID, ID:FORMAT or ID rival:FORMAT, got {quote[1]!r}"
            elif claim is None or not claim.is_measured:
                yield line, "measured", f"{match['id']}: no claim of this name is measured"
            else:
                try:
                    format(1.0, match["format"] or "")
                except ValueError:
                    yield line, "measured", f"{claim.id}: {match['format']!r} is no format of a number"


def _about_figures(page: Page) -> _Broken:
    """A figure is named after its chapter, and has a caption and an alternative text."""
    chapter = page.chapter.chapter
    for line, cell in page.cells("code"):
        figure, image = _figure(cell), cell.metadata.get("mystnb", {}).get("image", {})
        if not figure:
            continue
        name, caption, alt = figure.get("name", ""), str(figure.get("caption", "")), str(image.get("alt", ""))
        if not re.fullmatch(rf"{chapter}(-[a-z0-9]+)+", str(name)):
            yield line, "figure-name", f"{name}: expected {chapter}-WORD in lower case, digits and hyphens"
        if not 0 < (words := len(_EVAL.sub("1", caption).split())) <= LONGEST_CAPTION:
            yield line, "caption", f"{name}: {words} words; expected at most {LONGEST_CAPTION}"
        if len(_EVAL.sub("0.00", alt)) < SHORTEST_ALT:
            yield line, "alt", f"{name}: expected at least {SHORTEST_ALT} characters that say what is seen, got {alt!r}"


def _lesson_visible(page: Page) -> _Broken:
    """A lesson is a short notebook whose code is seen, and that runs where nothing of the book is installed."""
    rule = "lesson-visible"
    code = list(page.cells("code"))
    lines = {line: cell.source.count("\n") + 1 for line, cell in code}
    seen = sum(lines[line] for line, cell in code if "hide-cell" not in cell.metadata.get("tags", []))
    total = sum(lines.values())
    if len(code) > MOST_CELLS:
        yield 0, rule, f"{len(code)} cells of code; a lesson has at most {MOST_CELLS}"
    if total > MOST_LINES:
        yield 0, rule, f"{total} lines of code; a lesson has at most {MOST_LINES}"
    if seen < LEAST_VISIBLE * total:
        yield 0, rule, f"{seen / total:.0%} of the code is visible; a lesson shows at least {LEAST_VISIBLE:.0%}"
    for line, cell in code:
        if lines[line] > LONGEST_CELL:
            yield line, rule, f"a cell of {lines[line]} lines; expected at most {LONGEST_CELL}"
        if strange := set(cell.metadata.get("tags", [])) - TAGS:
            yield line, rule, f"tags: expected some of {sorted(TAGS)}, got {sorted(strange)}"
        if own := re.search(rf"^\s*(?:from|import) ({'|'.join(OWN_PACKAGES)})\b", cell.source, re.MULTILINE):
            yield line, rule, f"imports {own[1]}; a lesson imports the field's libraries and the book's"


def _audit_cells(page: Page) -> _Broken:
    """Every cell of an audit is short and seen, and runs without the press."""
    for line, cell in page.cells("code"):
        most = LONGEST_CLAIM if "claim" in cell.metadata else LONGEST_FORMULA
        if (lines := cell.source.count("\n") + 1) > max(most, LONGEST_CELL if _figure(cell) else 0):
            yield line, "audit-cell", f"a cell of {lines} lines; expected at most {most}"
        if strange := set(cell.metadata.get("tags", [])) - TAGS:
            yield line, "audit-cell", f"tags: expected some of {sorted(TAGS)}, got {sorted(strange)}"
        if re.search(r"^\s*(?:from|import) companion\b", cell.source, re.MULTILINE):
            yield line, "audit-cell", "imports companion; a page runs in any Jupyter"
        if "claim" in cell.metadata and (name := _written_down(cell.source)):
            yield line, "audit-cell", f"{name}: expected what the cell computes, got a number that is written down"


def _written_down(source: str) -> str:
    """The entry of a claim's last line that is a number and nothing else, or ""."""
    try:
        last = ast.parse(source).body[-1]
    except (SyntaxError, IndexError):
        return ""
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Dict):
        for key, value in zip(last.value.keys, last.value.values, strict=True):
            number = value.operand if isinstance(value, ast.UnaryOp) else value
            if isinstance(key, ast.Constant) and key.value in MEASURED and isinstance(number, ast.Constant):
                return str(key.value)
    return ""


def _about_measurements(
    root: Path, name: str, declared: Mapping[str, claims.Claim], loaded: Sequence[Page]
) -> Iterator[Finding]:
    """Every claim of the chapter is measured once; what is measured is declared; names of figures are unique."""
    places: dict[tuple[str, str], str] = {}
    listed: list[tuple[str, str, str, int]] = []
    for page in loaded:
        for line, cell in page.cells("code"):
            named = {"claim": cell.metadata.get("claim"), "figure": _figure(cell).get("name")}
            listed += [(kind, str(id), page.file, line) for kind, id in named.items() if id]
    checks = pages.checks_file(root, name)
    own = {claim.check: claim.id for claim in declared.values() if claim.chapter == name}
    for function in manuscript.code(checks).body if checks.is_file() else []:
        if isinstance(function, ast.FunctionDef) and function.name in own:
            listed.append(("claim", own[function.name], checks.relative_to(root).as_posix(), function.lineno))
    for kind, id, file, line in listed:
        if (kind, id) in places:
            yield Finding(file, line, f"repeated-{kind}", f"{id}: {kind} of {places[kind, id]} too")
        places.setdefault((kind, id), f"{file}:{line}")
        if kind == "claim" and (id not in declared or not declared[id].is_measured):
            yield Finding(file, line, "undeclared-claim", f"{id}: no claim of this name is to be measured")
    for claim in declared.values():
        if claim.chapter == name and claim.is_measured and ("claim", claim.id) not in places:
            yield Finding(
                f"book/claims/{name}.yml", 0, "unmeasured-claim", f"{claim.id}: nothing of the chapter measures it"
            )
