"""What is published is what was computed: every damage is named and mended, and nothing outlives a build that ends."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from itertools import cycle
from pathlib import Path

import nbformat
import psutil
import pytest

from companion import __main__ as command
from companion import claims
from companion.declaring import notebooks
from companion.running import disk, environment, execution, freshness, lifeline
from companion.site import rendering
from toybook import committed, git, processes_of, wait_until

ROOT = Path(__file__).resolve().parents[2]
FIGURE = "figures/probe-line"


def delete(name):
    return lambda folder: disk.remove(folder / name)


def truncate(name):
    def damage(folder):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: len(content) // 2])

    return damage


def flip(name):
    """One bit in the middle of a file."""

    def damage(folder):
        content = bytearray((folder / name).read_bytes())
        content[len(content) // 2] ^= 1
        (folder / name).write_bytes(content)

    return damage


def exchange(name, old, new):
    def damage(folder):
        text = (folder / name).read_text(encoding="utf-8")
        assert old in text
        (folder / name).write_text(text.replace(old, new), encoding="utf-8")

    return damage


def add(name):
    def damage(folder):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("{}", encoding="utf-8")

    return damage


def become_folder(name):
    def damage(folder):
        (folder / name).unlink()
        (folder / name).mkdir()

    return damage


def lead_nowhere(name):
    def damage(folder):
        (folder / name).unlink()
        (folder / name).symlink_to("nowhere")

    return damage


def become_file(folder):
    shutil.rmtree(folder)
    folder.write_text("", encoding="utf-8")


RESULTS = {
    "all figures are deleted": (delete("figures"), "is missing"),
    "a measurement is altered": (exchange("measured.jsonl", "1.0", "1.0009"), "measured.jsonl was altered"),
    "a bit of a picture flips": (flip(f"{FIGURE}/probe-line.pdf"), "probe-line.pdf was altered"),
    "a drawing becomes a dead link": (lead_nowhere(f"{FIGURE}/probe-line.svg"), "probe-line.svg is missing"),
    "a figure comes from nowhere": (add("figures/other/figure.json"), "other/figure.json does not belong there"),
    "the record is truncated": (truncate("record.json"), "record.json is missing or damaged"),
    "the record is altered": (exchange("record.json", '"threads": ', '"threads": 1'), "record.json is missing or"),
    "the result is a file": (become_file, "no finished run"),
}


@pytest.mark.parametrize("case", RESULTS)
def test_a_result_does_not_stand_when(built, tmp_path, case):
    damage, message = RESULTS[case]
    folder = execution.results_folder(tmp_path, "probe")
    shutil.copytree(execution.results_folder(built[0].root, "probe"), folder)
    key = execution.read_record(folder).key
    assert execution.standing(tmp_path, "probe", key).record is not None
    damage(folder)
    standing = execution.standing(tmp_path, "probe", key)
    assert standing.record is None
    assert message in standing.reason


def test_a_result_does_not_stand_with_another_version_of_a_package_that_its_kernel_had_loaded(built, tmp_path):
    folder = execution.results_folder(tmp_path, "probe")
    shutil.copytree(execution.results_folder(built[0].root, "probe"), folder)
    record = execution.read_record(folder)
    assert {"matplotlib", "numpy", "pillow"} <= set(record.packages), "directly and through the library"
    packages = {**record.packages, "pillow": "0.1"}
    execution.write_record(folder, execution.Record(**{**vars(record), "packages": packages}))
    reason = execution.standing(tmp_path, "probe", record.key).reason
    assert reason.startswith("pillow was 0.1 when it ran and is ")


SITES = {
    "a number on a page is altered": (
        exchange("html/index.html", "1 statement", "2 statement"),
        "index.html was altered",
    ),
    "much is deleted": (delete("html/_static"), " more"),
    "a page comes from nowhere": (add("html/book/other.html"), "book/other.html does not belong there"),
    "the whole site is deleted": (delete("html"), "is missing"),
}


@pytest.mark.parametrize("case", SITES)
def test_the_site_is_made_again_when(built, tmp_path, case):
    damage, message = SITES[case]
    old = built[0].path("_build")
    shutil.copytree(old / "html", tmp_path / "html")
    shutil.copy(old / "site.json", tmp_path)
    key = json.loads((tmp_path / "site.json").read_text(encoding="utf-8"))["key"]
    assert rendering._damage(tmp_path, key) == ""
    damage(tmp_path)
    assert message in rendering._damage(tmp_path, key)


@pytest.mark.parametrize("damage", [delete, truncate, become_folder])
def test_the_site_is_made_again_without_its_list_of_files(built, tmp_path, damage):
    shutil.copy(built[0].path("_build/site.json"), tmp_path)
    key = json.loads((tmp_path / "site.json").read_text(encoding="utf-8"))["key"]
    damage("site.json")(tmp_path)
    assert rendering._damage(tmp_path, key) is None


@pytest.mark.slow
def test_no_state_of_the_build_folder_makes_a_build_fail_and_what_was_damaged_is_the_same_again(built, copy):
    results, old = execution.results_folder(copy.root, "probe"), execution.results_folder(built[0].root, "probe")
    (results / FIGURE / "probe-line.svg").unlink()
    truncate(f"{FIGURE}/figure.json")(results)
    exchange("measured.jsonl", "1.0", "1.0009")(results)
    (copy.path("_build/html/notebooks/probe.html")).unlink()
    for name in (".lock", "claims.json", "status.json", "sphinx.log", "site.json"):
        disk.remove(copy.path("_build") / name)
        copy.path("_build").joinpath(name).mkdir()
    for name in ("figures", "failed", "work"):
        disk.remove(copy.path("_build") / name)
        copy.path("_build").joinpath(name).write_text("", encoding="utf-8")
    outcome, printed = copy.build()
    assert outcome.problems == [], printed
    assert outcome.executed == ["probe"]
    assert "probe: its result is damaged, figures/probe-line/probe-line.svg is missing" in printed
    again, before = disk.digests(results), disk.digests(old)
    # Times differ, and the places in memory by which pickled sets are ordered.
    timed = {"probe.ipynb", "record.json", "progress.json", "drawn/probe-line"}
    assert {name: again[name] for name in again if name not in timed} == {
        name: before[name] for name in before if name not in timed
    }
    assert list(copy.path("_build/work").iterdir()) == []


def test_a_damaged_site_is_made_again_without_a_kernel_and_the_build_says_why(copy, monkeypatch):
    def without_pages(root, work, *_):
        assert work.is_dir()
        return work, [], ["index"]

    monkeypatch.setattr(rendering, "_sphinx_pages", without_pages)
    copy.path("_build/html/book/claims.html").write_text("", encoding="utf-8")
    outcome, printed = copy.build()
    assert outcome.executed == []
    assert outcome.rendered
    assert "The site was damaged and is made again: book/claims.html was altered" in printed


def test_a_changed_licence_makes_the_site_again(copy):
    results = {"probe": execution.results_folder(copy.root, "probe")}
    before = rendering._key(copy.root, results)
    copy.path("LICENSE-CC-BY-4.0").write_text("Do what you like.", encoding="utf-8")
    assert rendering._key(copy.root, results) != before


def test_a_site_that_was_not_built_whole_leaves_the_old_one(copy, monkeypatch):
    before = disk.digests(copy.path("_build/html"))

    def half(stage, output, log):
        (output / "_build" / "html").mkdir(parents=True)
        (output / "_build" / "html" / "index.html").write_text("<html></html>", encoding="utf-8")
        return []

    monkeypatch.setattr(rendering, "_jupyter_book", half)
    copy.edit("book/claims.md", "# Claims", "# All claims")
    outcome, _ = copy.build()
    assert any("the site was not built, it lacks notebooks/probe" in problem for problem in outcome.problems)
    assert disk.digests(copy.path("_build/html")) == before


@pytest.mark.parametrize("in_one_step", [True, False])
def test_a_folder_takes_the_place_of_another_one_in_one_step_or_can_be_brought_back(tmp_path, monkeypatch, in_one_step):
    new, target = tmp_path / "new", tmp_path / "there" / "target"
    for round in range(3):
        new.mkdir()
        (new / "file").write_text(str(round), encoding="utf-8")
        if not in_one_step:
            monkeypatch.setattr(disk, "_exchange", lambda one, other: False)
        disk.put(new, target)
        assert (target / "file").read_text(encoding="utf-8") == str(round)
        assert not new.exists()
        assert [path.name for path in target.parent.iterdir()] == ["target"]
    # Killed between the two steps.
    target.rename(disk._aside(target))
    disk.recover(target)
    assert (target / "file").read_text(encoding="utf-8") == "2"


def test_folders_are_exchanged_in_one_step_where_the_system_can(tmp_path):
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    if not disk._exchange(tmp_path / "one", tmp_path / "other"):
        pytest.skip("this file system cannot")
    assert (tmp_path / "one" / "other").exists()
    assert (tmp_path / "other" / "one").exists()


def test_work_of_a_living_process_stays_and_that_of_a_dead_one_goes(tmp_path):
    dead = tmp_path / "dead-1"
    dead.mkdir()
    (tmp_path / "file").touch()
    with disk.owned(tmp_path, "alive") as alive:
        disk.sweep_out(tmp_path)
        assert list(tmp_path.iterdir()) == [alive]
    assert list(tmp_path.iterdir()) == []


def bare(book, code):
    """The toy book with its cell of parameters and one of `code`, and with a file of data that its page declares."""
    parameters = book.chapter.read_text(encoding="utf-8").partition("import numpy")[0]
    parameters = parameters.replace("  budget: 60", "  budget: 60\n  data: [declared.txt]")
    book.chapter.write_text(f"{parameters}{code}\n```\n", encoding="utf-8")
    book.path("declared.txt").write_text("x", encoding="utf-8")
    notebooks.sync(book.root)
    return notebooks.load(book.root, "probe")


def test_settings_of_the_user_do_not_reach_a_kernel_and_an_extra_environment_does(toy_book, tmp_path, monkeypatch):
    settings = tmp_path / "settings"
    (settings / "matplotlib").mkdir(parents=True)
    (settings / "matplotlib" / "matplotlibrc").write_text("lines.linewidth: 7\n", encoding="utf-8")
    strangers = {
        "MATPLOTLIBRC": str(settings / "matplotlib"),
        "XDG_CONFIG_HOME": str(settings),
        "MPLCONFIGDIR": str(settings / "matplotlib"),
        "JAX_ENABLE_X64": "1",
        "COMPANION_ROUGH": "1",
        "PYTHONPATH": str(settings),
        "MKL_CBWR": "AVX",
        "LC_ALL": "de_DE.UTF-8",
    }
    for name, value in strangers.items():
        monkeypatch.setenv(name, value)
    before = dict(os.environ)
    code = (
        "import json, os\nimport matplotlib\n"
        'print(json.dumps([dict(os.environ), matplotlib.rcParams["lines.linewidth"]]))'
    )
    chapter = bare(toy_book, code)
    extra = {"ATEN_CPU_CAPABILITY": "default"}
    assert execution.run(toy_book.root, chapter, tmp_path / "run", extra_environment=extra) is None
    assert dict(os.environ) == before
    cell = nbformat.read(tmp_path / "run" / "probe.ipynb", as_version=4).cells[-1]
    seen, width = json.loads(cell.outputs[0].text)
    assert width == 1.5
    # These four are set by ipykernel and its launcher, whoever starts it.
    ours = {"JPY_PARENT_PID", "JPY_SESSION_NAME", "TERM", "CLICOLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "PAGER"}
    ours |= {"GIT_PAGER", "MPLBACKEND", "PYDEVD_USE_FRAME_EVAL", "KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK"}
    ours |= {"IPYTHONDIR", "MATPLOTLIBRC", "NUMBA_CACHE_DIR", "PYTHONPATH", "JAX_COMPILATION_CACHE_DIR"}
    # JAX_PLATFORMS is set by the first cell of a notebook.
    ours |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "JAX_PLATFORMS", *execution.THREAD_VARIABLES}
    known = {*environment.ALLOWED, *environment.FIXED, *environment.compiler(), *ours, "ATEN_CPU_CAPABILITY"}
    assert {name for name in seen if not name.startswith(("COMPANION_", "JUPYTER_"))} - known == set()
    assert seen["ATEN_CPU_CAPABILITY"] == "default"
    assert seen["PYTHONPATH"] == str(toy_book.root / "src")
    assert seen["LC_ALL"] == "C.UTF-8"
    assert not {"JAX_ENABLE_X64", "COMPANION_ROUGH", "MKL_CBWR", "XDG_CONFIG_HOME"} & set(seen)


def test_compiled_code_of_equal_size_and_second_is_not_taken_for_that_of_the_source(toy_book):
    source = toy_book.path("src/walks/steps.py")
    for length in ("3.0", "1.0"):
        source.write_text(f"LENGTH = {length}\n")
        os.utime(source, (1e9, 1e9))
        if length == "3.0":
            variables = os.environ | {"PYTHONPATH": str(toy_book.path("src")), "PYTHONDONTWRITEBYTECODE": ""}
            subprocess.run([sys.executable, "-c", "import walks.steps"], env=variables, check=True)
    done = subprocess.run(
        [sys.executable, "-c", "from walks import steps; print(steps.LENGTH)"],
        env=variables,
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "3.0\n", "Python itself is misled"
    assert execution.publish(toy_book.root, "probe", threads=1) is None
    measured = dict(claims.recorded(execution.results_folder(toy_book.root, "probe")))
    assert measured["probe.top"].value == 1.0


def test_a_file_of_the_repository_that_no_key_covers_fails_the_run(toy_book, tmp_path):
    code = (
        "import os, pathlib\nroot = pathlib.Path(os.environ['COMPANION_ROOT'])\n"
        "(root / 'declared.txt').read_text()\nopen(root / 'book' / 'claims' / 'probe.yml').close()\n"
        "(root / 'src' / 'walks' / 'beside.json').read_text()\n"
        "open('own.txt', 'w').close()\nopen(os.path.relpath(root / 'notes.txt')).close()\n"
        "(root / '_build' / 'chapters.txt').read_text()\n"
        "os.symlink(root / 'requirements.lock', 'link')\nopen('link').close()\nfrom walks import pairs"
    )
    chapter = bare(toy_book, code)
    toy_book.path("_build").mkdir()
    for name in ("notes.txt", "src/walks/beside.json", "_build/chapters.txt"):
        toy_book.path(name).write_text("{}", encoding="utf-8")
    failure = execution.publish(toy_book.root, "probe", threads=1)
    # What the claims declare is no business of a kernel.
    unseen = ["_build/chapters.txt", "book/claims/probe.yml", "notes.txt", "requirements.lock"]
    assert f"files of the repository opened but not covered by the freshness key: {unseen}" in failure.error
    assert chapter.data == ("declared.txt",)


def test_a_run_under_an_extra_environment_is_part_of_nothing_published(toy_book):
    with pytest.raises(ValueError, match="target: expected a folder for a run with an extra_environment"):
        execution.publish(toy_book.root, "probe", threads=1, extra_environment={"XLA_FLAGS": "x"})
    assert not toy_book.path("_build").exists()


def test_the_commit_of_a_repository_around_the_book_is_not_the_books(tmp_path, monkeypatch):
    (tmp_path / "other.txt").touch()
    committed(tmp_path)
    book = tmp_path / "book"
    book.mkdir()
    (book / "_toc.yml").touch()
    assert freshness.state(book) == freshness.State("unknown", True)
    # The root of another repository, and a hook of it.
    assert freshness.state(tmp_path) == freshness.State("unknown", True)
    # A copy inside a repository of this very book.
    (tmp_path / "_toc.yml").touch()
    git(tmp_path, "add", "_toc.yml")
    git(tmp_path, "commit", "-qm", "second")
    assert freshness.state(tmp_path).commit != "unknown"
    assert freshness.state(book) == freshness.State("unknown", True)
    committed(book)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / ".git"))
    found = freshness.state(book)
    assert not found.dirty
    monkeypatch.delenv("GIT_DIR")
    assert found.commit == git(book, "rev-parse", "HEAD")
    (book / "new.txt").touch()
    assert freshness.state(book).dirty


def test_a_full_disk_is_a_sentence_and_the_old_site_stays(copy, capsys):
    before = disk.digests(copy.path("_build/html"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, hard))
    try:
        assert command.main(["--root", str(copy.root), "book"]) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert "File too large" in error
    assert len(error.splitlines()) == 1
    assert disk.digests(copy.path("_build/html")) == before
    assert copy.build()[0].problems == []


def test_claims_that_cannot_be_read_are_all_named_before_a_chapter_runs(toy_book):
    toy_book.path("book/claims/probe.yml").write_text("format: 2\nclaims:\n- {id: probe.top}", encoding="utf-8")
    with pytest.raises(ValueError, match=r"probe\.yml:3: \[missing-field\] probe\.top: missing fields"):
        toy_book.build()
    assert not toy_book.path("_build/failed").exists()


PARENT = """
import os, subprocess, sys, time
from pathlib import Path
from companion.running import lifeline
child = "from companion.running import lifeline; lifeline.tie(); import subprocess, sys, time\\n" \\
    "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(100)'], start_new_session=True)\\n" \\
    "print(p.pid, flush=True); time.sleep(100)"
