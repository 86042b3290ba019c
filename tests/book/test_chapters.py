"""Every chapter of the book: its rules, and the quick profile of its audit, which runs and measures its claims."""

from pathlib import Path

import pytest

from companion import check, claims, pages
from companion.run import execute

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = pages.chapters(ROOT)


def test_no_declaration_and_no_page_breaks_a_rule_that_needs_no_run():
    assert [str(finding) for finding in check.book(ROOT)] == []


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("name", CHAPTERS)
def test_the_quick_profile_of_an_audit_runs_and_measures_its_claims(name, tmp_path):
    """The quick profile of a lesson runs as the notebook that the site offers: ``test_packed_lessons``."""
    audit = pages.load(ROOT, f"audits/{name}")
    failure = execute.run(ROOT, audit, tmp_path, parameters=audit.quick)
    assert failure is None
    measured = dict(claims.recorded(tmp_path))
    declared = {claim.id: claim for claim in claims.declared(ROOT / "book" / "claims" / f"{name}.yml")}
    assert sorted(measured) == sorted(
        cell.metadata["claim"] for cell in audit.notebook.cells if "claim" in cell.metadata
    )
    for id, measurement in measured.items():
        other = measurement.rival is not None or measurement.control is not None
        printed = declared[id].verdict == "corrected" and "printed" in (declared[id].expects or {})
        assert other or printed, f"{id}: its rival or control is measured"
