"""Packs a page as one notebook that runs alone, with the modules that it imports, their data and the claims.

In it references, formulas and numbers are plain Markdown, and the outputs are those of the build. Links to other pages
become the titles of these pages, because nobody vouches for the address of a site that is not published yet.

Sphinx alone knows the numbers of figures and equations; ``setup`` notes them when the site is made.
"""

from __future__ import annotations

import base64
import copy
import io
import json
import lzma
import posixpath
import re
import string
import tarfile
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import nbformat
from docutils import nodes
from nbformat import NotebookNode
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from PIL import Image
from sphinx.application import Sphinx

from companion import claims, project
from companion.declaring import notebooks
from companion.running import disk, execution, freshness, workers
from companion.site import catalogue, numbering, report

HEAVIEST = 2_000_000
"""Most bytes that a notebook carries, in base64."""
LIBRARY = "library.tar.xz"
"""What the carried part is called where it is named."""
REFERENCES = "references.json"
"""What Sphinx noted of the names and numbers of references, beside the pages."""
_RUNNERS = {"ipykernel", "packaging", "psutil"}
"""What is loaded wherever a kernel runs, and not asked for."""
_DOTS_PER_INCH = 130
"""Of pictures in a packed notebook; the site has drawings, and 200 dots where it has none."""
_COLOURS = 32
_ROLE = re.compile(r"\{([\w:-]+)\}`([^`]+)`")
_NAMED = re.compile(r"(.+?)\s*<([^<>]+)>", re.DOTALL)
_EQUATION = re.compile(r"\n?\$\$ *\(([^()\s]+)\) *$", re.MULTILINE)
_LABEL = re.compile(r"^\([\w:.-]+\)=\n", re.MULTILINE)
_FOLD = re.compile(r"^(`{3,})\{dropdown\} *([^\n]*)\n(?::[\w-]+:[^\n]*\n)*(.*?)^\1$", re.MULTILINE | re.DOTALL)
_PLACED = re.compile(r"^```\{published-figure\}[^\n]*\n```\n?", re.MULTILINE)
_MADE = re.compile(r"^```\{(audit-report|source-items)\}[^\n]*\n```$", re.MULTILINE)
_SHOWN_BY = {"audit-report": 'class="book-report"', "source-items": "book-items"}
"""What tells the HTML of a directive from that of others."""


