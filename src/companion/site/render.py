"""Stages the executed pages beside the hand-written ones, runs Jupyter Book strictly, and exchanges the whole site."""

from __future__ import annotations

import copy
import hashlib
import html
import json
import os
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import nbformat
import yaml
from nbformat import NotebookNode

from companion import claims, manuscript, pages, project
from companion.run import kernel, process
from companion.run.execute import Failure
from companion.site import figures, onpage, packed, reference

RECORDS = ("claims.json", "figures.json", "status.json")
_LEDGER = "book/claims"
"""The page below which the ledgers of the chapters stand in the contents."""
_APART = {"_static", "checks", "claims"}
"""What lies in ``book`` and is no page."""
_PICTURES = {".gif", ".jpeg", ".jpg", ".png", ".svg", ".webp"}
_UNREAD = {".map", ".mo", ".po", ".ttf"}
"""What themes put beside a site and no reader loads."""
_COMES = "It comes with the whole site: reload this page then."


@dataclass(frozen=True)
class Site:
    """Every reason why the site must not be published, and whether it was rendered.

    ``kept`` says that a whole site of before was left in its place, because a chapter had failed.
    """

    problems: list[str]
    rendered: bool
    kept: bool = False


def render(root: Path, results: Mapping[str, Path], failures: Sequence[Failure] = ()) -> Site:
    """Render the site to ``_build/html``, unless the one there was made of the same material.

    ``results`` are the folders of the finished pages. A page without one says so; references into it are then allowed
    to break, since the build fails anyway. If a page failed and a whole site stands, that one stays.
    """
    build, made_of = root / "_build", _key(root, results)
    if stands(root) and (failures or (build / "site.key").read_text(encoding="utf-8") == made_of):
        return Site([], rendered=False, kept=bool(failures))
    whole = len(results) == len(pages.names(root))
    with tempfile.TemporaryDirectory(prefix="site-", dir=build / "work") as work:
        made, warnings, absent = _sphinx_pages(root, Path(work), results, failures)
        shutil.copy(Path(work) / "sphinx.log", build / "sphinx.log")
        if absent:
            problem = f"the site was not built, it lacks {', '.join(absent)}; see _build/sphinx.log"
            return Site([problem, *warnings], rendered=True)
        known = json.loads((made.parent / packed.REFERENCES).read_text(encoding="utf-8"))
        unpacked = packed.site(root, made, results, known)
        problems = [*(warnings or unpacked), *broken(made)] if whole else broken(made, links=False)
        process.remove(build / "site.key")
        process.put(made, build / "html")
        if whole and not problems:
            process.write(build / "site.key", made_of)
    return Site(problems, rendered=True)


def stands(root: Path) -> bool:
    """Whether a whole site was left by an earlier build."""
    return (root / "_build" / "site.key").is_file() and (root / "_build" / "html" / "index.html").is_file()


def first(root: Path, results: Mapping[str, Path]) -> bool:
    """Put a first site to ``_build/html``, to be read while other pages run; says whether it has all its pages.

    It lacks the reference and the notebooks to download. The next ``render`` makes the whole site.
    """
    with tempfile.TemporaryDirectory(prefix="first-", dir=root / "_build" / "work") as work:
        made, _, absent = _sphinx_pages(root, Path(work), results, (), whole=False)
        if not absent:
            process.put(made, root / "_build" / "html")
    return not absent


