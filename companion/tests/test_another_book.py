"""A book of another subject, built with the machinery alone, and whether the README says truly how."""

import json
import re
from pathlib import Path

from companion import project, themes
from companion.__main__ import main
from companion.running import execution

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "companion" / "README.md").read_text()
SECTION = re.search(r"^## A companion for another paper\n(.*?)^## ", README, flags=re.DOTALL | re.MULTILINE)[1]


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


def test_the_readme_lists_the_files_of_that_book_and_is_short(toy_book):
    listing = re.search(r"^```text\n(.*?)^```", SECTION, flags=re.DOTALL | re.MULTILINE)[1]
    listed = {line.split()[0] for line in listing.splitlines()}
    assert all(toy_book.path(name).exists() for name in listed)
    written = {path.relative_to(toy_book.root).as_posix() for path in toy_book.root.rglob("*") if path.is_file()}
    unsaid = {name for name in written if not any(name == entry or name.startswith(f"{entry}/") for entry in listed)}
    # The line of the first page speaks of the others, that of the library of its modules; these are made, or optional.
    made = {"CITATION.cff", "notebooks/probe.ipynb", "constraints.txt", "requirements.lock"}
    assert {name for name in unsaid - made if not re.fullmatch(r"book/\w+\.md|src/walks/\w+\.py", name)} == set()
    assert len(SECTION.strip().splitlines()) <= 25


def test_the_commands_and_names_in_the_readme_exist(toy_book):
    assert set(re.findall(r"`companion (\w+)`", SECTION)) == {"sync", "book"}
    toy_book.path("notebooks/probe.ipynb").unlink()
    toy_book.path("CITATION.cff").unlink()
    assert main(["--root", str(toy_book.root), "sync"]) == 0
    assert toy_book.path("notebooks/probe.ipynb").is_file()
    assert toy_book.path("CITATION.cff").is_file()
    assert {"library", "style"} <= set(project.Settings.__dataclass_fields__)
    assert all(name in themes.__doc__ for name in re.findall(r"`([A-Z]{2,5})`", SECTION))
    assert project.BOOKS in SECTION
    assert "[notebook]" in project.install_requirements(toy_book.root)[0]
