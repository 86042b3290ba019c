"""Paths through the processor: what runs on which, what is kept, and what is said of it."""

import sys

import numpy as np
import pytest
import scipy

from companion import claims
from companion.evidence import portability, resumable
from companion.running import disk
from toybook import write

PATHS = {path.name: path for path in portability.PATHS}


@pytest.fixture
def book(toy_book):
    """The toy book with two folders of tests; one of them fails where COMPANION_SHUFFLE is set."""
    files = {
        "waves/test_waves.py": "import os\n\ndef test_wave():\n    assert 'COMPANION_SHUFFLE' not in os.environ\n",
        "heat/test_heat.py": "torch = None\n\ndef test_heat():\n    assert torch is None\n",
        "book/test_book.py": "def test_page():\n    raise AssertionError\n",
    }
    write(toy_book.path("tests"), files)
    return toy_book


def finish(book, job, **content):
    resumable.keep(job.folder(book.root), job.key, content)


def test_a_path_skips_what_it_cannot_move_and_of_a_folder_the_files_that_do_not_name_its_package(book):
    found = {(job.path.name, job.unit) for job in portability.jobs(book.root)}
    assert {("as is", "probe"), ("as is", "waves"), ("MKL, compatible", "heat")} <= found
    # Neither of these two imports PyTorch; the third has no pages, and the last tests no numbers.
    assert not found & {("MKL, compatible", "waves"), ("MKL, compatible", "probe"), ("shuffled tests", "probe")}
    assert not any(unit == "book" for _, unit in found)
    book.path("tests/waves/test_tensors.py").write_text("import torch\n\ndef test_tensor():\n    torch.ones(3)\n")
    book.path("tests/heat/test_cold.py").write_text("torchlight = 1\n\ndef test_cold():\n    assert torchlight\n")
    torch_only = {"tensors", "heat"}
    for name in ("MKL, compatible", "MKL, SSE 4.2", "PyTorch, plain loops", "four threads"):
        units = portability._test_units(book.root, PATHS[name].package)
        files = {file.stem.removeprefix("test_") for unit in ("waves", "heat") for file in units[unit]}
        assert files == torch_only | ({"waves", "cold"} if name == "four threads" else set())


def test_of_a_folder_without_numbers_the_folders_within_it_are_run(book):
    write(book.path("tests"), {"book/flow/test_flow.py": "def test_flow():\n    assert True\n"})
    units = portability._test_units(book.root, None)
    assert [file.name for file in units["flow"]] == ["test_flow.py"]
    assert "book" not in units


def test_only_pytorch_brings_its_own_linear_algebra():
    """The reason why the paths of MKL leave out everything else; false where NumPy or SciPy is built against MKL."""
    for package in (np, scipy):
        for library in ("blas", "lapack"):
            assert "mkl" not in package.show_config(mode="dicts")["Build Dependencies"][library]["name"].lower()


def test_results_of_other_code_do_not_count(book):
    job = next(job for job in portability.jobs(book.root) if job.unit == "waves")
    finish(book, job, tests=1, failed=[])
    assert resumable.outcome(book.root, job) is not None
    book.edit("tests/waves/test_waves.py", "test_wave", "test_surf")
    job = next(job for job in portability.jobs(book.root) if job.unit == "waves")
    assert resumable.outcome(book.root, job) is None
    (job.folder(book.root) / "outcome.json").write_text("{")
    assert resumable.outcome(book.root, job) is None


def test_moves_are_measured_in_bounds_and_what_no_longer_holds_is_named(book, monkeypatch):
    narrow = "JAX and NumPy, SSE 4.2"
    jobs = portability.jobs(book.root)
    for job in jobs:
        # The published value is 1, the bound 0.001 and three uncertainties.
        value = {"as is": 1.0, "again": 1.0, narrow: 1.0005, "four threads": 1.01}.get(job.path.name, 1.0)
        if job.is_chapter:
            finish(book, job, measured={"probe.top": [value, 0.0, [0.5, 0.0]]})
        elif job.path.name != "shuffled tests":
            finish(book, job, tests=3, failed=["waves::test_wave"] if job.path.name == narrow else [])
    monkeypatch.setattr(resumable.Children, "run", lambda *_, **__: True)
    problems = portability.run(book.root, only=[narrow, "four threads", "again", "shuffled tests"])
    assert sorted(problems) == [
        f"{narrow} | heat | tests: waves::test_wave fails",
        f"{narrow} | waves | tests: waves::test_wave fails",
        "four threads | probe | page: probe.top does not hold",
        "shuffled tests | heat | tests: no result",
        "shuffled tests | waves | tests: no result",
    ]
    outcomes = {job: found for job in jobs if (found := resumable.outcome(book.root, job))}
    results = portability._results(book.root, outcomes)
    moved = {job.path.name: found["moved"] for job, found in results.items() if job.is_chapter}
    assert moved["again"] == {}
    assert moved[narrow] == {"probe.top": [pytest.approx(0.0005), pytest.approx(0.5)]}


