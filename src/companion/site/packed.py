"""Packs a page: one notebook that runs alone, since it carries the modules that it imports and their data.

In it references, formulas and numbers are plain Markdown, and the outputs are those of the build. Links lead to the
public site. Sphinx alone knows the numbers of figures and equations; ``note`` keeps them.
"""

from __future__ import annotations

import base64
import io
import json
import lzma
import posixpath
import re
import string
import tarfile
import tomllib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nbformat
from docutils import nodes
from nbformat import NotebookNode
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from PIL import Image
from sphinx.application import Sphinx

from companion import claims, pages, project
from companion.claims.ledger import by_id, quoted
from companion.run import key, process
from companion.site import onpage

HEAVIEST, HEAVIEST_AUDIT = 100_000, 2_000_000
"""Most bytes that a notebook carries, in base64; and an audit, which may read the records of experiments."""
REFERENCES = "references.json"
"""What Sphinx noted of the names and numbers of references, beside the pages."""
_RUNNERS = {"ipykernel", "ipython", "packaging", "psutil"}
"""What is loaded wherever a kernel runs, and not asked for."""
_DOTS_PER_INCH, _COLOURS = 100, 32
"""Of pictures in a packed notebook."""
_WITHOUT = {"audit-report", "published-figure", "source-items"}
"""Directives that have nothing to say in a notebook, where a figure is seen below its cell."""
_BOXES = {"admonition", "caution", "hint", "important", "note", "seealso", "tip", "warning"}
_ROLE = re.compile(r"\{([\w:-]+)\}`([^`]+)`")
_CHECKED = re.compile(r"\s*\{checked\}`[^`]*`")
_RELATIVE = re.compile(r'(?<=href=")(?!\w+:)([^"#]*)')
_NAMED = re.compile(r"(.+?)\s*<([^<>]+)>", re.DOTALL)
_EQUATION = re.compile(r"\n?\$\$ *\(([^()\s]+)\) *$", re.MULTILINE)
_LABEL = re.compile(r"^\([\w:.-]+\)=\n", re.MULTILINE)
_DIRECTIVE = re.compile(
    r"^(?P<fence>`{3,}|:{3,})\{(?P<name>[\w-]+)\} *(?P<argument>[^\n]*)\n(?P<options>(?::[\w-]+:[^\n]*\n)*)"
    r"(?P<content>.*?)^(?P=fence)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)


def site(root: Path, html: Path, results: Mapping[str, Path], known: Mapping[str, Any]) -> list[str]:
    """Put the packed notebooks where the pages in ``html`` offer their notebook; returns why one could not be packed.

    Its page then offers the notebook without the library.
    """

    def pack(name: str) -> str:
        try:
            packed = notebook(root, name, results[name], known)
        except ValueError as error:
            return f"packed notebook: {error}"
        target = html / "_sources" / "notebooks" / f"{name}.ipynb"
        target.parent.mkdir(parents=True, exist_ok=True)
        process.write(target, pages.serialise(packed))
        return ""

    # Most of the time is for archives and pictures, at which several threads can be.
    with ThreadPoolExecutor(len(process.processors())) as threads:
        return [problem for problem in threads.map(pack, results) if problem]


def notebook(root: Path, name: str, results: Path, known: Mapping[str, Any]) -> NotebookNode:
    """The packed notebook of a page, from the folder of its run and the ``known`` numbers of references.

    Raises ``ValueError`` if the text has what cannot be read without Sphinx, or what is carried is too heavy.
    """
    chapter = pages.load(root, name)
    page, found = onpage.with_outputs(chapter, results)
    words = Words(root, name, known)
    captions = {record["id"]: record["caption"] for record in onpage.built(root, "figures.json")}
    measured, declared = dict(claims.recorded(results)), claims.of_book(root)
    who, commit = project.identity(root), key.state(root).commit[:12]
    head = (
        f"*A page of {who.title}, version {who.version}, commit {commit}, that runs alone: on Colab or in a Jupyter of "
        "your own, upload this file and run all cells. The outputs are those of the book until you do.*"
    )
    cells = [prose("packed", head), _first_cell(root, chapter, results)]
    for cell, outputs in found:
        cells.append(cell)
        if cell.cell_type == "markdown":
            cell.source = words.plain(cell.source)
        elif "hide-cell" in cell.metadata.get("tags", []):
            # Hidden in JupyterLab and on Colab, which shows a title in the place of the code.
            cell.metadata |= {"cellView": "form", "jupyter": {"source_hidden": True}}
            if not cell.source.startswith(("# @title", "%%")):
                cell.source = f"# @title Folded code\n{cell.source}"
        for kind, id, output in outputs:
            if kind == "figure":
                cell.outputs.append(_lighter(output))
                text = f"**{known['numref'].get(id, id)}.** {words.plain(captions.get(id, ''))}"
                cells.append(prose(f"{id}-caption", text))
                continue
            if kind == "claim":
                output["data"] = {"text/plain": claims.line(declared[id], measured[id], "")[1]}
            cell.outputs.append(output)
    page.cells = cells
    nbformat.validate(page)
    return page


def prose(id: str, text: str) -> NotebookNode:
    """A cell of words; nbformat draws its id at random, but the site is to be the same from build to build."""
    cell = nbformat.v4.new_markdown_cell(text)
    cell["id"] = re.sub(r"[^a-zA-Z0-9-]", "-", id)[:64]
    return cell


def _lighter(output: NotebookNode) -> NotebookNode:
    """A picture with fewer dots and colours: enough to read the notebook before it draws its own."""
    with Image.open(io.BytesIO(base64.b64decode(output.data["image/png"]))) as picture:
        share = _DOTS_PER_INCH / (picture.info.get("dpi") or (200, 200))[0]
        small = picture.convert("RGB")
    if share < 1:
        small = small.resize([round(side * share) for side in small.size], Image.Resampling.LANCZOS)
    # The colours are those of every third dot: a quarter of the time, and as near to the picture.
    sample = small.resize([side // 3 or 1 for side in small.size], Image.Resampling.NEAREST)
    colours = sample.quantize(_COLOURS, method=Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE)
    stream = io.BytesIO()
    small.quantize(palette=colours, dither=Image.Dither.NONE).save(stream, "PNG", optimize=True)
    data = {"image/png": base64.b64encode(stream.getvalue()).decode("ascii")}
    return nbformat.v4.new_output("display_data", data)


class Words:
    """The text of a page without what only Sphinx reads: roles as their words, folds as HTML, equations with numbers.

    All methods raise ``ValueError`` for a role or a directive that is not known here.
    """

    def __init__(self, root: Path, page: str, known: Mapping[str, Any]) -> None:
        self.root, self.page, self.known = root, page, known
        self.works = project.references(root)

    def plain(self, text: str) -> str:
        """The text as Markdown that every Jupyter shows."""
        text = _EQUATION.sub(lambda found: f" \\tag{{{self._number(found[1])}}}\n$$", _LABEL.sub("", text))
        text = _CHECKED.sub("", _DIRECTIVE.sub(self._directive, text))
        text = _RELATIVE.sub(lambda found: self._address(found[1] or posixpath.basename(self.page) + ".html"), text)
        return _ROLE.sub(self._role, text).strip()

    def _address(self, link: str) -> str:
        """Public address of a link, which leads from the folder of its page or from the root."""
        place = posixpath.normpath(posixpath.join(f"/notebooks/{self.page}/..", link)).strip("/")
        return project.identity(self.root).site + place

    def _number(self, label: str) -> str:
        return str(self.known["eq"].get(label, label))

    def _directive(self, found: re.Match[str]) -> str:
        name, argument, content = found["name"], found["argument"], found["content"].strip()
        if name in _WITHOUT:
            return ""
        if name == "table":
            return f"**Table.** {self.plain(argument)}\n\n{self.plain(content)}"
        if name == "live":
            live = self._address(f"{posixpath.basename(self.page)}.html#{argument}-live")
            return f"[On the site of the book a live model is here.]({live}) {content}"
        if name == "dropdown":
            return f"<details><summary>{argument}</summary>\n\n{self.plain(content)}\n</details>"
        if name == "math":
            label = re.search(r":label: *(\S+)", found["options"])
            return f"$$\n{content}" + (f" \\tag{{{self._number(label[1])}}}" if label else "") + "\n$$"
        if name in _BOXES:
            lines = [f"**{argument}**" if argument else f"**{name.capitalize()}**", "", *content.splitlines()]
            return "\n".join(f"> {line}".rstrip() for line in lines)
        raise ValueError(f"{self.page}: expected a directive that can be said without Sphinx, got {{{name}}}")

    def _role(self, found: re.Match[str]) -> str:
        role, given, known = found[1], found[2], self.known
        named = _NAMED.fullmatch(given)
        words, target = (named[1], named[2]) if named else ("", given)
        if role == "measured":
            return quoted(given, by_id(onpage.built(self.root, "claims.json")))[0]
        if role in ("cite:p", "cite:t"):
            cited = [self._cited(one.strip(), textual=role == "cite:t") for one in given.split(",")]
            return f"({'; '.join(cited)})" if role == "cite:p" else ", ".join(cited)
        if role == "eq":
            return f"({self._number(target)})"
        if role == "numref":
            number = known["numref"].get(target, target)
            return words.replace("%s", number.split()[-1]).replace("{number}", number.split()[-1]) or number
        if role == "doc":
            address = self._address(f"{target}.html")
            title = known["doc"].get(
                address.removeprefix(project.identity(self.root).site).removesuffix(".html"), target
            )
            return f"[{words or title}]({address})"
        if role == "ref":
            title, place = known["ref"].get(target, (target, ""))
            return f"[{words or title}]({self._address('/' + place)})"
        if role in ("term", "abbr", "sub", "sup"):
            return words or target
        if role in ("siteurl", "code") or role.startswith("py:"):
            return f"`{target.lstrip('~')}`"
        raise ValueError(f"{self.page}: expected a role that can be read without Sphinx, got {found[0]}")

    def _cited(self, name: str, *, textual: bool) -> str:
        """A work as prose names it, with its address where it has one."""
        if name not in self.works:
            return name
        said = project.names_and_year(self.works[name])
        said = said if textual else re.sub(r" \((.*)\)$", r" \1", said)
        address = onpage.address(self.works[name])
        return f"[{said}]({address})" if address else said


def _first_cell(root: Path, chapter: pages.Chapter, results: Path) -> NotebookNode:
    """The cell that unpacks what the notebook carries, and asks pip for what is missing where it runs."""
    who, content = project.identity(root), carried(root, chapter)
    text, most = base64.b64encode(content).decode("ascii"), HEAVIEST_AUDIT if chapter.is_audit else HEAVIEST
    if len(text) > most:
        raise ValueError(f"{chapter.name}: expected to carry at most {most // 1000} kB, got {len(text) // 1000} kB")
    lines = "\n".join(text[start : start + 1000] for start in range(0, len(text), 1000))
    required = json.dumps(requirements(root, results))
    source = string.Template(Path(__file__).with_name("packed_cell.txt").read_text(encoding="utf-8").strip())
    cell = nbformat.v4.new_code_cell(
        source.substitute(library=who.library, version=who.version, required=required, carried=lines)
    )
    cell["id"] = "packed-library"
    cell.metadata |= {"cellView": "form", "jupyter": {"source_hidden": True}}
    return cell


def requirements(root: Path, results: Path) -> list[str]:
    """What the run of the page had loaded of other projects, as ``pyproject.toml`` asks for it; [] without the file."""
    if not (root / "pyproject.toml").is_file():
        return []
    loaded = json.loads((results / "record.json").read_text(encoding="utf-8")).get("packages", {})
    facts = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = sum(facts.get("optional-dependencies", {}).values(), facts.get("dependencies", []))
    wanted = {canonicalize_name(name) for name in loaded} - _RUNNERS - {project.identity(root).library}
    return sorted({str(line) for line in map(Requirement, asked) if canonicalize_name(line.name) in wanted})


def carried(root: Path, chapter: pages.Chapter) -> bytes:
    """The modules that the page imports or its prose names, and data, laid out as the book; always the same bytes."""
    library, code = project.identity(root).library, "`[^`]*`"
    words = " ".join(re.findall(code, "\n".join(c.source for c in chapter.notebook.cells if c.cell_type == "markdown")))
    named = re.findall(rf"from {library}[\w.]* import \w+", words)
    named += [f"import {name}" for name in re.findall(rf"\b{library}(?:\.\w+)+", words)]
    contents = {path.relative_to(root).as_posix(): path.read_bytes() for path in key.files(root, chapter, named)}
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
    standard, equations = env.get_domain("std"), env.get_domain("math")

    def numbers(page: str, kind: str, anchor: str) -> str:
        return ".".join(map(str, env.toc_fignumbers.get(page, {}).get(kind, {}).get(anchor, ())))

    figures = {
        label: number
        for label, (page, anchor, *_) in standard.anonlabels.items()  # type: ignore[attr-defined]
        if (number := numbers(page, "figure", anchor))
    }
    noted = {
        "doc": {page: title.astext() for page, title in env.titles.items()},
        "ref": {
            label: (str(title), f"{page}.html#{anchor}")
            for label, (page, anchor, title) in standard.labels.items()  # type: ignore[attr-defined]
        },
        "numref": {label: app.config.numfig_format["figure"] % number for label, number in figures.items()},
        "eq": {
            label: numbers(page, "displaymath", nodes.make_id(f"equation-{label}")) or str(alone)
            for label, (page, alone) in equations.equations.items()  # type: ignore[attr-defined]
        },
    }
    process.write(Path(app.outdir).parent / REFERENCES, json.dumps(noted, ensure_ascii=False, indent=1))
