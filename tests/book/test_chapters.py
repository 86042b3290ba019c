"""Every chapter of the book: its rules, and its quick profile, which runs and measures every claim."""

import os
from pathlib import Path

import pytest

from companion import check, claims, pages
from companion.run import execute

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = pages.chapters(ROOT)


def test_no_declaration_and_no_page_breaks_a_rule_that_needs_no_run():
    assert [str(finding) for finding in check.book(ROOT)] == []


# What the kernel of a quick profile, which compiles for longer than it computes, gets beside the clean environment.
COMPILER = ("JAX_COMPILATION_CACHE_DIR", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "XLA_FLAGS")


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("name", CHAPTERS)
def test_the_quick_profile_runs_and_measures_every_declared_claim(name, tmp_path):
    compiler = {variable: os.environ[variable] for variable in COMPILER if variable in os.environ}
    compiler["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
    measured = []
    for page in (page for page in pages.names(ROOT) if pages.chapter_of(page) == name):
        chapter, folder = pages.load(ROOT, page), tmp_path / pages.slug(page)
        failure = execute.run(ROOT, chapter, folder, parameters=chapter.quick, extra_environment=compiler)
        assert failure is None
        measured += claims.recorded(folder)
    declared = {claim.id: claim for claim in claims.declared(ROOT / "book" / "claims" / f"{name}.yml")}
    assert sorted(id for id, _ in measured) == sorted(id for id, claim in declared.items() if claim.is_measured)
    for id, measurement in measured:
        other = measurement.rival is not None or measurement.control is not None
        printed = declared[id].verdict == "corrected" and "printed" in (declared[id].expects or {})
        assert other or printed, f"{id}: its rival or control is measured"
