"""Every chapter of the book: what it must have, and that its quick profile runs, here and away from the repository."""

import json
import os
import re
from pathlib import Path

import nbformat
import pytest

from companion import check, claims, project
from companion.declaring import notebooks
from companion.running import execution

ROOT = Path(__file__).resolve().parents[2]
PAGES = notebooks.names(ROOT)
CHAPTERS = notebooks.chapters(ROOT)


def markdown(name):
    cells = notebooks.load(ROOT, name).notebook.cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def test_no_declaration_of_the_book_breaks_a_rule():
    assert [str(finding) for finding in check.book(ROOT)] == []


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_breaks_no_rule_that_can_be_decided_without_running_it(name):
    assert [str(finding) for finding in check.chapter(ROOT, name)] == []


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_displays_equations(name):
    assert re.search(r"^\$\$ \(eq:", markdown(name), flags=re.MULTILINE)


def pasted(name):
    """What stands between the quotes of every number that the prose takes from the computation."""
    return re.findall(r"\{glue:text\}`([^`]*)`", markdown(name))


# What the kernel of a quick profile, which compiles for longer than it computes, gets beside the clean environment.
COMPILER = ("JAX_COMPILATION_CACHE_DIR", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "XLA_FLAGS")


def left_behind(folder, wheel):
    """What a run loaded or opened of the repository and the wheel, all that a notebook on Colab has, does not hold."""
    progress = json.loads((folder / "progress.json").read_text())
    assert progress["modules"], "the run was watched"
    missing = []
    for name in progress["modules"]:
        place = wheel.joinpath(*name.split("."))
        if not (place.with_name(f"{place.name}.py").is_file() or (place / "__init__.py").is_file()):
            missing.append(name)
    for path in map(Path, progress["opened"]):
        if path.is_dir() or path.parent.name == "__pycache__":
            continue
        # The two wheels pack src/ as it is, and what claims and citations need of the book beside the library.
        source = next((folder for folder in project.code(ROOT) if path.is_relative_to(folder)), None)
        place = path.relative_to(source) if source else Path("spinbook", "_book", path.relative_to(ROOT))
        if not (wheel / place).is_file():
            missing.append(str(place))
    return missing


def test_a_file_of_the_repository_that_colab_lacks_is_named(tmp_path, wheel):
    there = ["_config.yml", "book/claims/comparison.yml", "src/spinbook/__pycache__/x.pyc", "src/spinbook/ising"]
    there += ["companion/src/companion/figures.py"]
    lacking = ["book/sources.yml", "requirements.lock", "src/spinbook/none.json"]
    opened = [str(ROOT / name) for name in [*there, *lacking]]
    progress = {"modules": ["spinbook", "companion.figures", "spinbook.none"], "opened": opened}
    (tmp_path / "progress.json").write_text(json.dumps(progress))
    found = left_behind(tmp_path, wheel)
    assert found == [
        "spinbook.none",
        "spinbook/_book/book/sources.yml",
        "spinbook/_book/requirements.lock",
        "spinbook/none.json",
    ]


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("name", CHAPTERS)
def test_the_quick_profile_runs_and_measures_every_declared_claim(name, tmp_path, wheel):
    """The one run that the tests make of a page with its quick parameters.

    It starts in an empty folder, as a notebook on Colab does, so that a relative path leads nowhere, and what it reads
    of the repository by an absolute one must lie in the wheel, where `test_colab` has its library from. Claims are
    shown to a reader with what was declared of them, which a run of the pipeline leaves out.
    """
    compiler = {variable: os.environ[variable] for variable in COMPILER if variable in os.environ}
    compiler["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
    measured, published = [], []
    for page in (one for one in PAGES if notebooks.chapter_of(one) == name):
        chapter, folder = notebooks.load(ROOT, page), tmp_path / page
        failure = execution.run(ROOT, chapter, folder, parameters=chapter.quick, extra_environment=compiler)
        assert failure is None
        assert left_behind(folder, wheel) == [], f"{page} needs what is not in the wheel"
        measured += claims.recorded(folder)
        outputs = [
            output
            for cell in nbformat.read(execution.notebook_file(folder, page), as_version=4).cells
            for output in cell.get("outputs", [])
        ]
        computed = {output.get("metadata", {}).get("scrapbook", {}).get("name") for output in outputs}
        assert {text.partition(":")[0] for text in pasted(page)} <= computed, "every number of the prose is computed"
        figures = [path.parent.name for path in (folder / "figures").glob("*/figure.json")]
        referenced = set(re.findall(r"\{numref\}`(?:[^`<]*<)?([a-z0-9-]+)>?`", markdown(page)))
        assert set(figures) <= referenced, "every figure is spoken of in the text"
        published += figures
    assert len(set(published)) == len(published), "every figure is published on one page"
    assert {project.chapter_of(figure) for figure in published} == {name}
    declared = {claim.id: claim for claim in claims.declared(ROOT / "book" / "claims" / f"{name}.yml")}
    assert sorted(id for id, _ in measured) == sorted(id for id, claim in declared.items() if claim.is_measured)
    carried = wheel / "spinbook" / "_book" / "book" / "claims" / f"{name}.yml"
    assert carried.read_bytes() == (ROOT / "book" / "claims" / f"{name}.yml").read_bytes()
    for id, measurement in measured:
        claim = declared[id]
        other = measurement.rival is not None or measurement.control is not None
        printed = claim.verdict == "corrected" and claim.published is not None
        assert claim.kind is None or other or printed, f"{id}: its rival or control is measured"
        shown = claims.line(id, claim, measurement, "claims.html")[1]
        assert " ".join(claim.says.split()) in shown, "the line of a reader's own run says what is claimed"
    assert notebooks.load(ROOT, name).thumbnail in published
