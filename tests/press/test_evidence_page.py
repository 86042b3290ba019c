"""The pages on what long runs have found: every number from what is kept, and what is missing or old said as such."""

import json
from types import SimpleNamespace

import pytest
from bs4 import BeautifulSoup

from companion import claims
from companion.__main__ import main
from companion.evidence import epsilon, evidence_page, faults, portability, records, resumable
from companion.site.markup import fill
from test_faults import GROSS, TESTS, UNSEEN, listed
from toybook import write


@pytest.fixture
def book(audited):
    """The toy book in two pages, with two faults, and two claims that name a function."""
    write(audited.path("tests"), {"test_pairs.py": TESTS})
    audited.edit("book/claims/probe.yml", "  kind: number\n", "  functions: [walks.unrelated.three]\n  kind: number\n")
    return listed(audited, GROSS, UNSEEN)


def text_of(markup):
    return " ".join(BeautifulSoup(markup, "html.parser").get_text(" ").split())


def test_smallest_errors_are_those_that_were_measured_and_the_rest_is_said(book):
    said = text_of(evidence_page.of_epsilon(book.root, {}, "../"))
    assert "2 functions that claims name; 0 of them measured; 2 not run yet." in said
    found = {"stopped": "", "called": True, "applied": True}
    values = {
        f"{epsilon.PLAIN} | audits/probe": 1e-12,
        f"{epsilon.AGAIN} | audits/probe": 1e-12,
        "walks.pairs.both | audits/probe": 2e-3,
    }
    kept = {
        job.name: found | {"key": job.key, "measured": {"probe.slope": [values[job.name], 1e-11, 1.0, None]}}
        for job in epsilon.Study(book.root).jobs
        if job.name in values
    }
    markup = evidence_page.of_epsilon(book.root, kept, "../")
    said = text_of(markup)
    # 1e-3 (1e-9 + 3e-11 - 1e-12) / 2e-3
    assert "5.1 × 10 −10 probe.slope" in said
    assert "1 of them measured, with a median of 5.1 × 10 −10 ; 1 at 0.001 or less, 0 above a tenth" in said
    assert "1 not run yet." in said
    assert said.endswith("Not run yet unrelated.three .")
    assert f"../book/claims.html#ledger-{claims.anchor_of('probe.slope')}" in markup
    name = "walks.pairs.both | audits/probe"
    old = kept | {name: kept[name] | {"older": True, "measured": {"probe.slope": [1e-12, 1e-11, 1.0, None]}}}
    said = text_of(evidence_page.of_epsilon(book.root, old, "../"))
    assert "Errors of a tenth that no claim would notice pairs.both : it is multiplied and no claim moves" in said
    assert "(of a record before)" in said


def test_faults_that_nobody_saw_and_those_that_were_not_run_are_told_apart(book):
    said = text_of(evidence_page.of_faults(book.root, {}, "../"))
    assert "gross 1 0 0 – 0 0 – 1% 1 0 0 – 0 0 –" in said
    assert "Not run yet The square is lost (parabola); Only words (" in said
    assert "Fault by fault" not in said
    assert "Not seen so far" not in said
    kept = {}
    for job in faults.jobs(book.root):
        if job.fault is None:
            continue
        gross = job.fault.id == "no-square"
        if job.unit == faults.TESTS:
            failed = "tests.test_pairs::test_the_parabola" if gross else ""
            kept[job.name] = {"key": job.key, "seconds": 1.0, "failed": failed}
        elif gross:
            noticed = {"stopped": "", "claims": ["probe.slope"], "unforeseen": []}
            kept[job.name] = {"key": job.key, "seconds": 1.0, **noticed}
    said = text_of(evidence_page.of_faults(book.root, kept, "../"))
    assert "gross 1 1 1 1 1 1 1 1% 1 1 0 – 0 0 –" in said
    assert "Not seen so far unseen : Only words. No test fails; its pages are not run yet." in said
    assert "gross the parabola probe.slope" in said
    nobody = {"key": "other", "older": True, "seconds": 1.0, "stopped": "", "claims": [], "unforeseen": []}
    said = text_of(evidence_page.of_faults(book.root, kept | {"unseen, audits/probe": nobody}, "../"))
    assert "Only words. Nobody notices." in said
    assert "src/walks/pairs.py (of a record before) 1% no test fails no claim notices" in said