def _key(root: Path, results: Mapping[str, Path]) -> str:
    """A digest of what the site is made of, but for the packages that are installed."""
    made_of = [root / "_config.yml", root / "_toc.yml", *(root / "_build" / name for name in RECORDS)]
    made_of += [folder / "record.json" for folder in results.values()]
    for folder in ("book", "notebooks", "records", "src"):
        made_of += [path for path in (root / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    known = hashlib.sha256(repr(sorted(results)).encode())
    for path in sorted(made_of):
        known.update(f"\n{path.relative_to(root).as_posix()}\n".encode() + path.read_bytes())
    return known.hexdigest()


def _sphinx_pages(
    root: Path, work: Path, results: Mapping[str, Path], failures: Sequence[Failure], *, whole: bool = True
) -> tuple[Path, list[str], list[str]]:
    """The folder of the pages and their records, the warnings of Sphinx, and the names of pages that are absent."""
    stage = stage_book(root, work / "stage", results, failures, whole=whole)
    warnings = _jupyter_book(root, stage, work / "site", work / "sphinx.log")
    made = work / "site" / "_build" / "html"
    absent = [name for name in pages.pages(root) if not (made / f"{name}.html").is_file()]
    if not absent:
        _add_records(root, made)
    return made, warnings, absent


def stage_book(
    root: Path, stage: Path, results: Mapping[str, Path], failures: Sequence[Failure] = (), *, whole: bool = True
) -> Path:
    """Write what Jupyter Book reads to ``stage``: pages of ``book``, executed ones, reference, ledgers; returns it."""
    shutil.copytree(
        root / "book",
        stage / "book",
        ignore=lambda folder, names: {name for name in names if name in _APART or not manuscript.is_ours(name)},
    )
    (stage / "book" / "index.md").rename(stage / "index.md")
    pictures = [path for path in (root / "notebooks").rglob("*") if path.suffix in _PICTURES]
    # Pages of plans include the text that lies beside their records.
    for file in (*pictures, *manuscript.listed(root / "records", "*/plan.md")):
        target = stage / file.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
    by_page = {failure.chapter: failure for failure in failures}
    for name in pages.names(root):
        chapter = pages.load(root, name)
        target = stage / "notebooks" / f"{name}.ipynb"
        target.parent.mkdir(parents=True, exist_ok=True)
        if name in results:
            page = page_notebook(root, chapter, results[name])
        else:
            page = _missing_page(chapter, by_page.get(name), whole)
        nbformat.write(page, target)
    under = {_LEDGER: _ledgers(root, stage)}
    if whole:
        under[reference.INDEX] = reference.stage(root, stage)
    elif reference.INDEX in pages.pages(root):
        (stage / reference.FOLDER).mkdir()
        (stage / f"{reference.INDEX}.md").write_text(f"# Reference\n\n{_COMES}\n", encoding="utf-8")
    contents = copy.deepcopy(manuscript.mapping(root / "_toc.yml", "root and parts"))
    for part in contents.get("parts", []):
        for item in part.get("chapters", []):
            if more := under.get(item.get("file", "")):
                item["sections"] = [*more, *item.get("sections", [])]
    (stage / "_toc.yml").write_text(yaml.safe_dump(contents, sort_keys=False), encoding="utf-8")
    (stage / "_config.yml").write_text(yaml.safe_dump(_settings(root, whole), sort_keys=False), encoding="utf-8")
    return stage


def _settings(root: Path, whole: bool) -> dict[str, Any]:
    config, who = project.config(root), project.identity(root)
    # The buttons open the notebook of this version, not whatever the branch has become since.
    config["repository"]["branch"] = who.ref
    ours = {
        # Sphinx reads it as UTF-8, whatever this process takes for the encoding of paths.
        "companion_root": os.fsencode(root).decode("utf-8", "surrogateescape"),
        "html_baseurl": who.site,
        "release": who.version,
    }
    if not whole:
        waits = "Pages are still running. Their results, the reference and the notebooks come with the whole site."
        config["html"] = {**config.get("html", {}), "announcement": waits}
    given = config.get("sphinx", {})
    config["sphinx"] = {**given, "config": {**given.get("config", {}), **ours}}
    return config


def _ledgers(root: Path, stage: Path) -> list[dict[str, str]]:
    """Write the page of every chapter's claims; returns their entries of the contents."""
    folder = stage / "book" / "ledger"
    folder.mkdir()
    entries = []
    for name in pages.chapters(root):
        title = pages.load(root, name).title
        text = (
            f"---\nhtml_theme.sidebar_secondary.remove: true\n---\n\n(ledger-{name})=\n# Ledger: {title}\n\n"
            f"What {{doc}}`the lesson </notebooks/{name}>` and its audit check. {{doc}}`How a claim is decided "
            f"</{_LEDGER}>`. The name of a claim leads to where it is measured.\n\n```{{claims-ledger}} {name}\n```\n"
        )
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
        entries.append({"file": f"book/ledger/{name}", "title": title})
    return entries


def page_notebook(root: Path, chapter: pages.Chapter, results: Path) -> NotebookNode:
    """The page of a chapter: its text as it is now, with the outputs and the numbers of the run.

    A claim gets its words and its judgement, a figure its number and caption, and what run it was stands at the end.
    """
    page, found = onpage.with_outputs(chapter, results)
    # Cells are in IPython, whose commands and questions no other lexer knows.
    page.metadata["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
    measured, declared = dict(claims.recorded(results)), claims.of_book(root)
    ledger = "../" * (chapter.name.count("/") + 1) + f"book/ledger/{chapter.chapter}.html"
    cells: list[NotebookNode] = []
    shown = set[str]()
    for cell, outputs in found:
        cells.append(cell)
        for kind, id, output in outputs:
            if kind == "figure":
                cells.append(_directive("published-figure", id))
                continue
            if kind == "claim":
                markup, text = claims.line(declared[id], measured[id], ledger)
                output["data"] = {"text/html": markup, "text/plain": text}
                shown.add(id)
            cell.outputs.append(output)
    _below_title(cells, chapter.name)
    if unseen := [id for id in measured if id not in shown]:
        cells.append(_directive("page-claims", chapter.name, *unseen))
    cells.append(_directive("provenance", chapter.name))
    page.cells = cells
    return page


def _below_title(cells: list[NotebookNode], name: str) -> None:
    """Put the facts of the page between its title and its first paragraph."""
    for cell in cells:
        if cell.cell_type == "markdown" and (title := re.search(r"^# .*$", cell.source, flags=re.MULTILINE)):
            end = title.end()
            cell.source = f"{cell.source[:end]}\n\n```{{page-facts}} {name}\n```\n{cell.source[end:]}"
            return


def _missing_page(chapter: pages.Chapter, failure: Failure | None, whole: bool) -> NotebookNode:
    if not whole:
        reason = f"It is running. {_COMES}"
    elif failure is None:
        reason = "It was not run in this build: `make book` runs every chapter."
    else:
        message = re.sub("[`<>]", "'", process.colourless(failure.error))
        reason = f"It stopped {failure.where}:\n\n```text\n{message}\n```"
    text = f"# {chapter.title}\n\n:::{{error}}\nThis chapter has no result in this build. {reason}\n:::"
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text)], metadata=chapter.notebook.metadata)


