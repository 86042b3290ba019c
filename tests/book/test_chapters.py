"""Every chapter of the book: what it must have, and that its quick profile runs."""

import json
import os
import re
from pathlib import Path

import nbformat
import pytest

from companion import claims, project
from companion.pipeline import execution, notebooks

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = notebooks.names(ROOT)
LONGEST_CELL = 22


def markdown(name):
    cells = notebooks.load(ROOT, name).notebook.cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


@pytest.mark.parametrize("name", CHAPTERS)
def test_every_displayed_equation_is_numbered_and_begins_with_the_chapters_name(name):
    text = markdown(name)
    displays = re.findall(r"^\$\$$.*?^\$\$([^\n]*)$", text, flags=re.DOTALL | re.MULTILINE)
    assert displays
    assert all(re.match(rf" \(eq:{name}-[a-z0-9-]+\)$", label) for label in displays), displays


def pasted(name):
    """What stands between the quotes of every number that the prose takes from the computation."""
    return re.findall(r"\{glue:text\}`([^`]*)`", markdown(name))


@pytest.mark.parametrize("name", CHAPTERS)
def test_every_pasted_number_is_a_key_with_a_format(name):
    assert [text for text in pasted(name) if not re.fullmatch(r"[\w.]+(:[^\s{}$]+)?", text)] == []


@pytest.mark.parametrize("name", CHAPTERS)
def test_cells_are_short(name):
    cells = [cell for cell in notebooks.load(ROOT, name).notebook.cells if cell.cell_type == "code"]
    long = [cell.source.splitlines()[0] for cell in cells if len(cell.source.splitlines()) > LONGEST_CELL]
    assert [line for line in long if not line.startswith("figures.publish")] == []


@pytest.mark.parametrize("name", CHAPTERS)
def test_the_source_is_cited_by_a_key_that_exists(name):
    chapter = notebooks.load(ROOT, name)
    assert chapter.source in project.sources(ROOT)


# What the kernel of a quick profile, which compiles for longer than it computes, gets beside the clean environment.
COMPILER = ("JAX_COMPILATION_CACHE_DIR", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS")


# Quick profiles that compile for more than 40 seconds of processor time. `.ci/run`, whose book runs these chapters in
# full before, has them too.
HEAVY = {"collectives", "entropy-production", "kinetic-ising", "spin-transformers"}


@pytest.mark.long
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in HEAVY)) for n in CHAPTERS])
def test_the_quick_profile_runs_and_measures_every_declared_claim(name, tmp_path):
    chapter = notebooks.load(ROOT, name)
    compiler = {variable: os.environ[variable] for variable in COMPILER} | {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    failure = execution.run(ROOT, chapter, tmp_path / name, parameters=chapter.quick, extra_environment=compiler)
    assert failure is None
    measured = {json.loads(line)["id"] for line in (tmp_path / name / "measured.jsonl").read_text().splitlines()}
    declared = claims.declared(ROOT / "book" / "claims" / f"{name}.yml")
    assert measured == {claim.id for claim in declared if claim.verdict != "not-attempted"}
    outputs = [
        output
        for cell in nbformat.read(tmp_path / name / f"{name}.ipynb", as_version=4).cells
        for output in cell.get("outputs", [])
    ]
    computed = {output.get("metadata", {}).get("scrapbook", {}).get("name") for output in outputs}
    assert {text.partition(":")[0] for text in pasted(name)} <= computed, "every number of the prose is computed"
    published = {path.parent.name for path in (tmp_path / name / "figures").glob("*/figure.json")}
    referenced = set(re.findall(r"\{numref\}`(?:[^`<]*<)?([a-z0-9-]+)>?`", markdown(name)))
    assert published <= referenced, "every figure is spoken of in the text"
    assert chapter.thumbnail in published
