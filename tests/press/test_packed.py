"""A page as one notebook that runs alone: what it says without Sphinx, what it carries, and what it refuses."""

import base64
import io
import json
import re
import shutil
import sys
import tarfile
from pathlib import Path

import nbformat
import pytest

from companion.declaring import notebooks
from companion.site import packed

ROOT = Path(__file__).resolve().parents[2]
KNOWN = {
    "doc": {"book/limits": "Limits"},
    "ref": {"there": "A place"},
    "numref": {"x-y": "Fig. 7"},
    "eq": {},
    "made": {},
}
UNREAD = re.compile(r"\{[a-z:]+\}`|```\{|^\([\w:-]+\)=$|\$\$ *\([\w:-]+\)|published-figure|scrapbook", re.MULTILINE)
"""What only Sphinx reads."""


def offered(book, page):
    """The notebook that a page of the site offers for download."""
    return nbformat.read(book.root / "_build" / "html" / "_sources" / "notebooks" / f"{page}.ipynb", as_version=4)


def prose(notebook):
    return "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


def test_the_site_offers_notebooks_that_can_be_read_without_sphinx(two_pages):
    book = two_pages[0]
    for page in ("probe", "audits/probe"):
        notebook = offered(book, page)
        nbformat.validate(notebook)
        assert not UNREAD.search(prose(notebook))
    lesson = prose(offered(book, "probe"))
    assert "Two independent walkers (Author 2000) who" in lesson
    assert "y = x^2 \\tag{1.1}\n$$" in lesson
    assert "The largest value is 1.00, see Figure 1.1 and (1.1)." in lesson
    assert "**Figure 1.1.** Two walkers. It shows $x^2$ as in (1.1)." in lesson
    audit = prose(offered(book, "audits/probe"))
    assert "which ends at 1.0, see Figure 1.2 and (1.2)" in audit
    assert "Of 2 statements of the source" in audit
    assert "<td>Its slope, as &lt;printed&gt;</td>" in audit
    assert "href" not in audit


def test_a_packed_notebook_has_the_outputs_of_the_build(two_pages):
    outputs = [output for cell in offered(two_pages[0], "probe").cells for output in cell.get("outputs", [])]
    shown = [output.get("data", {}) for output in outputs]
    assert any("Claim probe.top: The parabola reaches one." in data.get("text/plain", "") for data in shown)
    (picture,) = (base64.b64decode(data["image/png"]) for data in shown if "image/png" in data)
    assert picture.startswith(b"\x89PNG")
    assert len(picture) < 40_000


def test_a_packed_notebook_carries_what_its_page_imports_and_no_more(two_pages):
    book = two_pages[0]
    content = packed.carried(book.root, notebooks.load(book.root, "probe"))
    assert content == packed.carried(book.root, notebooks.load(book.root, "probe"))
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:xz") as archive:
        names = archive.getnames()
    assert {"walks/__init__.py", "walks/pairs.py", "walks/steps.py", "walks/_book/_config.yml"} <= set(names)
    assert {"walks/_book/book/claims/probe.yml", "walks/_book/book/references.bib"} <= set(names)
    assert {"companion/declaring/measuring.py", "walks-0.1.0.dev0.dist-info/entry_points.txt"} <= set(names)
    assert "walks/unrelated.py" not in names
    assert not [name for name in names if "running" in name or "site" in name or name.startswith("companion/static")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{strange}`role`", r"probe: packed: expected a role that can be read without Sphinx, got \{strange\}`role`"),
        ("```{strange}\n```", r"probe: packed: expected directives of .*got ```\{strange\}"),
        ("{glue:text}`nothing`", r"probe: packed: expected a cell that stores 'nothing', got \['known'\]"),
    ],
)
def test_what_cannot_be_read_without_sphinx_is_refused(toy_book, text, message):
    with pytest.raises(ValueError, match=message):
        packed.markdown(toy_book.root, "probe", text, KNOWN, {"known": "1"})


@pytest.mark.parametrize(
    ("asked", "shown"),
    [("x", "0.9876"), ("x:.2f", "0.99"), ("x:.1%", "98.8%"), ("n", "1234"), ("n:,", "1,234"), ("n:.1e", "1.2e+03")],
)
def test_a_stored_number_has_the_digits_that_are_asked_for(toy_book, asked, shown):
    text = f"{{glue:text}}`{asked}`"
    assert packed.markdown(toy_book.root, "probe", text, KNOWN, {"x": "0.9876", "n": "1234"}) == shown