def _directive(name: str, argument: str, *content: str) -> NotebookNode:
    return packed.prose(f"{name}-{argument}", "\n".join([f"```{{{name}}} {argument}", *content, "```"]))


def sphinx(stage: str, output: str, code: str) -> int:
    """Run Jupyter Book in strict mode in this process, with the modules of the folder ``code``; ends it."""
    sys.path.insert(0, code)
    from jupyter_book import sphinx as builder
    from jupyter_book.cli.main import main

    # Jupyter Book hands everything to Sphinx but the number of its processes; of several, one waits while others write.
    processes, build = len(process.processors()), builder.build_sphinx
    builder.build_sphinx = lambda *given, **named: build(*given, **named, jobs=processes + (processes > 1))
    return int(main(["build", stage, "--path-output", output, "-W", "-n", "--keep-going", "--all"]) or 0)


def _jupyter_book(root: Path, stage: Path, output: Path, log: Path) -> list[str]:
    """Run Jupyter Book in a process of its own; returns its warnings, all of them."""
    press = {"PYTHONPATH": str(Path(__file__).parents[2]), "MPLBACKEND": "agg", "JAX_PLATFORMS": "cpu"}
    command = process.calling(f"{__name__}:sphinx", str(stage), str(output), str(root / "src"))
    status = process.run(command, log=log, environment=kernel.clean() | press, cwd=stage)
    text = process.colourless(log.read_text(encoding="utf-8", errors="replace"))
    process.write(log, text)
    found = [
        line.replace(f"{stage}/", "") for line in text.splitlines() if re.search(r"\b(WARNING|ERROR|CRITICAL):", line)
    ]
    if status and not found:
        found = [f"Jupyter Book ended with status {status}; see _build/sphinx.log"]
    return [f"site: {line}" for line in dict.fromkeys(found)]


