"""Planted faults: the list still fits the code, and one fault is planted, run and seen from end to end."""

import json
from pathlib import Path

import pytest

from companion import check
from companion.evidence import faults, resumable
from companion.findings import Findings
from toybook import write

ROOT = Path(__file__).resolve().parents[2]

TESTS = """\
from walks import pairs


def test_the_parabola():
    assert pairs.both(3.0) == 9.0
"""

GROSS = {
    "id": "no-square",
    "file": "src/walks/pairs.py",
    "old": "LENGTH * x**2",
    "new": "LENGTH * x",
    "what": "The square is lost.",
    "about": "parabola",
    "size": "gross",
    "tests": ["tests/test_pairs.py"],
    "pages": ["audits/probe"],
}
UNSEEN = GROSS | {"id": "unseen", "old": '"""x^2."""', "new": '"""x^3."""', "what": "Only words.", "size": "1%"}


@pytest.fixture
def book(audited):
    """The toy book in two pages, with one test."""
    write(audited.path("tests"), {"test_pairs.py": TESTS})
    return audited


def listed(book, *contents):
    book.path("tests/faults.yml").write_text(json.dumps(contents))
    return book


def test_a_fault_whose_text_is_gone_is_found_before_any_page_runs(book):
    assert check.book(listed(book, GROSS).root) == []
    (found,) = check.book(listed(book, GROSS | {"old": "LENGTH * x**3"}).root)
    assert (found.file, found.rule) == ("faults.yml", "old")


def test_the_list_of_the_book_fits_the_code_and_covers_its_subjects():
    found = faults.read(ROOT)
    sizes = [fault.size for fault in found]
    assert sizes.count("gross") >= 60
    assert len(sizes) - sizes.count("gross") >= 40
    places = [Path(fault.file.partition("src/")[2]).parts for fault in found]
    assert {"spinbook", "experiments", "chapters"} <= {room for room, *_ in places}
    changed = {parts[1].removesuffix(".py") for parts in places if parts[0] == "spinbook"}
    physics = {path.stem for path in (ROOT / "src" / "spinbook").iterdir() if not path.name.startswith("_")}
    # What holds no formula of a chapter: checks of arguments, annotations, what is read from files, and the solver.
    plain = {
        "annotations",
        "arguments",
        "book",
        "fixed_point",
        "precision",
        "py",
        "tensors",
        "transforms",
        "validate",
    }
    assert physics - plain <= changed
    pages = {page for fault in found for page in fault.pages}
    assert {f"audits/{path.stem}" for path in (ROOT / "notebooks" / "audits").glob("*.md")} <= pages


def test_everything_that_is_wrong_with_a_list_is_said_at_once(book):
    listed(
        book,
        GROSS | {"old": "LENGTH"},
        GROSS | {"id": "two", "new": "LENGTH *"},
        GROSS | {"id": "three", "tests": ["tests/none"], "pages": ["none"]},
        GROSS | {"id": "huge", "size": "huge", "profile": "slow"},
        GROSS | {"id": "four", "file": "src/none.py"},
        GROSS | {"id": "five", "colour": "red"},
        "a word",
    )
    with pytest.raises(Findings) as raised:
        faults.read(book.root)
    said = str(raised.value)
    for words in (
        "[old] no-square: old: expected it once in src/walks/pairs.py, got it 2 times",
        "[new] two: new: src/walks/pairs.py can then not be read",
        "[format] huge: size: 'huge' is not one of ['gross', '1%', '0.1%']",
        "[format] huge: profile: 'slow' is not one of ['quick', 'full']",
        "[tests] three: tests: expected files or folders that are there, got ['tests/none']",
        "[pages] three: pages: not in notebooks: ['none']",
        "[file] four: file: src/none.py is not there",
        "[format] five: Additional properties are not allowed ('colour' was unexpected)",
        "[format] a fault: 'a word' is not of type 'object'",
    ):
        assert words in said, said
    listed(book, GROSS, GROSS)
    with pytest.raises(Findings, match=r"\[id\] no-square: 'no-square' is there twice"):
        faults.read(book.root)


def test_a_fault_is_planted_in_a_copy_and_nowhere_else(book):
    (fault,) = faults.read(listed(book, GROSS).root)
    copy = book.root.parent / "copy"
    faults.plant(book.root, fault, copy)
    assert "LENGTH * x\n" in (copy / "src/walks/pairs.py").read_text()
    assert "LENGTH * x**2\n" in book.path("src/walks/pairs.py").read_text()
    assert (copy / "book/claims/probe.yml").is_file()
    assert not (copy / "_build").exists()


def test_pages_of_all_faults_share_what_they_compile(book, monkeypatch):
    given = []
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    monkeypatch.setattr(
        faults.execution, "run", lambda *arguments, extra_environment, **options: given.append(extra_environment)
    )
    folders = {
        job.folder(book.root) for job in faults.jobs(listed(book, GROSS, UNSEEN).root) if job.unit != faults.TESTS
    }
    assert len(folders) > 1
    for folder in folders:
        faults._run_page(book.root, "audits/probe", "quick", folder)
    (shared,) = {Path(environment["JAX_COMPILATION_CACHE_DIR"]) for environment in given}
    assert shared.is_dir()
    assert not any(shared.is_relative_to(folder) for folder in folders)


@pytest.mark.slow
@pytest.mark.long
def test_a_fault_is_seen_by_a_test_and_by_a_claim_and_words_by_nobody(book, capsys):
    listed(book, GROSS, UNSEEN)
    assert faults.run(book.root) == []
    said = capsys.readouterr().out
    assert "no-square, tests: tests.test_pairs::test_the_parabola (1 tests)" in said
    assert "unseen, tests: no test fails (1 tests)" in said
    results = {job.name: found for job, found in faults._results(book.root, faults.jobs(book.root)).items()}
    assert results["no-square, tests"]["failed"] == "tests.test_pairs::test_the_parabola"
    # The map of equations says of the claim that it rests on the function.
    seen = results["no-square, audits/probe"]
    assert (seen["claims"], seen["unforeseen"], seen["stopped"]) == (["probe.slope"], [], "")
    assert seen["seconds"] > 0
    # What is done stays done; what it was made of must be the same.
    faults.run(book.root)
    assert "5 jobs, 5 of them done before" in capsys.readouterr().out
    book.edit("tests/test_pairs.py", "9.0", "9.5")
    assert [job.unit for job in faults.jobs(book.root) if resumable.outcome(book.root, job) is None] == [
        "tests",
        "tests",
    ]
    # A gross fault that no test notices is a problem, and so is a job without a result.
    listed(book, GROSS, UNSEEN | {"size": "gross"})
    (job,) = (job for job in faults.jobs(book.root, ["unseen"]) if job.unit == faults.TESTS)
    resumable.keep(job.folder(book.root), job.key, {"failed": "", "tests": 1})
    assert faults.run(book.root, only=["unseen"], tests_alone=True) == ["unseen, tests: no test fails"]
    with pytest.raises(ValueError, match=r"ID: expected some of \['no-square', 'unseen'\], got \['none'\]"):
        faults.run(book.root, only=["none"])