@pytest.mark.slow
def test_a_kernel_gets_what_functions_return_in_single_precision(book):
    book.edit("src/walks/steps.py", "1.0", "1.1")
    job = next(job for job in portability.jobs(book.root) if job.path.rounds)
    assert portability._run_chapter(book.root, job)["measured"]["probe.top"][0] == float(np.float32(1.1))


@pytest.mark.parametrize(
    ("expects", "share"),
    [
        ("{above: 0.9, why: w}", 0.005),
        ("{below: 1.2, why: w}", 0.0025),
        ("{between: [0.98, 3], why: w}", 0.025),
    ],
)
def test_a_claim_that_expects_a_side_has_the_room_up_to_it(book, expects, share):
    printed = "kind: number\n  published: 1.0\n  reading_error: 0.001"
    book.edit("book/claims/probe.yml", printed, f"kind: statement\n  expects: {expects}")
    before, after = ({"probe.top": [value, 0.0, [0.5, 0.0]]} for value in (1.0, 1.0005))
    found = portability._compared(claims.of_book(book.root), before, after)
    assert (found["claims"], found["moved"]) == (1, {"probe.top": [0.0005, share]})


@pytest.mark.slow
def test_jobs_run_under_their_variables_and_a_second_run_finds_them_done(book, capsys):
    problems = portability.run(book.root, only=["shuffled tests"])
    assert problems == ["shuffled tests | waves | tests: tests.waves.test_waves::test_wave fails"]
    capsys.readouterr()
    portability.run(book.root, only=["shuffled tests"])
    assert "1 jobs, 1 of them done before\n4 jobs, 4 of them done before" in capsys.readouterr().out


def test_jobs_that_begin_at_once_share_a_folder(tmp_path, monkeypatch):
    # The other job makes the folder just after the first has seen that there is none.
    real = disk.Path.mkdir

    def late(path, *args, **options):
        if path.name == "shared":
            real(path, parents=True, exist_ok=True)
            (path / "of-the-other").touch()
        return real(path, *args, **options)

    monkeypatch.setattr(disk.Path, "mkdir", late)
    assert disk.folder(tmp_path / "shared").is_dir()
    assert (tmp_path / "shared" / "of-the-other").exists()


def test_a_path_whose_environment_is_missing_is_left_out_and_one_that_does_not_exist_is_refused(
    book, monkeypatch, capsys
):
    monkeypatch.setattr(resumable.Children, "run", lambda *_, **__: pytest.fail("a job was started"))
    for job in portability.jobs(book.root):
        if job.path.name == portability.AS_IS:
            finish(book, job, **({"measured": {}} if job.is_chapter else {"tests": 1, "failed": []}))
    assert portability.run(book.root, only=["newest versions"]) == []
    assert "newest versions: left out, there is no environment in _build/newest" in capsys.readouterr().out
    with pytest.raises(ValueError, match=r"only: expected some of \['as is'.*got \['sideways'\]"):
        portability.run(book.root, only=["sideways"])


@pytest.mark.slow
def test_a_packed_page_runs_outside_of_the_project_and_is_compared_with_the_run_as_it_is(pair):
    pair.path("tests").mkdir()
    pair.path("_build/colab").symlink_to(sys.prefix)
    assert portability.run(pair.root, only=["Colab's image"]) == []
    (notebook, _) = sorted(pair.path("_build/portability/colab-s-image").rglob("done.ipynb"))
    assert "This notebook uses the walks 0.1.0.dev0 that it carries" in notebook.read_text()


def test_tests_run_beside_packages_that_the_machinery_lacks(book):
    python = book.path("_build/oldest/bin/python")
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\ntest "$2" = pytest && exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    path = PATHS["oldest versions"]
    job = next(job for job in portability.jobs(book.root) if (job.path, job.unit) == (path, "waves"))
    task = vars(job) | {"path": path.name, "cpu": 0}
    resumable.Children().run(portability.__name__, book.root, job.folder(book.root), task)
    found = resumable.outcome(book.root, job)
    assert (found["tests"], found["failed"]) == (1, [])


def test_a_page_that_cannot_be_packed_says_why(book, monkeypatch):
    monkeypatch.setattr(portability, "beside", lambda python, folder: folder / "bin" / "python")
    job = portability._job(PATHS["Colab's image"], "probe", True, "key")
    found = portability._run_chapter(book.root, job)
    problem = "probe: expected a finished run of the page, got none; `companion chapter` makes one"
    assert found == {"problem": problem}
