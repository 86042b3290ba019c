"""Stages the executed chapters beside the hand-written pages, and renders the site."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import re
import shutil
import sys
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import yaml
from nbformat import NotebookNode

from companion import claims, manuscript, project
from companion.declaring import compared, equations, notebooks, texts
from companion.running import disk, environment, execution, freshness, lifeline, workers
from companion.site import (
    accessibility,
    catalogue,
    citing,
    directives,
    names,
    numbering,
    packed,
    pages,
    previews,
    reference,
    search,
    single_page,
)

_MANIFEST = "site.json"
_LICENCE = "LICENSE-CC-BY-4.0"
_LICENCE_TEXT = "https://creativecommons.org/licenses/by/4.0/legalcode"
COMES = "It comes with the whole site: reload this page then."
"""What a first site says in place of what takes long."""
_RENDERERS = ("jupyter_book", "sphinx_design", "bs4")


@dataclass(frozen=True)
class Build:
    """Outcome of rendering: every reason why the site must not be published, and whether it was rendered at all.

    ``damage`` says what was lost or altered in the site that stood there; it was then rendered again. ``kept`` says
    that a whole site of before was left in its place, because a chapter had failed.
    """

    problems: list[str]
    rendered: bool
    damage: str = ""
    kept: bool = False


def render(root: Path, results: Mapping[str, Path], failures: Sequence[execution.Failure]) -> Build:
    """Render the site to ``_build/html``, unless the one there was made from the same material and is as it was made.

    ``results`` are the folders of the finished chapters. A chapter without one becomes a page that says so; references
    into it are then allowed to break, since the run fails anyway. If a chapter failed and a whole site stands, that one
    stays. The new site is made in a work folder and takes the place of the old one when all its pages are there.
    """
    build = root / "_build"
    disk.recover(build / "html")
    key = _key(root, results)
    damage = _damage(build, None if failures else key)
    if damage == "":
        return Build([], rendered=False, kept=bool(failures))
    damage = damage or ""
    whole = len(results) == len(notebooks.names(root))
    with disk.owned(execution.work_folder(root), "site") as work:
        html, warnings, absent = _sphinx_pages(root, work, build / "sphinx.log", results, failures)
        if absent:
            problem = f"the site was not built, it lacks {', '.join(absent)}; see {build.name}/sphinx.log"
            return Build([problem, *warnings], rendered=True, damage=damage)
        unpacked, unknown = _complete(root, html, results)
        if unsafe := [f"unsafe link: {link}" for link in pages.unsafe_links(html)]:
            return Build([*warnings, *unsafe], rendered=True, damage=damage)
        # What Sphinx cannot resolve cannot be packed either, and is said once.
        problems = [*(warnings or unpacked), *unknown] if whole else []
        problems += [f"loads from outside: {load}" for load in pages.external_loads(html)]
        problems += [f"broken link: {link}" for link in pages.broken_links(html)] if whole else []
        problems += pages.overweight(html)
        files = disk.digests(html)
        disk.remove(build / _MANIFEST)
        disk.put(html, build / "html")
        if whole and not problems:
            disk.write(build / _MANIFEST, json.dumps({"key": key, "files": files}, indent=1) + "\n")
    return Build(problems, rendered=True, damage=damage)


def stands(root: Path) -> bool:
    """Whether a whole site was left by an earlier build."""
    return _damage(root / "_build", None) is not None


def first(root: Path, results: Mapping[str, Path]) -> bool:
    """Put a first site to ``_build/html``, to be read while other pages run; says whether it has all its pages.

    It lacks what takes long: the pages of the reference, notebooks to download, previews and the search. The next
    ``render`` makes the whole site.
    """
    with disk.owned(execution.work_folder(root), "first") as work:
        html, _, absent = _sphinx_pages(root, work, work / "sphinx.log", results, (), whole=False)
        if not absent:
            disk.put(html, root / "_build" / "html")
    return not absent


def _sphinx_pages(
    root: Path,
    work: Path,
    log: Path,
    results: Mapping[str, Path],
    failures: Sequence[execution.Failure],
    *,
    whole: bool = True,
) -> tuple[Path, list[str], list[str]]:
    """The folder of the pages and their records, the warnings of Sphinx, and the names of pages that are absent."""
    stage = _stage(root, work, results, failures, whole=whole)
    warnings = _jupyter_book(stage, work / "site", log)
    html = work / "site" / "_build" / "html"
    absent = [name for name in notebooks.pages(root) if not (html / f"{name}.html").is_file()]
    if not absent:
        accessibility.mend(html)
        _add_records(root, html)
    return html, warnings, absent


def _complete(root: Path, html: Path, results: Mapping[str, Path]) -> tuple[list[str], list[str]]:
    """Add what takes long; returns why pages could not be packed, and the names that the reference does not know."""
    for source_map in (html / "_static").rglob("*.map"):
        # For those who debug the theme; a third of the weight of the site's frame.
        source_map.unlink()
    reference.copy_code(root, html)
    unknown = names.link(html, project.packages(root)) if reference.wanted(root) else []
    lessons = single_page.editions(root)[single_page.LESSONS]
    with workers.shared(len(list(html.rglob("*.html")))) as each:
        unpacked = packed.site(root, html, list(results), each)
        previews.add(html, each)
        single_page.write(html, single_page.LESSONS, lessons, project.identity(root).title)
        search.write(html, each)
        citing.write(root, html, each)
    # Only Sphinx reads it; it has a digest of the path of this folder.
    (html / ".buildinfo").unlink(missing_ok=True)
    return unpacked, unknown


def _damage(build: Path, key: str | None) -> str | None:
    """What was lost or altered in the site made with this key, or with any if it is None; None if there is no such."""
    try:
        manifest = json.loads((build / _MANIFEST).read_text(encoding="utf-8"))
        if key not in (None, manifest["key"]):
            return None
        return disk.damage(build / "html", dict(manifest["files"]))
    except (OSError, TypeError, ValueError, KeyError):
        return None


def _key(root: Path, results: Mapping[str, Path]) -> str:
    records = [freshness.tree_digest(folder / "record.json") for _, folder in sorted(results.items())]
    material = [root / "book", root / "_config.yml", root / "_toc.yml", root / _LICENCE]
    material += [*manuscript.listed(root / "notebooks", "**/*.md"), *freshness.own_packages(root).values()]
    material += [root / "tests"] if equations.wanted(root) else []
    material += [path for path in [root / "pyproject.toml"] if path.is_file()]
    state = freshness.state(root)
    renderers = json.dumps(freshness.versions(_RENDERERS))
    facts = [freshness.tree_digest(*material), *records, state.commit, str(state.dirty), renderers]
    return freshness.digest("\n".join(facts).encode())


def _stage(
    root: Path,
    work: Path,
    results: Mapping[str, Path],
    failures: Sequence[execution.Failure],
    *,
    whole: bool = True,
) -> Path:
    stage = work / "stage"
    (stage / "notebooks").mkdir(parents=True)
    apart = {"_static", "claims", "items", "evidence", texts.NAME, compared.NAME}
    shutil.copytree(
        root / "book",
        stage / "book",
        ignore=lambda _, names: {name for name in names if name in apart or not manuscript.is_ours(name)},
    )
    (stage / "book" / "index.md").rename(stage / "index.md")
    shutil.copy(root / "_toc.yml", stage / "_toc.yml")
    config = project.config(root)
    # The buttons open the notebook of this version, not whatever the branch has become since.
    config["repository"]["branch"] = project.identity(root).ref
    ours = {
        # Sphinx reads it as UTF-8, whatever this process takes for the encoding of paths.
        "companion_root": os.fsencode(root).decode("utf-8", "surrogateescape"),
        "html_baseurl": project.identity(root).site,
        "release": project.identity(root).version,
        "companion_waits": "" if whole else COMES,
    }
    given = project.entry(root, "sphinx.config", dict[str, Any]())
    if not whole:
        waits = "Pages are still running. Their results, the reference and the search come with the whole site."
        config["html"] = {**project.entry(root, "html", dict[str, Any]()), "announcement": waits}
    config["sphinx"] = {**project.entry(root, "sphinx", dict[str, Any]()), "config": {**given, **ours}}
    (stage / "_config.yml").write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    by_chapter = {failure.chapter: failure for failure in failures}
    declared = claims.of_book(root)
    for name in notebooks.names(root):
        chapter = notebooks.load(root, name)
        if name in results:
            executed = nbformat.read(execution.notebook_file(results[name], name), as_version=4)
            page = page_notebook(chapter, executed, dict(claims.recorded(results[name])), declared)
        else:
            page = _missing_page(chapter, by_chapter.get(name), whole)
        target = stage / "notebooks" / f"{name}.ipynb"
        target.parent.mkdir(exist_ok=True)
        nbformat.write(page, target)
    if whole:
        reference.stage(root, stage)
    elif reference.wanted(root):
        (stage / f"{reference.INDEX}.md").parent.mkdir()
        (stage / f"{reference.INDEX}.md").write_text(f"# The reference\n\n{COMES}\n", encoding="utf-8")
    return stage


def page_notebook(
    chapter: notebooks.Chapter,
    executed: NotebookNode,
    measured: Mapping[str, claims.Measurement],
    declared: Mapping[str, claims.Claim],
) -> NotebookNode:
    """The page of a chapter: its text as it is now, with the outputs of the run.

    What the run emitted as a claim's id gets the claim's words and its judgement, published figures become numbered
    ones, and provenance is appended. A figure stands below its cell, or where a ``{published-figure}`` of the text asks
    for it: inside of a fold, for example.
    """
    page = copy.deepcopy(chapter.notebook)
    outputs = [cell.outputs for cell in executed.cells if cell.cell_type == "code"]
    ran = [cell.source for cell in executed.cells if cell.cell_type == "code"]
    if ran != [cell.source for cell in page.cells if cell.cell_type == "code"]:
        raise ValueError(f"chapter {chapter.name}: its run executed other code than the chapter has")
    # The address of the ledger, from a page in `notebooks` or in a folder of it.
    ledger = "../" * (chapter.name.count("/") + 1) + "book/claims.html"
    told = "\n".join(cell.source for cell in page.cells if cell.cell_type == "markdown")
    placed = set(re.findall(r"^```\{published-figure\} (\S+)$", told, flags=re.MULTILINE))
    cells: list[NotebookNode] = []
    for cell in page.cells:
        cells.append(cell)
        if cell.cell_type == "code":
            cell.outputs = outputs.pop(0)
        figures = []
        for output in cell.get("outputs", []):
            facts = output.get("metadata", {}).get("companion", {})
            if id := facts.get("figure"):
                figures.append(id)
            elif (id := facts.get("claim")) in measured:
                markup, text = claims.line(id, declared.get(id), measured[id], ledger)
                output["data"] = {"text/html": markup, "text/plain": text}
        if figures:
            cell.outputs = [
                output for output in cell.outputs if not output.get("metadata", {}).get("companion", {}).get("figure")
            ]
            cells += [_directive("published-figure", id) for id in figures if id not in placed]
    _below_title(cells, chapter.name)
    cells.append(_directive("provenance", chapter.name))
    page.cells = _joined(cells)
    return page


def _joined(cells: Sequence[NotebookNode]) -> list[NotebookNode]:
    """The cells of a page; hidden ones that follow each other, with nothing to be seen between, are opened as one."""
    joined: list[NotebookNode] = []
    last: NotebookNode | None = None
    for cell in cells:
        if last is not None and all(one.get("metadata", {}).get("tags") == ["hide-input"] for one in (last, cell)):
            kinds = [kind for output in last.outputs for kind in output.get("data", {"text/plain": ""})]
            if all(kind.startswith("application/papermill.record/") for kind in kinds):
                last.source = f"{last.source}\n\n{cell.source}"
                last.outputs += cell.outputs
                continue
        joined.append(cell)
        # Cells that the page leaves out keep no others apart.
        if "remove-cell" not in cell.get("metadata", {}).get("tags", []):
            last = cell
    return joined


def _below_title(cells: list[NotebookNode], name: str) -> None:
    """Put the facts of the page between its title and its first paragraph."""
    for cell in cells:
        if cell.cell_type == "markdown" and (title := re.search(r"^# .*$", cell.source, flags=re.MULTILINE)):
            end = title.end()
            cell.source = f"{cell.source[:end]}\n\n```{{page-facts}} {name}\n```\n{cell.source[end:]}"
            return


def _missing_page(chapter: notebooks.Chapter, failure: execution.Failure | None, whole: bool) -> NotebookNode:
    if not whole:
        reason = f"It is running. {COMES}"
    elif failure is None:
        reason = "It was not run in this build: `make book` runs every chapter."
    else:
        message = re.sub(r"[`<>]", "'", execution.plain(failure.error))
        reason = f"It stopped in code cell {failure.cell}:\n\n```text\n{message}\n```"
    text = f"# {chapter.title}\n\n:::{{error}}\nThis chapter has no result in this build. {reason}\n:::"
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text)], metadata=chapter.notebook.metadata)


def _directive(name: str, argument: str) -> NotebookNode:
    return packed.prose(f"{name}-{argument}", f"```{{{name}}} {argument}\n```")


def _jupyter_book(stage: Path, output: Path, log: Path) -> list[str]:
    """Run Jupyter Book in strict mode; returns its warnings, all of them."""
    # Jupyter Book hands everything to Sphinx but the number of its processes; of several, one waits while others write.
    processes = len(environment.processors())
    processes += processes > 1
    entry = (
        "from functools import partial; from companion.running import lifeline; lifeline.tie(); "
        "from jupyter_book import sphinx; from jupyter_book.cli.main import main; "
        f"sphinx.build_sphinx = partial(sphinx.build_sphinx, jobs={processes}); main()"
    )
    command = [sys.executable, "-c", entry, "build", str(stage), "--path-output", str(output)]
    command += ["-W", "-n", "--keep-going", "--all"]
    disk.remove(log)
    status = lifeline.run(command, log=log, environment=environment.clean(), cwd=stage)
    text = execution.plain(log.read_text(encoding="utf-8", errors="replace"))
    disk.write(log, text)
    found = [
        line.replace(f"{stage}/", "") for line in text.splitlines() if re.search(r"\b(WARNING|ERROR|CRITICAL):", line)
    ]
    if status and not found:
        # The first error of Python is the cause; what the programs around it raise follows.
        cause = re.search(r"^[\w.]+: .*$", text[max(0, text.find("Traceback (most recent")) :], flags=re.MULTILINE)
        reason = f": {cause[0]}" if cause and "Traceback" in text else ""
        found = [f"Jupyter Book ended with status {status}{reason}; see {log.parent.name}/{log.name}"]
    return [f"site: {line}" for line in dict.fromkeys(found)]


def _add_records(root: Path, html: Path) -> None:
    """The files that readers download, under names that do not change; figures have the numbers that the pages show."""
    known = json.loads((html.parent / packed.REFERENCES).read_text(encoding="utf-8"))
    numbers = {id: words.split()[-1] for id, words in known["numref"].items()}
    records = {name: catalogue.built(root, name) for name in catalogue.FILES}
    figures = records["figures.json"] = [
        numbering.cited(record, numbers[record["id"]]) if record["id"] in numbers else record
        for record in records["figures.json"]
    ]
    for name, content in records.items():
        (html / name).write_text(_compact(content), encoding="utf-8")
    # The keys of the sources in the records are those of this file.
    shutil.copy(root / "book" / "references.bib", html / "references.bib")
    if (root / _LICENCE).is_file():
        shutil.copy(root / _LICENCE, html / _LICENCE)
    catalogue.write_schemas(html / "schemas")
    catalogue.write_index(root, html)
    if (root / "_build" / "figures").is_dir():
        shutil.copytree(root / "_build" / "figures", html / "figures")
    shown = {notebooks.load(root, name).thumbnail for name in notebooks.names(root)}
    for record in figures:
        folder = html / "figures" / record["id"]
        own = {name: value for name, value in record.items() if name != "source_keys"}
        (folder / "figure.json").write_text(_compact(own), encoding="utf-8")
        _bundle(root, folder, known)
        _lighten(folder, preview=record["id"] in shown)
    (html / ".nojekyll").touch()


def _compact(records: Any) -> str:
    """Records for programs, a line for each."""
    if not isinstance(records, list):
        return json.dumps(records, ensure_ascii=False, separators=(",", ":")) + "\n"
    rows = (json.dumps(record, ensure_ascii=False, separators=(",", ":")) for record in records)
    return "[\n" + ",\n".join(rows) + "\n]\n"


def _bundle(root: Path, folder: Path, known: Mapping[str, Any]) -> None:
    """One archive that stands alone: every file of a figure, its record, what it is, its licence, all checksums."""
    record = json.loads((folder / "figure.json").read_text(encoding="utf-8"))
    id, who = record["id"], project.identity(root)
    if changed := [name for name, was in sorted(record["files"].items()) if disk.digest(folder / name) != was]:
        raise ValueError(f"figure {id}: the files {changed} are not those that figure.json lists")
    citation = json.dumps([record["csl"]], indent=1, ensure_ascii=False) + "\n"
    (folder / f"{id}.csl.json").write_text(citation, encoding="utf-8")
    readme = (
        f"{record['csl']['title']}\n{record['csl']['URL']}\n\n"
        f"{packed.markdown(root, record['page'], record['caption'], known, {})}\n\nWhat is seen: {record['alt']}\n\n"
        f"Source: {record['source']}\n"
        f"From: {who.title}, version {record['library_version']}, commit {record['commit']}\n"
        f"Make it again: with the notebook that the page offers for download, which carries the library, or in the\n"
        f"repository with: make chapter NAME={record['chapter']}\n"
        f"Licence: CC BY 4.0, {_LICENCE_TEXT}\n\n{record['bibtex']}\n"
    )
    contents = {"README.txt": readme.encode(), f"{id}.csl.json": citation.encode()}
    contents |= {name: (folder / name).read_bytes() for name in ("figure.json", *sorted(record["files"]))}
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    contents["SHA256SUMS"] = "".join(f"{digest}  {name}\n" for name, digest in sorted(sums.items())).encode()
    archive(folder / f"{id}.zip", ((f"{id}/{name}", content) for name, content in contents.items()))


def archive(target: Path, contents: Iterable[tuple[str, bytes]]) -> None:
    """Write an archive of files by name; all of them have the same time, so that the same site makes the same bytes."""
    with zipfile.ZipFile(target, "w") as made:
        for name, content in contents:
            made.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)


def _lighten(folder: Path, *, preview: bool) -> None:
    """Leave to the archive alone what no page shows: PDF, arrays, the PNG beside drawings unless it is a preview."""
    for name in directives.in_archive_only(folder.name, [path.name for path in folder.iterdir()]):
        if not (preview and name.endswith(".png")):
            (folder / name).unlink()


def figures_index(figures: Path) -> list[dict[str, Any]]:
    """The records of all published figures, in the order of their ids."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(figures.glob("*/figure.json"))]
