"""Every chapter of the book: what it must have, and that its quick profile runs."""

import os
import re
from pathlib import Path

import nbformat
import pytest

from companion import claims
from companion.pipeline import check, execution, notebooks

ROOT = Path(__file__).resolve().parents[2]
PAGES = notebooks.names(ROOT)
CHAPTERS = notebooks.chapters(ROOT)


def markdown(name):
    cells = notebooks.load(ROOT, name).notebook.cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_breaks_no_rule_that_can_be_decided_without_running_it(name):
    assert [str(finding) for finding in check.book(ROOT, only=name)] == []


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_displays_equations(name):
    assert re.search(r"^\$\$ \(eq:", markdown(name), flags=re.MULTILINE)


def pasted(name):
    """What stands between the quotes of every number that the prose takes from the computation."""
    return re.findall(r"\{glue:text\}`([^`]*)`", markdown(name))


# What the kernel of a quick profile, which compiles for longer than it computes, gets beside the clean environment.
COMPILER = ("JAX_COMPILATION_CACHE_DIR", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS")


# Quick profiles that compile for more than 40 seconds of processor time. `.ci/run`, whose book runs these chapters in
# full before, has them too.
HEAVY = {"collectives", "entropy-production", "kinetic-ising", "spin-transformers"}


@pytest.mark.long
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in HEAVY)) for n in CHAPTERS])
def test_the_quick_profile_runs_and_measures_every_declared_claim(name, tmp_path):
    compiler = {variable: os.environ[variable] for variable in COMPILER} | {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    measured, published = [], []
    for page in (one for one in PAGES if notebooks.chapter_of(one) == name):
        chapter, folder = notebooks.load(ROOT, page), tmp_path / page
        failure = execution.run(ROOT, chapter, folder, parameters=chapter.quick, extra_environment=compiler)
        assert failure is None
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
    declared = {claim.id: claim for claim in claims.declared(ROOT / "book" / "claims" / f"{name}.yml")}
    assert sorted(id for id, _ in measured) == sorted(id for id, claim in declared.items() if claim.is_measured)
    for id, measurement in measured:
        claim = declared[id]
        other = measurement.rival is not None or measurement.control is not None
        printed = claim.verdict == "corrected" and claim.published is not None
        assert claim.kind is None or other or printed, f"{id}: its rival or control is measured"
    assert notebooks.load(ROOT, name).thumbnail in published