LINKS = "{doc}`../book/limits` {doc}`other <../book/limits>` {ref}`there` {numref}`Figure %s <x-y>` {term}`a <b>`"
READ = {
    "links are the titles of their pages": (LINKS, "*Limits* other *A place* Figure 7 a"),
    "a fold": (
        "```{dropdown} Answer\n:open:\n\nIt is $x$.\n```",
        "<details><summary>Answer</summary>\n\n\nIt is $x$.\n\n</details>",
    ),
    "more ticks fold what has ticks of its own": (
        "````{dropdown} Why\n```text\nx\n```\n````",
        "<details><summary>Why</summary>\n\n```text\nx\n```\n\n</details>",
    ),
    "a figure that is placed in a fold stays below its cell": (
        "````{dropdown} A test\nWords.\n\n```{published-figure} x-y\n```\n````",
        "<details><summary>A test</summary>\n\nWords.\n\n\n</details>",
    ),
}


@pytest.mark.parametrize("case", READ)
def test_what_only_sphinx_reads_is_written_so_that_all_can_read_it(case):
    text, shown = READ[case]
    assert packed.markdown(ROOT, "probe", text, KNOWN, {}) == shown


def test_a_page_without_a_run_cannot_be_packed(toy_book):
    with pytest.raises(ValueError, match="probe: expected a finished run of the page, got none"):
        packed.notebook(toy_book.root, "probe")


def test_what_is_too_heavy_to_carry_is_refused(two_pages, monkeypatch):
    monkeypatch.setattr(packed, "HEAVIEST", 1000)
    with pytest.raises(ValueError, match=r"probe: library.tar.xz: expected at most 0.001 MB, got 0.\d MB"):
        packed.notebook(two_pages[0].root, "probe")


def test_a_package_out_of_bounds_is_named_before_anything_is_unpacked(pair, tmp_path):
    shutil.copy(ROOT / "pyproject.toml", pair.root)
    text = pair.path("pyproject.toml").read_text()
    pair.path("pyproject.toml").write_text(text.replace('"numpy>=2.0.2"', '"numpy>=99"'))
    cell = packed.notebook(pair.root, "probe").cells[1].source
    runnable = re.sub(r"^    %pip .*$", "    pass", cell, flags=re.MULTILINE)
    with pytest.raises(ImportError, match=r"packages: expected numpy>=99, got \d.*; install what is expected"):
        exec(compile(runnable, "cell", "exec"), {})


def test_pip_is_told_to_leave_what_is_found_first_and_not_told_what_it_cannot_read(pair, tmp_path, monkeypatch):
    shutil.copy(ROOT / "pyproject.toml", pair.root)
    monkeypatch.setattr(packed, "requirements", lambda root, chapter: ["nothing-like-this>=1"])
    for folder, name, version in (("a", "One_Thing", "2.0"), ("b", "one-thing", "1.0"), ("b", "distro", "1.1build1")):
        record = tmp_path / folder / f"{name}-{version}.dist-info"
        record.mkdir(parents=True)
        (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "a"), str(tmp_path / "b"), *sys.path])
    cell = packed.notebook(pair.root, "probe").cells[1].source
    assert "%pip install --quiet --constraint {pins} {wanted}" in cell
    left = {}
    with pytest.raises(ImportError, match="packages: expected nothing-like-this>=1, which pip could not install"):
        exec(compile(re.sub(r"^    %pip .*$", "", cell, flags=re.MULTILINE), "cell", "exec"), left)
    told = left["pins"].read_text().splitlines()
    assert left["wanted"] == '"nothing-like-this>=1"'
    assert "one-thing==2.0" in told
    assert not [line for line in told if line.startswith("distro=") or line == "one-thing==1.0"]


def test_the_command_writes_the_notebook(pair, monkeypatch, capsys):
    from companion.__main__ import main

    monkeypatch.chdir(pair.root)
    assert main(["pack", "audits/probe"]) == 0
    assert capsys.readouterr().out.startswith("_build/packed/audits/probe.ipynb: 0.")
    assert json.loads(pair.path("_build/packed/audits/probe.ipynb").read_text())["nbformat"] == 4
