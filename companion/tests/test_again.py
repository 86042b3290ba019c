"""A figure is made again from its archive alone, and a number that differs is named."""

import os
import re
import subprocess
import sys
import zipfile

import pytest

from companion.site import again


@pytest.fixture(scope="module")
def archive(two_pages, tmp_path_factory):
    """The unpacked archive of a figure, far from its book, and what a reader must have installed."""
    book, folder = two_pages[0], tmp_path_factory.mktemp("reader")
    with zipfile.ZipFile(book.path("_build/html/figures/probe-line/probe-line.zip")) as packed:
        packed.extractall(folder)
    variables = {name: value for name, value in os.environ.items() if not name.startswith("COMPANION")}
    # In a wheel the book's claims and references lie inside the library.
    installed = {"PYTHONPATH": str(book.path("src")), "COMPANION_ROOT": str(book.root)}
    return folder / "probe-line", variables | installed


def run(folder, variables):
    return subprocess.run(
        [sys.executable, again.SCRIPT], cwd=folder, env=variables, capture_output=True, text=True, check=False
    )


def test_the_archive_holds_the_code_up_to_the_figure_and_the_versions_of_the_run(archive):
    folder, _ = archive
    code = (folder / again.CODE).read_text(encoding="utf-8")
    assert code.count("# %%") == 4
    assert code.rstrip().endswith(")")
    assert "size = 20" in code
    required = (folder / again.REQUIREMENTS).read_text(encoding="utf-8").splitlines()
    assert required[0].startswith("# The run was on Python 3.")
    assert required[1].startswith("walks[notebook] @ git+https://")
    assert any(line.startswith("matplotlib==") for line in required)
    said = (folder / "README.txt").read_text(encoding="utf-8")
    for words in (
        "the whole page took \\d+ seconds",
        "does not answer, .* folder src of a clone",
        r"It shows .* as in \(1\.1\)\.",
    ):
        assert re.search(words, said), said


def test_pins_are_of_versions_that_an_index_has_and_name_the_library_once():
    versions = {"walks": "0.1.0.dev0", "torch": "2.13.0+cpu", "numpy": "2.4.6"}
    assert again._pins(versions, "walks") == ["numpy==2.4.6", "torch==2.13.0"]


def test_the_script_draws_the_same_numbers_and_names_those_that_differ(archive):
    folder, variables = archive
    done = run(folder, variables)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("the same numbers")
    assert (folder / "again" / "figures" / "probe-line" / "probe-line.png").is_file()
    table = folder / "probe-line.csv"
    text = table.read_text(encoding="utf-8")
    lines = text.splitlines()
    lines[-1] = lines[-1].replace("1.0,1.0", "1.0,1.1")
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = run(folder, variables)
    table.write_text(text, encoding="utf-8")
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines() == [
        "   0.0e+00  x",
        "   9.1e-02  y",
        "other numbers (limit 0.0001)",
    ]
