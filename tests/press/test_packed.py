"""Notebooks that run alone: what they carry, and that their words need nothing of Sphinx."""

import io
import json
import lzma
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import nbformat
import pytest

from companion import pages, project
from companion.run import execute
from companion.site import packed
from tests.press.toybook import LESSON, ToyBook

SITE = project.identity(Path(__file__).parents[2]).site
KNOWN = {
    "doc": {"notebooks/other": "Another page"},
    "ref": {"probe-part": ("A part", "notebooks/probe.html#part")},
    "numref": {"probe-line": "Figure 1.1"},
    "eq": {"eq:probe-square": "1.1"},
}

RUN = """
import json, sys
from pathlib import Path
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for source in json.loads(Path(sys.argv[1]).read_text()):
    shell.run_cell(source).raise_error()
import walks
print("FROM", walks.__file__)
"""


def _packed(book: ToyBook, name: str) -> nbformat.NotebookNode:
    return nbformat.read(book.path(f"_build/html/_sources/notebooks/{name}.ipynb"), as_version=4)


@pytest.fixture
def words(ran: ToyBook) -> packed.Words:
    return packed.Words(ran.root, "audits/probe", KNOWN)


def test_a_lesson_runs_in_an_empty_folder_and_leaves_nothing(built: ToyBook, tmp_path: Path) -> None:
    notebook = _packed(built, "probe")
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    assert "pip install" not in "".join(cells[1:])
    (tmp_path / "cells.json").write_text(json.dumps(cells))
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(tmp_path), "MPLBACKEND": "agg"}
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(tmp_path / "cells.json")],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "This notebook uses the walks 0.1.0.dev0 that it carries." in done.stdout
    place = Path(done.stdout.split("FROM ")[1].strip())
    assert place.is_relative_to(tmp_path)
    assert place.match("walks-*/src/walks/__init__.py")
    assert not place.exists()


def test_it_carries_what_the_page_imports_and_no_more(ran: ToyBook) -> None:
    content = packed.carried(ran.root, pages.load(ran.root, "probe"))
    assert content == packed.carried(ran.root, pages.load(ran.root, "probe"))
    with tarfile.open(fileobj=io.BytesIO(lzma.decompress(content))) as archive:
        names = archive.getnames()
    assert names == ["src/walks/__init__.py", "src/walks/pairs.py", "src/walks/steps.py"]


def test_it_carries_what_its_prose_names_as_a_call(copy: ToyBook) -> None:
    copy.edit(
        LESSON, "The end.", "The call is `from walks import unrelated`, then `walks.pairs.both(2)` and `walks.no`."
    )
    with tarfile.open(
        fileobj=io.BytesIO(lzma.decompress(packed.carried(copy.root, pages.load(copy.root, "probe"))))
    ) as a:
        assert "src/walks/unrelated.py" in a.getnames()


def test_outputs_are_light_and_words_plain(built: ToyBook) -> None:
    notebook = _packed(built, "probe")
    told = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert "Of 20 values the largest is 1.00, see Figure 1.1." in told
    assert "**Figure 1.1.** Two walkers. It shows 20 points of $x^2$ as in (1.1)." in told
    assert "y = x^2 \\tag{1.1}\n$$" in told
    assert "{" not in told.replace("\\tag{1.1}", "")
    (picture,) = [output for cell in notebook.cells for output in cell.get("outputs", []) if "image/png" in output.data]
    assert len(picture.data["image/png"]) < 40_000
    assert all("mystnb" not in cell.metadata for cell in notebook.cells)


def test_a_claim_is_said_below_its_cell(built: ToyBook) -> None:
    notebook = _packed(built, "audits/probe")
    said = [
        output.data.get("text/plain", "")
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "data" in output
    ]
    assert any(text.startswith("Claim probe.slope: The slope is x. measured") for text in said)


def test_folded_code_is_folded_everywhere(built: ToyBook) -> None:
    folded = [cell for cell in _packed(built, "audits/probe").cells if cell.metadata.get("cellView") == "form"]
    assert [cell.source.startswith("# @title") for cell in folded] == [True, True]
    assert all(cell.metadata["jupyter"]["source_hidden"] for cell in folded)


def test_what_is_too_heavy_is_refused(copy: ToyBook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "HEAVIEST", 100)
    folder = execute.results_folder(copy.root, "probe")
    with pytest.raises(ValueError, match="probe: expected to carry at most 0 kB, got"):
        packed.notebook(copy.root, "probe", folder, KNOWN)


def test_what_cannot_be_packed_is_a_problem_of_the_site(copy: ToyBook, tmp_path: Path) -> None:
    copy.edit(LESSON, "The end.", "{unheard}`of`")
    folder = execute.results_folder(copy.root, "probe")
    problems = packed.site(copy.root, tmp_path, {"probe": folder}, KNOWN)
    assert problems == ["packed notebook: probe: expected a role that can be read without Sphinx, got {unheard}`of`"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{numref}`probe-line` and {numref}`Fig. %s <probe-line>`", "Figure 1.1 and Fig. 1.1"),
        (
            "{eq}`eq:probe-square`, {ref}`probe-part`, {doc}`../other`",
            f"(1.1), [A part]({SITE}notebooks/probe.html#part), [Another page]({SITE}notebooks/other.html)",
        ),
        ("{doc}`the other </notebooks/other>` {term}`TAP`", f"[the other]({SITE}notebooks/other.html) TAP"),
        ('<a id="x" href="../probe.html#y">it</a>', f'<a id="x" href="{SITE}notebooks/probe.html#y">it</a>'),
        ("{cite:p}`author2000source`", "(Author 2000)"),
        ("Held {measured}`probe.top:.1f`{checked}`probe.top`.", "Held 1.0."),
        ("{py:func}`~walks.pairs.both`", "`walks.pairs.both`"),
        ("(here)=\n## Title", "## Title"),
        (
            "```{dropdown} Answer\n:open:\nIt is {eq}`eq:probe-square`.\n```",
            "<details><summary>Answer</summary>\n\nIt is (1.1).\n</details>",
        ),
        (":::{note}\nMind.\n:::", "> **Note**\n>\n> Mind."),
        ("```{math}\n:label: eq:probe-square\ny\n```", "$$\ny \\tag{1.1}\n$$"),
        (
            "```{live} probe\n:a: 1\nTwo.\n```",
            f"[On the site of the book a live model is here.]({SITE}notebooks/audits/probe.html#probe-live) Two.",
        ),
        ("```{source-items} author2000source\n```", ""),
    ],
)
def test_words_need_no_sphinx(words: packed.Words, text: str, expected: str) -> None:
    assert words.plain(text) == expected


@pytest.mark.parametrize("text", ["```{unheard} of\n```", "{measured}`probe.absent`"])
def test_what_cannot_be_said_is_refused(words: packed.Words, text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|no such claim"):
        words.plain(text)


def test_pip_is_asked_for_what_a_page_loads_and_not_for_the_library_that_is_carried(tmp_path):
    root = Path(__file__).resolve().parents[2]
    loaded = {"spinbook": "2.0", "jax": "0.9", "ipykernel": "7.0"}
    (tmp_path / "record.json").write_text(json.dumps({"packages": loaded}))
    (asked,) = packed.requirements(root, tmp_path)
    assert asked.startswith("jax>=")
