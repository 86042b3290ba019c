"""Reads the pages of the book: text notebooks, with their front matter and their cells.

A chapter NAME has one or two pages: its lesson, ``notebooks/NAME.md``, and its audit, ``notebooks/audits/NAME.md``. A
page is called by its path below ``notebooks``: NAME, or audits/NAME.
"""

from __future__ import annotations

import ast
import copy
import functools
import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jupytext
import nbformat
import yaml
from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode

from companion import manuscript

AUDITS = "audits"
"""The folder of the audits, in ``notebooks`` and on the site."""
LABEL = re.compile(r"^\$\$[^\n]*\(([^\s()]+)\)\s*$|^\(([^\s()]+)\)=\s*$|^:(?:label|name):\s*(\S+)\s*$", re.MULTILINE)
"""What roles can refer to: an equation, a section or a table."""
_WORDS_A_MINUTE = 200
_FORMULA = re.compile(r"\$\$.*?\$\$", re.DOTALL)
_PLACE = re.compile(r"(?!.*\.\.)[\w.-]+(?:/[\w.-]+)*", re.ASCII)
"""A file of the repository, without its suffix perhaps; what begins with / or leads upwards does not match."""
_CHAPTER = ("prerequisites", "source", "summary")
"""What the front matter of a lesson says of its chapter; an audit need not say it again."""
_FRONT_MATTER: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "budget": ((int, float), "seconds"),
    "prerequisites": (str, "words"),
    "quick": (dict, "parameters by name"),
    "source": (str, "a key of references.bib"),
    "summary": (str, "words"),
}
"""What the section ``companion`` of a front matter must have; it may have ``data``, files, and ``limit``, seconds."""


@dataclass(frozen=True)
class Chapter:
    """One page of a chapter: its notebook without outputs, and what its front matter says."""

    name: str
    title: str
    summary: str
    source: str
    prerequisites: str
    budget: float
    data: tuple[str, ...]
    quick: Mapping[str, Any]
    parameters: Mapping[str, Any]
    notebook: NotebookNode
    limit: float = 0.0
    """Seconds after which a run is stopped; 0 for a multiple of the budget."""

    @property
    def chapter(self) -> str:
        """The chapter that the page belongs to."""
        return chapter_of(self.name)

    @property
    def is_audit(self) -> bool:
        """Whether the page is the audit of its chapter."""
        return self.name != self.chapter

    @property
    def minutes(self) -> int:
        """How long a fresh reader needs, up to the next five: the words, and a minute for what is worked through.

        That is a displayed formula, a figure, or two cells of code that are seen. No word in a fold or a box counts.
        """
        text = "\n".join(cell.source for cell in self.notebook.cells if cell.cell_type == "markdown")
        told = re.sub(r"^(`{3,}).*?^\1[ \t]*$", " ", text, flags=re.DOTALL | re.MULTILINE)
        formulas = len(_FORMULA.findall(told))
        code = [cell for cell in self.notebook.cells if cell.cell_type == "code"]
        figures = sum("figure" in cell.metadata.get("mystnb", {}) for cell in code)
        tags = (" ".join(cell.metadata.get("tags", [])) for cell in code)
        seen = sum("hide" not in of_cell and "remove" not in of_cell for of_cell in tags)
        words = len(_FORMULA.sub(" ", told).split())
        return max(5, 5 * math.ceil((words / _WORDS_A_MINUTE + formulas + figures + seen / 2) / 5))

    @property
    def code(self) -> list[str]:
        """The code of all cells."""
        return [cell.source for cell in self.notebook.cells if cell.cell_type == "code"]


def chapter_of(page: str) -> str:
    """The chapter of a page: NAME for NAME and for audits/NAME."""
    return page.rpartition("/")[2]


def checks_file(root: Path, page: str) -> Path:
    """Where the checks of a page are, whether there are some or not."""
    return root / "book" / "checks" / f"{page.replace('-', '_')}.py"


def slug(page: str) -> str:
    """The name of a page as that of one file or folder."""
    return page.replace("/", "-")


