"""A book of another subject, built with the machinery alone, and whether the README says truly how."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from bs4 import BeautifulSoup

from companion import claims, new, project, themes
from companion.__main__ import main
from companion.running import execution

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "companion" / "README.md").read_text()


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.slow
def test_a_book_about_random_walks_is_built_with_the_machinery_alone(built):
    book, outcome, _ = built
    assert outcome.problems == []
    folder = execution.results_folder(book.root, "probe")
    record = execution.read_record(folder)
    assert set(record.versions) == {"walks", "numpy", "matplotlib"}
    assert {"matplotlib", "numpy", "ipython"} <= set(record.packages)
    assert not {"jax", "torch", "numba", "scikit-learn", "spinbook"} & set(record.packages)
    loaded = json.loads((folder / "progress.json").read_text())
    assert {name.partition(".")[0] for name in loaded["modules"]} == {"companion", "walks"}
    assert not {"jax", "torch", "spinbook"} & set(loaded["others"])
    claim, sky = json.loads(book.path("_build/claims.json").read_text())
    assert (claim["id"], claim["holds"], sky["holds"]) == ("probe.top", True, None)
    assert [entry["id"] for entry in json.loads(book.path("_build/figures.json").read_text())] == ["probe-line"]


def test_no_page_or_record_of_that_book_names_ours(built):
    html = built[0].path("_build/html")
    pages = [path for path in html.rglob("*") if path.suffix in (".html", ".json", ".js", ".css", ".bib", ".txt")]
    assert len(pages) > 20
    ours = re.compile(rb"spinbook|spin[- ](system|model|transformer)|Transformers as", re.IGNORECASE)
    assert [path.name for path in pages if ours.search(path.read_bytes())] == []


@pytest.mark.slow
@pytest.mark.long
def test_the_commands_of_the_readme_make_a_book_whose_claim_is_judged(tmp_path):
    install, commands = blocks("sh")
    assert install == 'pip install "./companion[book]"\n', "which needs a network, and was done here"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "companion").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m companion "$@"\n')
    (tmp_path / "bin" / "companion").chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    said = subprocess.run(["bash", "-ec", commands], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert said.returncode == 0, said.stdout + said.stderr
    root = tmp_path / "random-walks"
    (claim,) = json.loads((root / "_build" / "claims.json").read_text())
    assert (claim["id"], claim["measured"], claim["holds"]) == ("random-walks.top", 1.0, True)
    page = BeautifulSoup((root / "_build" / "html" / "notebooks" / "random-walks.html").read_text(), "html.parser")
    assert page.select_one("#random-walks-line img")
    assert page.select_one("#claim-random-walks-top .book-claim-outcome").get_text().endswith("reproduced.")
    (listing,) = blocks("text")
    listed = {
        line.split()[0].replace("NAME", "random-walks").replace("LIBRARY", "random_walks"): line
        for line in listing.splitlines()
    }
    assert all((root / name).is_file() for name in listed)
    # One line speaks of the other pages by hand, one of the library's modules, one of what `companion sync` writes.
    unsaid = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()} - set(listed)
    unsaid = {name for name in unsaid if not name.startswith("_build/") and "__pycache__" not in name}
    assert {name for name in unsaid if Path(name).stem not in listing} == set()


def test_the_claim_of_the_readme_is_the_one_of_the_new_book_and_every_verdict_is_explained():
    (claim,) = blocks("yaml")
    declared = new.text("book/claims/CHAPTER.yml", "random-walks", "random_walks")
    assert yaml.safe_load(claim) == yaml.safe_load(declared)["claims"]
    assert 'claims.measure("random-walks.top", y.max(), uncertainty=1e-9, rival=pairs.both(x / 2).max())' in README
    assert tuple(sorted(re.findall(r"^\| `([a-z-]+)` \|", README, flags=re.MULTILINE))) == tuple(
        sorted(claims.VERDICTS)
    )
    assert set(re.findall(r"`companion ([a-z]+)\b", README)) == {"book", "check", "sync"}
    assert {"library", "style"} <= set(project.Settings.__dataclass_fields__)
    assert all(name in themes.__doc__ for name in re.findall(r"`([A-Z]{2,5})`", README) if name != "NAME")
    assert project.BOOKS in README


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Walks", "words of lower case letters and digits"),
        ("../walks", "words of lower case letters and digits"),
        ("class", "words of lower case letters and digits"),
        ("numpy", "a name that no package has"),
        ("walks", "a folder that does not exist or is empty"),
    ],
)
def test_a_new_book_with_a_bad_name_or_in_a_full_folder_is_refused_in_a_sentence(tmp_path, capsys, name, expected):
    (tmp_path / "walks").mkdir()
    (tmp_path / "walks" / "notes.txt").write_text("mine")
    assert main(["--root", str(tmp_path), "new", name]) == 2
    assert capsys.readouterr().err.startswith(f"error: NAME: expected {expected}")
    assert [path.name for path in tmp_path.rglob("*")] == ["walks", "notes.txt"]