def _add_records(root: Path, made: Path) -> None:
    """The files that readers and programs download, under names that do not change."""
    who, build = project.identity(root), root / "_build"
    for name in RECORDS:
        shutil.copy(build / name, made)
    records = onpage.built(root, "figures.json")
    (made / "figures.json").write_text(
        json.dumps([{**one, "bibtex": figures.citation(who, one)} for one in records], ensure_ascii=False, indent=1),
        encoding="utf-8",
    )
    # The keys of the sources in the records are those of this file.
    shutil.copy(root / "book" / "references.bib", made)
    shutil.copy(root / "LICENSE-CC-BY-4.0", made)
    shutil.copytree(build / "figures", made / "figures")
    for record in records:
        _bundle(who, made / "figures" / record["id"], record)
    addresses = (f"<url><loc>{who.site}{name}.html</loc></url>" for name in pages.pages(root))
    head = '<?xml version="1.0" encoding="utf-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
    (made / "sitemap.xml").write_text(head + "\n".join(addresses) + "\n</urlset>\n", encoding="utf-8")
    (made / ".nojekyll").touch()
    # Only Sphinx reads it; it has a digest of the path of this folder. Maps of sources are for those who debug a theme.
    # Every browser reads the fonts as woff2, and Sphinx reads the messages of the themes in other languages.
    for path in (made / ".buildinfo", *(made / "_static").rglob("*.*")):
        if path.name == ".buildinfo" or path.suffix in _UNREAD:
            path.unlink()


def _bundle(who: project.Identity, folder: Path, record: Mapping[str, Any]) -> None:
    """One archive that can be understood alone: the drawing and the numbers of a figure, and in words what it is."""
    readme = (
        f"Figure {record['id']}\n{who.chapter_url(record['page'], record['id'])}\n\n{record['caption']}\n\n"
        f"What is seen: {record['alt']}\n\n"
        "Numbers: by panel and artist (line, bar, point), in the order of drawing; of many numbers six digits.\n\n"
        f"From: {who.title}, version {who.version}, commit {record['commit']}\n"
        f"Make it again, in the repository: make chapter NAME={record['chapter']}\n"
        f"Licence: CC BY 4.0, https://creativecommons.org/licenses/by/4.0/\n\n{figures.citation(who, dict(record))}\n"
    )
    # The pictures are beside the archive, which has the figure as a drawing and in numbers.
    kept = [path for path in sorted(folder.iterdir()) if path.suffix != ".png" and not path.stem.endswith("-dark")]
    contents = {path.name: path.read_bytes() for path in kept} | {"README.txt": readme.encode()}
    with zipfile.ZipFile(folder / f"{record['id']}.zip", "w") as made:
        for name, content in contents.items():
            # All files have the same time, so that the same site makes the same bytes.
            made.writestr(zipfile.ZipInfo(f"{record['id']}/{name}"), content, zipfile.ZIP_DEFLATED)


_LINK = re.compile(r'\s(?:href|src)="([^"]*)"')
_ANCHOR = re.compile(r'\s(?:id|name)="([^"]*)"')
_LOAD = re.compile(
    r'<(?:script|img|iframe|source|embed)\b[^>]*\ssrc="((?:https?:)?//[^"]*)"'
    r'|<link\b(?=[^>]*rel="(?:stylesheet|preload|icon|modulepreload)")[^>]*\shref="((?:https?:)?//[^"]*)"'
    r"|(?:@import\s+|url\()\s*['\"]?((?:https?:)?//[^'\")\s]+)"
)


def broken(made: Path, *, links: bool = True) -> list[str]:
    """Links within the site that lead nowhere, and what pages and style sheets load from elsewhere."""
    # What themes bring in ``_static`` are no pages.
    read = [path for path in sorted(made.rglob("*.html")) if "_static" not in path.relative_to(made).parts]
    read += sorted(made.rglob("*.css"))
    texts = {path: path.read_text(encoding="utf-8", errors="replace") for path in read}
    anchors = {path: {html.unescape(name) for name in _ANCHOR.findall(text)} for path, text in texts.items()}
    found = []
    for path, text in texts.items():
        name = path.relative_to(made).as_posix()
        found += [f"loads from outside: {name}: {''.join(load)}" for load in _LOAD.findall(text)]
        for link in sorted(set(_LINK.findall(text))) if links else ():
            address, _, anchor = html.unescape(link).partition("#")
            address = address.partition("?")[0]
            if re.match(r"[a-zA-Z][\w+.-]*:|//", address):
                continue
            target = Path(os.path.normpath(path.parent / unquote(address))) if address else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file() or (anchor and unquote(anchor) not in anchors.get(target, {unquote(anchor)})):
                found.append(f"broken link: {name}: {link}")
    return found