def names(root: Path) -> list[str]:
    """Names of all pages of chapters, in the order of the table of contents: an audit follows its lesson.

    Raises ``ValueError`` if a page is missing from ``_toc.yml``, or one listed there does not exist, or an audit does
    not lie beneath its lesson.
    """
    listed = [(page, above) for page, above in _contents(root) if page.startswith("notebooks/")]
    found = [page.removeprefix("notebooks/") for page, _ in listed]
    present = _texts(root)
    if set(found) != present:
        raise ValueError(
            f"_toc.yml: chapters listed but absent {sorted(set(found) - present)}, present but not listed "
            f"{sorted(present - set(found))}"
        )
    if astray := [
        page
        for page, above in listed
        if page.startswith(f"notebooks/{AUDITS}/") and above != f"notebooks/{chapter_of(page)}"
    ]:
        raise ValueError(
            f"_toc.yml: audits that are not beneath their lesson: {astray}; expected `sections: [file: "
            "notebooks/audits/NAME]` at `file: notebooks/NAME`"
        )
    return found


def chapters(root: Path) -> list[str]:
    """Names of all chapters, in the order of the table of contents."""
    return [name for name in names(root) if chapter_of(name) == name]


def labels(root: Path) -> set[str]:
    """Labels of equations, sections and tables of all pages."""
    prose = [*manuscript.listed(root / "book", "*.md"), *manuscript.listed(root / "notebooks", "**/*.md")]
    return {match[match.lastindex or 0] for path in prose for match in LABEL.finditer(manuscript.text(path))}


def _texts(root: Path) -> set[str]:
    """Names of the pages whose text notebooks are there."""
    folder = root / "notebooks"
    return {path.relative_to(folder).with_suffix("").as_posix() for path in manuscript.listed(folder, "**/*.md")}


def pages(root: Path) -> list[str]:
    """Names of all pages of the site, without ``.html``, in the order of the table of contents."""
    return [_toc(root)["root"], *(page for page, _ in _contents(root))]


_PASTED = re.compile(r"""(\]\(|src=["'])attachment:""")
"""A picture that an editor has put into the notebook itself."""


def absent(root: Path) -> list[str]:
    """Files by hand that the table of contents lists and that are not there: the first page, and those in ``book``."""
    written = [f"book/{_toc(root)['root']}", *(page for page, _ in _contents(root) if page.startswith("book/"))]
    return [f"{page}.md" for page in written if not (root / f"{page}.md").is_file()]


def _toc(root: Path) -> dict[str, Any]:
    path = root / "_toc.yml"
    toc = manuscript.mapping(path, "root and parts")
    if "root" not in toc:
        raise manuscript.Unreadable(path, 0, "root: expected the first page, a file in book, got nothing")
    return toc


def _contents(root: Path) -> Iterator[tuple[str, str]]:
    """Every page in the table of contents and the page above it, "" for none.

    Raises ``ValueError`` if it has another form.
    """

    def below(holder: Mapping[str, Any], name: str, above: str) -> Iterator[tuple[str, str]]:
        items = holder.get(name, [])
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise manuscript.Unreadable(path, 0, f"expected {name}, a list of mappings, in {str(holder)[:80]}")
        for item in items:
            if page := str(item.get("file", "")):
                yield page, above
            yield from below(item, "chapters", page)
            yield from below(item, "sections", page)

    path = root / "_toc.yml"
    yield from below(_toc(root), "parts", "")


def load(root: Path, name: str) -> Chapter:
    """Read ``notebooks/NAME.md``.

    Raises ``ValueError`` naming the file and what its front matter or its parameters cell lacks.
    """
    path = root / "notebooks" / f"{name}.md"
    if not path.is_file():
        raise ValueError(f"chapter {name!r}: no such chapter; expected one of {sorted(_texts(root))}")
    shown = f"{name}.md"
    text = manuscript.text(path)
    if pasted := _PASTED.search(text):
        expected = "expected pictures as files beside the page; a text notebook keeps none that is pasted into a cell"
        raise manuscript.Unreadable(path, text.count("\n", 0, pasted.start()) + 1, expected)
    try:
        notebook = copy.deepcopy(_read(text))
        facts = dict(notebook.metadata.get("companion", {}))
    except SyntaxError as error:
        raise ValueError(f"{shown}: expected cells in Python: {error.msg} in {(error.text or '').strip()!r}") from error
    except yaml.MarkedYAMLError as error:
        # jupytext hands the YAML on without the first line, which is ---.
        line = error.problem_mark.line + 2 if error.problem_mark else 0
        raise manuscript.Unreadable(path, line, f"front matter: expected YAML, got {error.problem}") from error
    except (yaml.YAMLError, TypeError, ValueError) as error:
        raise ValueError(f"{shown}: front matter: expected YAML with companion, a mapping: {error}") from error
    if chapter_of(name) != name:
        lesson = load(root, chapter_of(name))
        facts = {fact: getattr(lesson, fact) for fact in _CHAPTER} | facts
    if wrong := list(_problems(facts)):
        raise ValueError(f"{shown}: front matter, companion: {'; '.join(wrong)}")
    parameters = _parameters(shown, notebook)
    if strangers := set(facts["quick"]) - set(parameters):
        raise ValueError(f"{shown}: quick profile: {sorted(strangers)} are not in the parameters cell")
    return Chapter(
        name=name,
        title=_title(shown, notebook),
        parameters=parameters,
        notebook=_finish(name, notebook),
        **facts | {"budget": float(facts["budget"]), "data": tuple(facts.get("data", ()))},
    )