def test_moves_are_counted_against_the_run_as_it_is(book):
    folder = book.root / "_build" / "portability"
    for job in portability.jobs(book.root):
        if job.path.name not in (portability.AS_IS, "four threads") or not job.is_chapter:
            continue
        shift = 0.0 if job.path.name == portability.AS_IS else 1e-4
        value = {"probe": ["probe.top", 1.0 - shift], "audits/probe": ["probe.slope", 1e-12]}[job.unit]
        measured = {value[0]: [value[1], 0.0, 0.5, None]}
        resumable.keep(job.folder(book.root), job.key, {"measured": measured})
    portability.record(book.root)
    kept = records.read(book.root, portability.EVIDENCE)
    assert kept["four threads | probe | page"]["moved"] == {"probe.top": [pytest.approx(1e-4), pytest.approx(0.1)]}
    said = text_of(evidence_page.of_paths(book.root, kept, "../"))
    assert "four threads 0 0 2 1 0 0.1 of its bound, probe.top" in said
    assert "again 0 0 0 0 0 – 2 of 2 runs not run yet" in said
    # A page that stops is a result where everything is rounded, and a failure on any other path.
    for name in ("single precision", "again"):
        (job,) = (one for one in portability.jobs(book.root) if (one.path.name, one.unit) == (name, "probe"))
        resumable.keep(job.folder(book.root), job.key, {"problem": "cell 3: no convergence"})
    portability.record(book.root)
    kept = records.read(book.root, portability.EVIDENCE)
    assert kept["single precision | probe | page"]["stopped"] == "cell 3: no convergence"
    assert "again | probe | page" not in kept
    said = text_of(evidence_page.of_paths(book.root, kept, "../"))
    assert "single precision 0 0 0 0 0 – 1 of 2 runs not run yet, 1 page stopped" in said
    # Elsewhere, and of older code: kept with its key, and never in place of what is of this code.
    other = book.root.parent / "elsewhere"
    folder.rename(other)
    for path in other.rglob("outcome.json"):
        path.write_text(path.read_text().replace('"key": "', '"key": "0'))
    portability.record(book.root, results=other)
    assert records.read(book.root, portability.EVIDENCE) == kept
    (book.root / "book" / "evidence" / "portability.json").unlink()
    portability.record(book.root, results=other)
    said = text_of(evidence_page.of_paths(book.root, records.read(book.root, portability.EVIDENCE), "../"))
    assert "0.1 of its bound, probe.top" in said
    assert "2 of a record before" in said


def test_a_page_that_loads_nothing_of_what_a_path_changes_is_not_missing_there(book, monkeypatch):
    paths = (portability.PATHS[0], portability.ProcessorPath("other digits", package="numpy", tests=False))
    monkeypatch.setattr(portability, "PATHS", paths)
    for loaded, state in (("numpy", "2 of 2 runs not run yet"), ("scipy", "whole")):
        record = SimpleNamespace(packages={loaded: "1"})
        monkeypatch.setattr(portability.execution, "read_record", lambda folder, record=record: record)
        assert f"other digits 0 0 0 0 0 – {state}" in text_of(evidence_page.of_paths(book.root, {}, "../"))


def test_times_are_medians_and_numbers_are_written_as_a_reader_writes_them():
    runs = [{"seconds": seconds} for seconds in (1.0, 2.4, 30.0)]
    assert (evidence_page._median_seconds(runs), evidence_page._median_seconds([])) == ("2", "–")
    written = [evidence_page._power(value) for value in (3.0, 0.25, 0.0012, 9.97e-10, 2.34e-7)]
    assert written == ["over 1", "0.25", "0.0012", "1.0 × 10<sup>−9</sup>", "2.3 × 10<sup>−7</sup>"]


def test_a_record_speaks_of_the_commit_that_was_measured_and_no_edit_changes_its_words(book, capsys):
    of = {"version": "0.1.0.dev0", "commit": "unknown", "date": ""}
    path = records.keep(book.root, "epsilon", {"b": {"key": "2"}, "a": {"key": "1"}}, {"a": "1", "b": "2"})
    assert path.read_text() == f'{{\n"of": {json.dumps(of)},\n"a": {{"key": "1"}},\n"b": {{"key": "2"}}\n}}\n'
    assert records.read(book.root, "epsilon") == {"a": {"key": "1"}, "b": {"key": "2"}}
    assert (records.read(book.root, "none"), records.origin(book.root, "none")) == ({}, {})
    said = "Measured with version 0.1.0.dev0, outside of a repository."
    assert text_of(fill("evidence.of_record", of=records.origin(book.root, "epsilon"))) == said
    records.check(book.root)
    # One that only mends has the record of the version that it mends.
    book.edit("src/walks/__init__.py", "0.1.0", "0.1.7")
    records.check(book.root)
    # The next version: nothing of it is measured, then one job.
    book.edit("src/walks/__init__.py", "0.1.7", "0.2.0")
    records.keep(book.root, "epsilon", {}, {"a": "3", "b": "4"})
    assert records.origin(book.root, "epsilon") == of
    assert records.read(book.root, "epsilon") == {"a": {"key": "1"}, "b": {"key": "2"}}
    with pytest.raises(ValueError, match=r"of version 0\.2\.0, got version 0\.1\.0\.dev0 and 0 results"):
        records.check(book.root)
    records.keep(book.root, "epsilon", {"a": {"key": "3"}}, {"a": "3", "b": "4"})
    assert records.origin(book.root, "epsilon")["version"] == "0.2.0.dev0"
    assert records.read(book.root, "epsilon") == {"a": {"key": "3"}, "b": {"key": "2", "older": True}}
    assert main(["--root", str(book.root), "freeze"]) == 2
    assert "got version 0.2.0.dev0 and 1 results of a record before" in capsys.readouterr().err
    # What has no job any more goes, and no longer stands in the way of a release.
    records.keep(book.root, "epsilon", {}, {"a": "3"})
    records.check(book.root)
    path.write_text('["a"]')
    with pytest.raises(ValueError, match=r"epsilon\.json: expected results by the names of their jobs"):
        records.read(book.root, "epsilon")