process = lifeline.start([sys.executable, "-c", child], log=Path(sys.argv[1]), environment=os.environ, cwd=Path.cwd())
with lifeline.orderly():
    try:
        print(process.pid, flush=True)
        process.wait()
    finally:
        lifeline.stop(process)
"""


# Shells start what runs in the background deaf to SIGINT, and children inherit that. A function called between fork and
# exec would do it too, but JAX is right to warn of forks.
LISTENING = [
    sys.executable,
    "-c",
    "import os, signal, sys\n"
    "for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP): signal.signal(number, signal.SIG_DFL)\n"
    "os.execv(sys.argv[1], sys.argv[1:])",
]


def gone(pid):
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_children_and_their_children_end_with_a_process_that_gets(tmp_path, number):
    log = tmp_path / "log"
    parent = subprocess.Popen(
        [*LISTENING, sys.executable, "-c", PARENT, str(log)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    child = int(parent.stdout.readline())
    wait_until(lambda: log.read_text(encoding="utf-8").endswith("\n"))
    grandchild = int(log.read_text(encoding="utf-8"))
    assert not gone(child)
    assert not gone(grandchild)
    parent.send_signal(number)
    parent.wait()
    parent.stdout.close()
    wait_until(lambda: gone(child) and gone(grandchild), seconds=10)


def test_a_child_that_does_not_listen_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(lifeline, "_PATIENCE_SECONDS", 0.05)
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(100)"
    log = tmp_path / "log"
    process = lifeline.start([sys.executable, "-c", code], log=log, environment=os.environ, cwd=tmp_path)
    wait_until(lambda: log.read_text(encoding="utf-8"))
    lifeline.stop(process)
    assert process.returncode == -signal.SIGKILL


def drops(number):
    """As a destructor does."""
    with suppress(KeyboardInterrupt):
        signal.raise_signal(number)


def turns(number):
    """As an import does that was stopped halfway."""
    try:
        signal.raise_signal(number)
    except KeyboardInterrupt:
        raise AttributeError("a partially imported module") from None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("what_runs", [drops, turns])
def test_a_signal_ends_a_run_whatever_became_of_its_interruption(what_runs, number):
    before = signal.signal(number, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt) as raised, lifeline.orderly():
            what_runs(number)
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, before)
    assert raised.value.args == (number,)


def test_an_error_that_no_signal_caused_stays_what_it_is():
    with pytest.raises(ValueError, match="of its own"), lifeline.orderly():
        raise ValueError("of its own")


def test_a_run_under_nohup_outlives_its_terminal():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with lifeline.orderly():
            signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


MOMENTS = {
    "it starts": ".lock",
    "a chapter starts": "work/probe-*/log.txt",
    "the kernel starts": "work/probe-*/run/kernel",
    "a cell runs": "work/probe-*/run/progress.json",
    "the renderer starts": "work/site-*",
    "pages are written": "work/site-*/site/_build/html/*.html",
    "the site is finished": "work/site-*/site/_build/html/claims.json",
}
"""What is there in the build folder by then."""


@pytest.mark.slow
@pytest.mark.parametrize("numbers", [[signal.SIGKILL], [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]])
def test_a_build_that_is_stopped_leaves_the_old_site_nothing_running_and_nothing_in_the_way(copy, numbers):
    before = disk.digests(copy.path("_build/html"))
    line = [sys.executable, "-m", "companion", "--root", str(copy.root), "book"]
    stopped = []
    # Signals that are handled alike take turns.
    for round, ((moment, sign), number) in enumerate(zip(MOMENTS.items(), cycle(numbers), strict=False)):
        # The code is stale in every round, and whole sites are told apart by their title.
        copy.edit("notebooks/probe.md", "x = np.linspace(0, 1, size)", f"# {round}\nx = np.linspace(0, 1, size)")
        copy.edit("notebooks/probe.md", "# A probe" if round == 0 else f"# Probe {round - 1}\n", f"# Probe {round}\n")
        disk.remove(copy.path("_build/.lock"))
        process = subprocess.Popen(
            [*LISTENING, *line], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8"
        )

        def reached(sign: str = sign, process: subprocess.Popen[str] = process) -> bool:
            return process.poll() is not None or any(copy.path("_build").glob(sign))

        wait_until(reached, seconds=300)
        process.send_signal(number)
        _, error = process.communicate(timeout=60)
        if process.returncode:
            stopped.append(moment)
            said = "" if number == signal.SIGKILL else f"stopped by {number.name}: what was finished is kept\n"
            status = -number if number == signal.SIGKILL else 128 + number
            assert (process.returncode, error) == (status, said), moment
        wait_until(lambda: not processes_of(copy.root), seconds=10)
        found = disk.digests(copy.path("_build/html"))
        if found != before:
            page = copy.path("_build/html/notebooks/probe.html").read_text(encoding="utf-8")
            assert f"Probe {round}" in page, "the new site, whole"
            before = found
    assert len(stopped) >= len(MOMENTS) - 1, "the last moments are short, and a build may be through them"
    outcome, printed = copy.build()
    assert outcome.problems == [], printed
    assert list(copy.path("_build/work").iterdir()) == []
    assert copy.build()[0].rendered is False


def test_a_run_that_a_signal_ended_says_which_even_when_it_came_while_a_dataclass_was_made(tmp_path):
    code = """\
from companion.__main__ import end
try:
    exec("raise KeyboardInterrupt(15)")
except KeyboardInterrupt:
    end(143)
"""
    (tmp_path / "interrupted.py").write_text(code, encoding="utf-8")
    # Only a module that is run by its name, as the command is, ends by the interpreter's own notes.
    done = subprocess.run([sys.executable, "-m", "interrupted"], cwd=tmp_path, check=False)
    assert done.returncode == 128 + signal.SIGTERM


@pytest.mark.slow
def test_a_book_is_built_under_a_path_and_in_a_locale_that_know_little_of_letters(toy_book, tmp_path):
    root = tmp_path / "Bücher mit Leerzeichen"
    toy_book.root.rename(root)
    notebooks.sync(root)
    plain = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    (root / "book" / "claims.md").write_text("# Claims über ± all\n\n```{claims-ledger}\n```\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "companion", "--root", str(root), "book"],
        capture_output=True,
        encoding="utf-8",
        check=False,
        env=os.environ | plain,
    )
    log = (root / "_build" / "sphinx.log").read_text(encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr + log
    assert "über ±" in (root / "_build" / "html" / "book" / "claims.html").read_text(encoding="utf-8")