def write(root: Path, name: str, target: Path) -> Path:
    """Write the packed notebook of a page to ``target``, from the last run of the page and the site made from it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    disk.write(target, notebooks.serialise(notebook(root, name)))
    return target


def site(root: Path, html: Path, names: Iterable[str], each: workers.Each = workers.alone) -> list[str]:
    """Put the packed notebooks where the pages in ``html`` offer their notebook, and keep what Sphinx noted of them.

    Returns why a page could not be packed; it then offers the notebook without outputs.
    """
    disk.write(root / "_build" / REFERENCES, (html.parent / REFERENCES).read_text(encoding="utf-8"))
    return [problem for problem in each(partial(_written, root, html), list(names)) if problem]


def _written(root: Path, html: Path, name: str) -> str:
    """Write the packed notebook of a page of the site; returns why it could not be packed, or ""."""
    try:
        write(root, name, html / "_sources" / "notebooks" / f"{name}.ipynb")
    except ValueError as error:
        return str(error)
    return ""


def notebook(root: Path, name: str) -> NotebookNode:
    """The packed notebook of a page.

    Raises ``ValueError`` if the page has no finished run of its code, if no site was made, or if what the notebook
    carries is too heavy.
    """
    chapter, results = notebooks.load(root, name), execution.results_folder(root, name)
    noted = root / "_build" / REFERENCES
    if not execution.notebook_file(results, name).is_file():
        raise ValueError(f"{name}: expected a finished run of the page, got none; `companion chapter` makes one")
    if not noted.is_file():
        raise ValueError(f"{name}: expected a site, whose numbers of figures are needed, got none; make book makes it")
    known = json.loads(noted.read_text(encoding="utf-8"))
    executed = nbformat.read(execution.notebook_file(results, name), as_version=4)
    ran = [cell for cell in executed.cells if cell.cell_type == "code"]
    page, cells = copy.deepcopy(chapter.notebook), list[NotebookNode]()
    # The first cell is not the one of the run.
    if [cell.source for cell in ran][1:] != [cell.source for cell in page.cells if cell.cell_type == "code"][1:]:
        raise ValueError(f"{name}: expected a run of the code that the page has, got one of other code")
    glued = _glued(ran)
    measured = dict(claims.recorded(results))
    declared = {one.id: one for one in claims.declared(root / "book" / "claims" / f"{chapter.chapter}.yml")}
    for cell in page.cells:
        cells.append(cell)
        if cell.cell_type == "markdown":
            cell.source = markdown(root, name, cell.source, known, glued)
            continue
        before = ran.pop(0)
        cell.outputs, cell.execution_count = [], before.execution_count
        if {"remove-input", "remove-cell", "hide-input"} & set(cell.metadata.get("tags", [])):
            cell.metadata["jupyter"] = {"source_hidden": True}
        for output in before.outputs:
            facts = output.get("metadata", {}).get("companion", {})
            if id := facts.get("figure"):
                cell.outputs.append(_lighter(output))
                caption = json.loads((results / "figures" / id / "figure.json").read_text(encoding="utf-8"))["caption"]
                text = f"**{known['numref'].get(id, id)}.** {markdown(root, name, caption, known, glued)}"
                cells.append(prose(f"{id}-caption", text))
                continue
            if (id := facts.get("claim")) in measured:
                output["data"] = {"text/plain": claims.line(id, declared.get(id), measured[id], "")[1]}
            elif all(kind.startswith("application/papermill.record/") for kind in output.get("data", {"none": 0})):
                continue
            cell.outputs.append(output)
    install = cells[0]
    install.source, install.outputs = _install_cell(root, chapter), []
    cells.insert(0, prose("packed", _head(root, chapter)))
    page.cells = cells
    nbformat.validate(page)
    return page


def prose(id: str, text: str) -> NotebookNode:
    """A cell of words; nbformat draws its id at random, but the site is to be the same from build to build."""
    cell = nbformat.v4.new_markdown_cell(text)
    cell["id"] = re.sub(r"[^a-zA-Z0-9-]", "-", id)[:64]
    return cell


def _head(root: Path, chapter: notebooks.Chapter) -> str:
    who, state = project.identity(root), freshness.state(root)
    return (
        f"*A page of {who.title}, version {who.version}, commit {state.commit[:12]}, that runs alone: on Colab or in a "
        "Jupyter of your own, upload this file and run all cells. The outputs are those of the book until you do.*"
    )


def _glued(ran: Sequence[NotebookNode]) -> dict[str, str]:
    """What the cells stored for the prose."""
    found = {}
    for cell in ran:
        for output in cell.outputs:
            if key := output.get("metadata", {}).get("scrapbook", {}).get("name"):
                found[key] = next(iter(output.data.values()))
    return found


def _lighter(output: NotebookNode) -> NotebookNode:
    """A picture with fewer dots and colours: enough to read the notebook before it draws its own."""
    with Image.open(io.BytesIO(base64.b64decode(output.data["image/png"]))) as picture:
        share = _DOTS_PER_INCH / (picture.info.get("dpi") or (200, 200))[0]
        small = picture.convert("RGB")
        if share < 1:
            width, height = small.size
            small = small.resize((round(width * share), round(height * share)), Image.Resampling.LANCZOS)
    # The colours are those of every third dot: a quarter of the time, and as near to the picture.
    sample = small.resize((small.width // 3 or 1, small.height // 3 or 1), Image.Resampling.NEAREST)
    colours = sample.quantize(_COLOURS, method=Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE)
    stream = io.BytesIO()
    small.quantize(palette=colours, dither=Image.Dither.NONE).save(stream, "PNG", optimize=True)
    output["data"] = {**output.data, "image/png": base64.b64encode(stream.getvalue()).decode("ascii")}
    return output


def markdown(root: Path, name: str, text: str, known: Mapping[str, Any], glued: Mapping[str, str]) -> str:
    """The text of a page without what only Sphinx reads: roles as their words, folds as HTML, equations with numbers.

    Raises ``ValueError`` if the text has a role or a directive that is not known here, or asks for a number that no
    cell stored.
    """
    # A figure is seen below the cell that draws it.
    text = _PLACED.sub("", text)
    text = _MADE.sub(lambda found: _bare(known["made"].get(f"notebooks/{name}", {}).get(found[1], "")), text)
    text = _FOLD.sub(lambda found: f"<details><summary>{found[2]}</summary>\n\n{found[3]}\n</details>", text)
    text = _EQUATION.sub(lambda found: f" \\tag{{{known['eq'].get(found[1], found[1])}}}\n$$", _LABEL.sub("", text))
    if strange := re.search(r"^(?:`{3,}|:{3,})\{[\w-]+\}", text, re.MULTILINE):
        raise ValueError(f"{name}: packed: expected directives of {sorted([*_SHOWN_BY, 'dropdown'])}, got {strange[0]}")
    works = project.references(root)

    def word(found: re.Match[str]) -> str:
        role, given = found[1], found[2]
        named = _NAMED.fullmatch(given)
        words, target = (named[1], named[2]) if named else ("", given)
        if role == "glue:text":
            return _number(name, glued, given)
        if role == "checked":
            # The cell is in the notebook, and prints the claim.
            return ""
        if role == "measured":
            return report.quoted(given, catalogue.by_id(catalogue.built(root, "claims.json")))[0]
        if role in ("cite:p", "cite:t"):
            cited = [_cited(root, works, key.strip(), textual=role == "cite:t") for key in given.split(",")]
            return f"({'; '.join(cited)})" if role == "cite:p" else ", ".join(cited)
        if role == "eq":
            return f"({known['eq'].get(target, target)})"
        if role == "numref":
            number = known["numref"].get(target, target)
            return words.replace("%s", number.split()[-1]).replace("{number}", number.split()[-1]) or number
        if role == "doc":
            # A link leads from the folder of its page, or from the root.
            place = posixpath.normpath(posixpath.join(f"/notebooks/{name}/..", target)).strip("/")
            return words or f"*{known['doc'].get(place, place)}*"
        if role == "ref":
            return words or f"*{known['ref'].get(target, target)}*"
        if role == "term":
            return words or target
        if role in ("siteurl", "py:func", "py:class", "py:mod"):
            return f"`{target.lstrip('~')}`"
        raise ValueError(f"{name}: packed: expected a role that can be read without Sphinx, got {found[0]}")

    return _ROLE.sub(word, text)


def _number(name: str, glued: Mapping[str, str], given: str) -> str:
    key, _, form = given.partition(":")
    if key not in glued:
        raise ValueError(f"{name}: packed: expected a cell that stores {key!r}, got {sorted(glued)}")
    text = glued[key]
    if not form:
        return text
    return format(float(text) if re.search(r"[.enai]", text) else int(text), form)


def _cited(root: Path, works: Mapping[str, Mapping[str, str]], key: str, *, textual: bool) -> str:
    """A work as prose names it, with its address where it has one."""
    if key not in works:
        return key
    work = works[key]
    words = project.names_and_year(work)
    if not textual:
        words = re.sub(r" \((.*)\)$", r" \1", words)
    address = catalogue.address(work)
    return f"[{words}]({address})" if address else words


def _bare(markup: str) -> str:
    """HTML without links and looks, which belong to the site."""
    markup = re.sub(r"</?(?:a|span|div)\b[^>]*>", "", markup)
    return re.sub(r"<(\w+)\b[^>]*>", r"<\1>", markup).replace("\n", " ")


def _install_cell(root: Path, chapter: notebooks.Chapter) -> str:
    who = project.identity(root)
    text = base64.b64encode(carried(root, chapter)).decode("ascii")
    if len(text) > HEAVIEST:
        raise ValueError(
            f"{chapter.name}: {LIBRARY}: expected at most {HEAVIEST / 1e6:g} MB, got {len(text) / 1e6:.1f} MB"
        )
    lines = "\n".join(text[start : start + 1000] for start in range(0, len(text), 1000))
    required = json.dumps(requirements(root, chapter))
    cell = string.Template(Path(__file__).with_name("packed_cell.txt").read_text(encoding="utf-8").strip())
    return cell.substitute(library=who.library, version=who.version, required=required, carried=lines)


def requirements(root: Path, chapter: notebooks.Chapter) -> list[str]:
    """What the run of the page had loaded of other projects, as ``pyproject.toml`` asks for it; [] without the file."""
    if not (root / "pyproject.toml").is_file():
        return []
    record = execution.read_record(execution.results_folder(root, chapter.name))
    loaded = set(map(canonicalize_name, record.packages)) if record else set()
    asked: list[str] = []
    for folder in project.code(root):
        facts = tomllib.loads((folder.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        asked += sum(facts.get("optional-dependencies", {}).values(), facts.get("dependencies", []))
    return sorted({str(line) for line in map(Requirement, asked) if canonicalize_name(line.name) in loaded - _RUNNERS})


def carried(root: Path, chapter: notebooks.Chapter) -> bytes:
    """The modules of the book that the page imports, what lies beside those of the library, and the claims of the page.

    They are packed as they lie in an environment where they are installed, in the same bytes every time.
    """
    who, own = project.identity(root), freshness.own_packages(root)
    book = [root / "book" / "references.bib", root / "book" / "claims" / f"{chapter.chapter}.yml"]
    contents = {}
    for path in [*freshness.covered_files(root, chapter), *(path for path in book if path.is_file())]:
        package = next((name for name, folder in own.items() if path.is_relative_to(folder)), None)
        if package is None:
            contents[f"{who.library}/_book/{path.relative_to(root).as_posix()}"] = path.read_bytes()
        else:
            contents[path.relative_to(own[package].parent).as_posix()] = path.read_bytes()
    record = f"{who.library}-{who.version}.dist-info"
    contents[f"{record}/METADATA"] = f"Metadata-Version: 2.1\nName: {who.library}\nVersion: {who.version}\n".encode()
    contents[f"{record}/entry_points.txt"] = f"[{project.BOOKS}]\n{who.library} = {who.library}\n".encode()
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in sorted(contents.items()):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return lzma.compress(stream.getvalue(), preset=9 | lzma.PRESET_EXTREME)


def note(app: Sphinx, exception: Exception | None) -> None:
    """Write down what references are called, beside the pages."""
    if exception is not None or app.env is None or app.builder.name != "html":
        return
    env = app.env
    labels, numbers = env.get_domain("std").labels, numbering.counted(env)  # type: ignore[attr-defined]
    called = app.config.numfig_format["figure"]
    noted = {
        "doc": {page: title.astext() for page, title in env.titles.items()},
        "ref": {label: str(place[2]) for label, place in labels.items()},
        "numref": {label: called % number for label, number in numbers["figure"].items()},
        "eq": numbers["equation"],
        "made": {
            page: _made(env.get_doctree(page), numbers) for page in env.found_docs if page.startswith("notebooks/")
        },
    }
    disk.write(Path(app.outdir).parent / REFERENCES, json.dumps(noted, ensure_ascii=False, indent=1))


def _made(page: nodes.document, numbers: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """The HTML that directives of a page made from records, by directive."""
    raw = [numbering.filled(node.astext(), numbers) for node in page.findall(nodes.raw)]
    return {directive: text for directive, mark in _SHOWN_BY.items() for text in raw if mark in text}
