"""How pages run: the contract of a page, its key, its limits, and what a build keeps."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest

from companion import pages
from companion.run import build, execute, kernel, key, process
from tests.press.toybook import AUDIT, CHECKS, CLAIMS, FRONT, LESSON, processes_of, wait_until

PAGE = (
    FRONT
    + """\
  {summary: s, source: author2000source, prerequisites: none, budget: 60, quick: {}}
---

# A page
"""
)
PARAMETERS = "```{code-cell} ipython3\n:tags: [parameters]\n\nsize = 3\n```\n"


def page(book, *cells, **front):
    """Make the lesson a page of these cells: code, Markdown behind "# ", or code behind options ("[tags]" or YAML)."""
    text = PAGE.replace("budget: 60", ", ".join(f"{name}: {value}" for name, value in {"budget": 60, **front}.items()))
    for cell in (PARAMETERS, *cells):
        if cell.startswith(("```", "# ")):
            text += f"\n{cell.removeprefix('# ')}\n"
        else:
            text += f"\n```{{code-cell}} ipython3\n{cell}\n```\n"
    book.path(LESSON).write_text(text)
    book.path(CHECKS).unlink(missing_ok=True)
    return book


def figure(code, caption="It rises.", alt="It rises."):
    """A cell that draws the figure probe-line."""
    shown = {"mystnb": {"figure": {"name": "probe-line", "caption": caption}, "image": {"alt": alt}}}
    return f"---\n{json.dumps(shown)}\n---\nimport matplotlib.pyplot as plt\n{code}"


def notebook(book, folder="_build/try", name="probe"):
    return nbformat.read(book.path(f"{folder}/{name}.ipynb"), as_version=4)


def printed(cell):
    return "".join(output.text for output in cell.outputs if output.output_type == "stream")


def results(book, name="probe"):
    return execute.results_folder(book.root, name)


# The words of a page.


def test_numbers_are_evaluated_where_they_stand_and_kept_as_jupyter_keeps_them(ran):
    cells = notebook(ran, "_build/chapters/probe").cells
    kept = {
        cell.cell_type: [(one.expression, one.result.data["text/plain"]) for one in cell.metadata.user_expressions]
        for cell in cells
        if "user_expressions" in cell.metadata
    }
    assert kept == {
        "markdown": [("size", "20"), ('f"{y.max():.2f}"', "'1.00'")],
        "code": [("size", "20"), ('f"{y[-1]:.1f}"', "'1.0'")],
    }


def test_captions_and_alternative_texts_have_the_numbers_of_the_run(ran):
    records = {record["id"]: record for record in json.loads(ran.path("_build/figures.json").read_text())}
    line = records["probe-line"]
    assert line["caption"] == "Two walkers. It shows 20 points of $x^2$ as in {eq}`eq:probe-square`."
    assert line["alt"].endswith("from zero at the left to 1.0 at the right end.")
    assert json.loads(ran.path("_build/figures/probe-line/figure.json").read_text()) == line
    assert (line["chapter"], line["page"], line["parameters"]) == ("probe", "probe", {"size": 20})
    assert records["probe-slope"]["caption"] == "The slope of the parabola, which is a line."


def test_an_expression_sees_the_state_after_the_cells_above_it(toy_book):
    page(toy_book, "# First {eval}`size`.", "size = 4", "# Then {eval}`size`.", "size = 5")
    assert toy_book.run() is None
    markdown = [cell for cell in notebook(toy_book).cells if "user_expressions" in cell.metadata]
    assert [cell.metadata.user_expressions[0].result.data["text/plain"] for cell in markdown] == ["3", "4"]


@pytest.mark.parametrize("place", ["prose", "alt"])
def test_an_expression_that_raises_fails_the_page_with_its_text(toy_book, place):
    prose = page(toy_book, "x = [1]", "# There are {eval}`x[3]`.", "y = 1")
    if place == "alt":
        page(toy_book, "x = [1]", figure("plt.plot(x)", alt="To {eval}`x[3]`."), "y = 1")
    failure = prose.run()
    assert failure.error == "{eval}`x[3]`: IndexError: list index out of range"
    assert (failure.chapter, failure.cell) == ("probe", 2 if place == "prose" else 3)


# Figures.


@pytest.mark.parametrize(("code", "number"), [("x = 1", 0), ("plt.plot([1])\nplt.figure()", 2)])
def test_a_figure_cell_leaves_one_open_figure(toy_book, code, number):
    page(toy_book, figure(code))
    failure = toy_book.run(parameters={})
    assert f"figure probe-line: ValueError: expected one open figure when the cell ends, got {number}" in failure.error


def test_a_figure_is_taken_once_whether_it_is_shown_or_not_and_others_are_shown_as_ever(toy_book):
    page(toy_book, "import matplotlib.pyplot as plt\nplt.plot([1, 2]);", figure("plt.plot([1, 2])\nplt.show()"), "size")
    assert toy_book.run(parameters={}) is None
    shown = [cell.outputs for cell in notebook(toy_book).cells if cell.cell_type == "code"]
    assert [[output.metadata.get("companion") for output in outputs] for outputs in shown] == [
        [],
        [None],
        [{"figure": "probe-line"}],
        [None],
    ]
    assert "image/png" in shown[1][0].data
    assert toy_book.path("_build/try/figures/probe-line/probe-line.csv").read_text() == "x,line 1\n0.0,1.0\n1.0,2.0\n"


def test_the_quick_profile_draws_roughly_with_other_parameters(toy_book):
    assert toy_book.run(parameters={"size": 5}) is None
    folder = toy_book.path("_build/try/figures/probe-line")
    assert sorted(path.name for path in folder.iterdir()) == ["figure.json", "probe-line.csv", "probe-line.png"]
    assert len((folder / "probe-line.csv").read_text().splitlines()) == 6


# Claims and checks.


def test_a_cell_a_call_and_a_check_record_what_they_measure(ran):
    noted = [json.loads(line) for line in (results(ran) / "measured.jsonl").read_text().splitlines()]
    assert noted == [{"id": "probe.top", "value": 1.0, "uncertainty": 1e-9, "rival": [0.25, 0.0]}]
    audit = [json.loads(line) for line in (results(ran, "audits/probe") / "measured.jsonl").read_text().splitlines()]
    assert [(one["id"], round(one["value"], 6), round(one["rival"][0], 6)) for one in audit] == [
        ("probe.slope", 0.0, 1.0),
        ("probe.end", 2.0, 1.0),
    ]
    entries = {entry["id"]: entry["holds"] for entry in json.loads(ran.path("_build/claims.json").read_text())}
    assert entries == {"probe.top": True, "probe.slope": True, "probe.end": True}


def test_the_place_of_a_claim_is_marked_in_its_cell_instead_of_its_dictionary(ran):
    cells = notebook(ran, "_build/chapters/audits-probe", "audits-probe").cells
    cell = next(cell for cell in cells if cell.metadata.get("claim") == "probe.slope")
    (output,) = cell.outputs
    assert output.metadata.companion == {"claim": "probe.slope"}
    assert output.data["text/plain"].startswith("Claim probe.slope: ")


def test_a_claim_is_the_dictionary_that_its_cell_shows(toy_book):
    page(toy_book, ':claim: probe.top\n\n{"measured": 1.0};')
    assert "claim probe.top: ValueError: probe.top: expected a mapping with measured" in toy_book.run().error


CHECK = "def test_half(middle):\n    assert middle == 0.25\n"
FAILING = {
    "an assertion": (CHECK.replace("0.25", "0.5"), "probe.py:10: test_half: AssertionError: assert middle == 0.5"),
    "an absent variable": (CHECK.replace("middle", "centre"), "test_half: NameError: the page has no variable centre"),
    "no measurement": (CHECK + "\n\ndef end(x):\n    pass\n", "end: TypeError: expected a Measurement, got None"),
}


@pytest.mark.parametrize("kind", FAILING)
def test_a_check_that_fails_names_itself(toy_book, kind):
    new, said = FAILING[kind]
    toy_book.edit(CHECKS, CHECK, new)
    failure = toy_book.run(parameters={})
    assert failure.error.startswith("book/checks: AssertionError: ")
    assert said in failure.error


def test_a_page_that_fails_in_its_checks_is_the_one_problem_of_a_build(toy_book):
    toy_book.edit(CHECKS, CHECK, FAILING["an assertion"][0])
    outcome, _ = toy_book.build(site=False)
    (problem,) = outcome.problems
    assert problem.startswith("chapter probe failed outside of its cells: book/checks: AssertionError: ")


def test_every_check_is_called_and_every_failure_named(toy_book):
    toy_book.edit(
        CHECKS,
        CHECK,
        CHECK + "\n\ndef test_one():\n    raise KeyError('one')\n\n\ndef test_two(absent=2):\n    1 / 0\n",
    )
    error = toy_book.run(parameters={}).error
    assert "test_one: KeyError: 'one'; " in error
    assert "test_two: ZeroDivisionError" in error
    assert toy_book.path("_build/try/measured.jsonl").read_text().count("probe.top") == 1


# What every notebook has.


def test_a_page_is_a_notebook_like_others(toy_book, monkeypatch):
    monkeypatch.setenv("MATPLOTLIBRC", "/nowhere")
    monkeypatch.setenv("PYTHONSTARTUP", "/nowhere")
    page(
        toy_book,
        "!echo hello",
        "import math\nmath.sqrt?",
        "import os\nprint(os.environ.get('PYTHONSTARTUP'), 'nowhere' in os.environ['MATPLOTLIBRC'], os.getcwd())",
        "print(sorted(name for name in globals() if 'ompanion' in name or name in ('kernel', 'claims', 'begin')))",
    )
    assert toy_book.run() is None
    _, echo, asked, environment, names = (cell for cell in notebook(toy_book).cells if cell.cell_type == "code")
    assert printed(echo).strip() == "hello"
    assert asked.outputs == []
    assert printed(environment).startswith("None False ")
    assert str(toy_book.root) not in printed(environment)
    assert printed(names) == "[]\n"


def test_an_error_that_is_expected_is_shown_and_the_page_goes_on(toy_book):
    page(toy_book, ':tags: [raises-exception]\n\nprint("before")\n1 / 0', "print(2)")
    assert toy_book.run() is None
    raises, after = [cell for cell in notebook(toy_book).cells if cell.cell_type == "code"][1:]
    assert [output.output_type for output in raises.outputs] == ["stream", "error"]
    assert printed(after) == "2\n"


def test_a_flood_of_output_is_cut_in_the_time_that_it_takes_to_print(toy_book):
    page(
        toy_book,
        "for i in range(10**5):\n    print('x' * 99)",
        "print('y' * 10**6)",
        "'z' * 10**6",
        "for i in range(5000):\n    print(f'\\r{i:060d}', end='', flush=i % 50 == 0)",
    )
    began = time.monotonic()
    assert toy_book.run() is None
    assert time.monotonic() - began < 60
    many, long, text, progress = [cell for cell in notebook(toy_book).cells if cell.cell_type == "code"][1:]
    assert printed(many).endswith("\n[the output is cut here, after 100 kB]\n")
    assert 100_000 <= len(printed(many)) < 101_000
    assert printed(long).startswith("y" * 2000 + " [... 98000 more characters]\n[the output is cut here")
    assert len(text.outputs[0].data["text/plain"]) < 3000
    assert printed(progress) == f"{4999:060d}"


def test_a_warning_is_an_error(toy_book):
    page(toy_book, "import warnings\nwarnings.warn('odd')")
    assert toy_book.run().error == "UserWarning: odd"


def test_a_kernel_that_dies_fails_its_page(toy_book):
    page(toy_book, "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    failure = toy_book.run()
    assert (failure.cell, failure.error) == (2, "the kernel died")


# The key.


CHANGES = {
    "a code cell": (LESSON, "linspace(0, 1", "linspace(0, 2"),
    "a parameter": (LESSON, "size = 20", "size = 21"),
    "the name of a figure": (LESSON, "name: probe-line", "name: probe-curve"),
    "an expression": (LESSON, "{eval}`size` values", "{eval}`size + 0` values"),
    "an expression of a caption": (LESSON, "{eval}`size` points", "{eval}`size - 0` points"),
    "an imported module": ("src/walks/pairs.py", "x**2", "x * x"),
    "a module imported by an imported module": ("src/walks/steps.py", "1.0", "2.0"),
    "a check": (CHECKS, "0.25", "0.250"),
    "which checks are claims": (CLAIMS, "id: probe.top", "id: probe.summit"),
    "the lock": ("requirements.lock", "numpy==", "numpy==1"),
}
WORDS = {
    "prose": (LESSON, "The end.", "Well."),
    "a number that is repeated": (LESSON, "The end.", "The end."),
    "a caption": (LESSON, "Two walkers. It", "Walkers. It"),
    "an alternative text": (LESSON, "A convex curve", "A curve"),
    "the order of words around numbers": (LESSON, "Of {eval}`size` values", "From {eval}`size`"),
    "how a cell is shown": (LESSON, ":tags: [parameters]", ":tags: [parameters, hide-input]"),
    "what a claim says": (CLAIMS, "The parabola reaches one.", "It does."),
    "what is expected": (CLAIMS, "printed: 1.0", "printed: 2.0"),
    "an unrelated module": ("src/walks/unrelated.py", "x**3", "x * x * x"),
    "the summary": (LESSON, "summary: Two walkers.", "summary: Walkers."),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_key_changes_with(toy_book, change):
    before = toy_book.key()
    toy_book.edit(*CHANGES[change])
    assert toy_book.key() != before


@pytest.mark.parametrize("change", WORDS)
def test_the_key_stays_with(toy_book, change):
    before = toy_book.key()
    toy_book.edit(*WORDS[change])
    assert toy_book.key() == before


def test_an_expression_that_moves_below_another_cell_is_evaluated_anew(toy_book):
    before = toy_book.key()
    toy_book.edit(LESSON, "Of {eval}`size` values the", "The")
    toy_book.edit(LESSON, "The end.", "Of {eval}`size`.")
    assert toy_book.key() != before


def test_data_are_part_of_the_key_beside_a_package_and_named_by_a_page(toy_book):
    keys = [toy_book.key()]
    for name in ("src/walks/table.csv", "data.csv"):
        if name == "data.csv":
            toy_book.edit(LESSON, "  budget: 60\n", "  budget: 60\n  data: [data.csv]\n")
        for text in ("1", "2"):
            toy_book.path(name).write_text(text)
            keys.append(toy_book.key())
    assert len(set(keys)) == 5
    toy_book.path("data.csv").unlink()
    with pytest.raises(ValueError, match=r"data files not found: \['data.csv'\]"):
        toy_book.key()


def test_a_module_that_is_no_python_is_named(toy_book):
    toy_book.path("src/walks/steps.py").write_text("LENGTH = (\n")
    with pytest.raises(ValueError, match=r"src/walks/steps.py:1: expected Python"):
        toy_book.key()


def test_the_style_sheet_of_a_package_is_needed_like_a_module():
    assert key._mentioned('import walks.pairs\nplt.style.use("steps.book")', package="") == ["walks.pairs", "steps"]


def test_values_take_the_places_of_expressions():
    text = "From {eval}`a` to {eval}``f'`{b}`'`` and {eval}`c`."
    assert key.evaluated(text, {"a": "1", "f'`{b}`'": "2"}) == "From 1 to 2 and {eval}`c`."


# Builds.


def test_an_unchanged_book_runs_nothing_and_new_words_reach_the_figures(copy):
    copy.edit(LESSON, "Two walkers. It shows", "Walkers. Between {eval}`size` and")
    copy.edit(LESSON, "The end.", "An end.")
    outcome, said = copy.build()
    assert (outcome.executed, outcome.problems) == ([], [])
    assert "probe: unchanged, its last run stands" in said
    caption = next(record["caption"] for record in json.loads(copy.path("_build/figures.json").read_text()))
    assert caption.startswith("Walkers. Between 20 and 20 points")


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"key": "other"}', None])
def test_a_result_without_a_readable_record_of_its_key_does_not_stand(copy, damage):
    record = results(copy) / execute.RECORD
    assert execute.standing(copy.root, "probe", copy.key()).chapter == "probe"
    assert execute.standing(copy.root, "probe", "another key") is None
    record.unlink() if damage is None else record.write_text(damage)
    assert execute.standing(copy.root, "probe", copy.key()) is None


def test_a_damaged_result_and_a_changed_module_run_their_pages_and_no_other(copy):
    (results(copy) / execute.RECORD).write_text("{")
    copy.edit(AUDIT, "linspace(0, 1", "linspace(0.0, 1")
    outcome, _ = copy.build(only="probe")
    assert (outcome.executed, outcome.problems) == (["probe", "audits/probe"], [])
    record = json.loads((results(copy) / execute.RECORD).read_text())
    assert record["key"] == copy.key()
    assert record["peak_bytes"] > 10**7
    assert "numpy" in record["packages"]
    assert record["parameters"] == {"size": 20}
    assert sorted(path.name for path in results(copy).iterdir()) == [
        "figures",
        "measured.jsonl",
        "probe.ipynb",
        "record.json",
    ]


def test_a_page_that_never_ends_is_stopped_and_the_others_go_on(toy_book):
    page(toy_book, "x = 1", "while True: pass", "y = 1", limit=3)
    toy_book.path(CLAIMS).write_text("claims:\n" + toy_book.path(CLAIMS).read_text().split("\n\n", 1)[1])
    toy_book.edit(AUDIT, "ends at {measured}`probe.top:.1f`", "ends")
    outcome, said = toy_book.build()
    assert [(one.chapter, one.cell) for one in outcome.failures] == [("probe", 3)]
    assert outcome.problems[0].startswith(
        "chapter probe failed in code cell 3: stopped after 3 s, its limit (companion: limit in the front matter)"
    )
    assert int(re.search(r"probe: FAILED after (\d+) s", said)[1]) < 40
    assert "audits/probe: finished" in said
    assert results(toy_book, "audits/probe").is_dir()
    assert not results(toy_book).exists()
    states = {page["page"]: page for page in json.loads(toy_book.path("_build/status.json").read_text())["chapters"]}
    assert (states["probe"]["state"], states["probe"]["failure"]["cell"]) == ("failed", 3)
    assert states["audits/probe"]["state"] == "finished"
    assert toy_book.path("_build/failed/probe/probe.ipynb").is_file()
    wait_until(lambda: not processes_of(toy_book.root))


def test_lessons_run_before_audits_and_the_longest_audit_first(toy_book, monkeypatch):
    begun = []

    def start(root, chapter, cpus):
        begun.append(chapter.name)
        done = subprocess.Popen(["true"], stdin=subprocess.PIPE)
        return build._Running(chapter, done, root, root, cpus, time.perf_counter())

    monkeypatch.setattr(build, "_start", start)
    order = [("audits/a", 1.0), ("audits/b", 3.0), ("c", 2.0)]
    chapters = [SimpleNamespace(name=name, is_audit="/" in name, budget=budget, code=[]) for name, budget in order]
    called = []
    assert build._run(toy_book.root, chapters, lambda: called.append(list(begun))) == []
    assert begun == ["c", "audits/b", "audits/a"]
    assert called == []
    monkeypatch.setattr(build, "_LONG", 0.5)
    build._run(toy_book.root, chapters, lambda: called.append("lessons"))
    assert called == ["lessons"]


def test_a_page_that_changes_while_it_runs_is_to_be_built_again(copy, monkeypatch):
    copy.edit(LESSON, "size = 20", "size = 21")
    monkeypatch.setattr(build, "_run", lambda *_: [])
    outcome, _ = copy.build()
    assert outcome.problems[0] == "chapter probe: what it is made of changed while it ran; build again"


def test_a_figure_names_the_published_one_that_it_makes_again(copy):
    item = "items: {author2000source: [{where: '2', kind: figure, says: Figure 1, answered: [probe-line]}]}"
    copy.edit(CLAIMS, "claims:\n", f"{item}\nclaims:\n")
    assert build._sources(copy.root) == {"probe-line": "after Author (2000), section 2: Figure 1"}


def test_two_builds_of_one_tree_are_refused(copy):
    with build._lock(copy.root), pytest.raises(RuntimeError, match=rf"process {os.getpid()} holds _build/.lock"):
        copy.build()


def test_the_name_of_no_chapter_is_refused(copy):
    with pytest.raises(ValueError, match=r"NAME: expected one of \['probe'\], got 'sky'"):
        copy.build(only="sky")


# Processes.


def building(book):
    """A build in a process of its own whose lesson ends and whose audit never does, when its lesson has ended."""
    book.edit(AUDIT, "x = np.linspace(", "while True: pass\nx = np.linspace(")
    command = [sys.executable, "-m", "companion", "--root", str(book.root), "chapter", "probe"]
    environment = os.environ | {"PYTHONPATH": str(Path(execute.__file__).parents[2])}
    child = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wait_until(lambda: (results(book) / execute.RECORD).is_file() or child.poll() is not None, 90)
    return child


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_build_that_is_stopped_keeps_what_was_finished_and_leaves_nothing_running(toy_book, number):
    child = building(toy_book)
    child.send_signal(number)
    said, _ = child.communicate(timeout=30)
    assert child.returncode == (130 if number == signal.SIGINT else -9), said
    wait_until(lambda: not processes_of(toy_book.root))
    assert execute.standing(toy_book.root, "probe", toy_book.key()) is not None
    assert not results(toy_book, "audits/probe").exists()
    if number == signal.SIGINT:
        assert said.endswith("stopped: what was finished is kept\n")


def test_a_page_whose_process_is_killed_is_one_failure(tmp_path, toy_book):
    child = subprocess.Popen(["sleep", "60"], stdin=subprocess.PIPE)
    child.kill()
    child.communicate()
    log = tmp_path / "log"
    log.write_text("its last words")
    running = build._Running(pages.load(toy_book.root, "probe"), child, tmp_path, log, [0], 0.0)
    failure = build._failure(toy_book.root, running)
    assert failure.error == "its process was ended by SIGKILL: its last words"


def test_folders_and_files_are_exchanged_whole(tmp_path):
    for name, text in {"new": "2", "old": "1"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "text").write_text(text)
    process.put(tmp_path / "new", tmp_path / "old")
    process.write(tmp_path / "old" / "text.json", "{}")
    assert {path.name: path.read_text() for path in (tmp_path / "old").iterdir()} == {"text": "2", "text.json": "{}"}
    assert not (tmp_path / "new").exists()
    (tmp_path / "more").mkdir()
    process.put(tmp_path / "more", tmp_path / "deep" / "target")
    assert (tmp_path / "deep" / "target").is_dir()


def test_only_known_variables_reach_a_kernel(monkeypatch):
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    monkeypatch.setenv("HOME", "/somewhere")
    variables = kernel.clean()
    assert "JAX_ENABLE_X64" not in variables
    assert (variables["HOME"], variables["TZ"]) == ("/somewhere", "UTC")