def _problems(facts: Mapping[str, Any]) -> Iterator[str]:
    known = [*_FRONT_MATTER, "data", "limit"]
    if strange := sorted(map(str, facts.keys() - set(known))):
        yield f"expected some of {known}, got {strange}"
    for name, (kind, words) in _FRONT_MATTER.items():
        if not isinstance(facts.get(name), kind):
            yield f"{name}: expected {words}, got {facts.get(name, 'nothing')!r}"
    data = facts.get("data", [])
    if not isinstance(data, list) or not all(isinstance(file, str) and _PLACE.fullmatch(file) for file in data):
        yield f"data: expected a list of files of the repository, got {data!r}"
    for name in ("budget", "limit"):
        if not isinstance(seconds := facts.get(name, 1), (int, float)) or not 0 < seconds < math.inf:
            yield f"{name}: expected seconds, a number above 0, got {seconds!r}"


@functools.lru_cache(maxsize=64)
def _read(text: str) -> NotebookNode:
    """One check of the book asks for a page thirty times; the next one finds what was read for the last."""
    notebook = jupytext.reads(text, fmt="md:myst")
    for cell in notebook.cells:
        if cell.cell_type == "code":
            ast.parse(python(cell.source))
    return notebook


def python(source: str) -> str:
    """The Python that IPython makes of a cell, which may not be valid; most cells are valid as they are."""
    try:
        ast.parse(source)
    except (SyntaxError, ValueError):
        return TransformerManager().transform_cell(source)
    return source


def _title(shown: str, notebook: NotebookNode) -> str:
    for cell in notebook.cells:
        for line in cell.source.splitlines() if cell.cell_type == "markdown" else ():
            if line.startswith("# "):
                return str(line[2:].strip())
    raise ValueError(f"{shown}: expected a title, a line that begins with '# '")


def _parameters(shown: str, notebook: NotebookNode) -> dict[str, Any]:
    """The assignments of the cell tagged ``parameters``; each value is a literal."""
    cells = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    if len(cells) != 1:
        raise ValueError(f"{shown}: expected one cell tagged parameters, got {len(cells)}")
    values: dict[str, Any] = {}
    for statement in ast.parse(cells[0].source).body:
        try:
            target: Any = statement.target if isinstance(statement, ast.AnnAssign) else statement.targets[0]
            value = ast.literal_eval(statement.value)
            several = isinstance(target, ast.Tuple)
            names, given = (target.elts, value) if several else ([target], [value])
            values |= {name.id: one for name, one in zip(names, given, strict=True)}
        except (AttributeError, ValueError) as error:
            wanted = "NAME = VALUE, a number, a text or a list of these"
            raise ValueError(f"{shown}: parameters cell: expected {wanted}, got {ast.unparse(statement)!r}") from error
    return values


def _finish(name: str, notebook: NotebookNode) -> NotebookNode:
    """The notebook as it is run: fixed metadata, and cell ids that follow from the content."""
    cells = notebook.cells
    seen: dict[str, int] = {}
    for cell in cells:
        content = f"{name}\n{cell.cell_type}\n{cell.source}"
        occurrence = seen[content] = seen.get(content, -1) + 1
        cell.id = hashlib.sha256(f"{content}\n{occurrence}".encode()).hexdigest()[:12]
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    result = nbformat.v4.new_notebook(cells=cells)
    result.nbformat, result.nbformat_minor = 4, 5
    result.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    return result


def serialise(notebook: NotebookNode) -> str:
    """The text of an .ipynb: the same bytes for the same cells."""
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
