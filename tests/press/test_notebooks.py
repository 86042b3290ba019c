"""Text notebooks and their committed pairs."""

import importlib.util
import os
import sys

import nbformat
import pytest
from IPython.core.inputtransformer2 import TransformerManager

from companion import project
from companion.declaring import notebooks
from companion.site import citation


def test_the_pair_is_the_same_bytes_every_time_and_has_no_outputs(toy_book):
    path = toy_book.path("notebooks/probe.ipynb")
    first = path.read_text()
    path.unlink()
    assert notebooks.sync(toy_book.root) == [path]
    assert path.read_text() == first
    pair = nbformat.reads(first, as_version=4)
    nbformat.validate(pair)
    assert len({cell.id for cell in pair.cells}) == len(pair.cells)
    assert all(not cell.outputs and cell.execution_count is None for cell in pair.cells if cell.cell_type == "code")


def test_inserting_a_cell_keeps_the_ids_of_the_others(toy_book):
    before = {cell.id for cell in notebooks.load(toy_book.root, "probe").notebook.cells}
    toy_book.edit("notebooks/probe.md", "# A probe\n", "# A probe\n\n+++\n\nA new cell.\n\n+++\n")
    after = {cell.id for cell in notebooks.load(toy_book.root, "probe").notebook.cells}
    assert len(before & after) >= len(before) - 1


def test_what_the_formatter_changes_in_a_cell_goes_into_the_text(toy_book):
    """Else ``make fix`` leaves a text whose pair the check calls badly formatted."""
    text, pair = toy_book.path("notebooks/probe.md"), toy_book.path("notebooks/probe.ipynb")
    before = text.read_text()
    toy_book.edit("notebooks/probe.md", "linspace(0, 1", "linspace( 0,1")
    notebooks.sync(toy_book.root)
    pair.write_text(pair.read_text().replace("linspace( 0,1", "linspace(0, 1"))
    assert notebooks.adopt(toy_book.root) == [text]
    assert text.read_text() == before
    assert notebooks.sync(toy_book.root) == [pair]  # cell ids follow from the new source
    assert notebooks.adopt(toy_book.root) == []


def test_a_text_that_was_edited_since_is_not_undone_by_its_pair(toy_book):
    text, pair = toy_book.path("notebooks/probe.md"), toy_book.path("notebooks/probe.ipynb")
    text.write_text(text.read_text().replace("linspace(0, 1", "linspace(0, 7"))
    os.utime(pair, ns=(0, text.stat().st_mtime_ns - 10**9))
    with pytest.raises(ValueError, match=r"probe\.md is newer than its \.ipynb"):
        notebooks.adopt(toy_book.root)
    assert "linspace(0, 7" in text.read_text()


def test_a_pair_whose_text_is_gone_is_removed(toy_book):
    orphan = toy_book.path("notebooks/old.ipynb")
    orphan.write_text("{}")
    assert orphan in notebooks.sync(toy_book.root)
    assert not orphan.exists()


def test_the_install_cell_comes_first_and_is_hidden_from_the_page(toy_book):
    first = notebooks.load(toy_book.root, "probe").notebook.cells[0]
    assert "pip install" in first.source
    assert 'needed = ("walks", "companion")' in first.source
    assert "remove-cell" in first.metadata.tags


class Shell:
    """Stands for IPython: runs the install cell, and notes what pip was asked for."""

    def __init__(self, after):
        self.asked, self.after = [], after

    def run_line_magic(self, name, line, **_):
        self.asked.append((name, line))
        self.after()


def library_of(book, monkeypatch):
    """The book's own library can be imported."""
    monkeypatch.syspath_prepend(book.root / "src")
    monkeypatch.delitem(sys.modules, "walks", raising=False)


def install(book, monkeypatch, *, found, installs=True):
    """Run the install cell where the library is `found` or not, and pip can install it or cannot."""
    library_of(book, monkeypatch)
    here = [found]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if here[0] else None)
    shell = Shell(lambda: here.__setitem__(0, installs))
    source = notebooks.load(book.root, "probe").notebook.cells[0].source
    variables = {"get_ipython": lambda: shell}
    exec(TransformerManager().transform_cell(source), variables)
    return shell.asked, variables["requirements"]


def test_the_install_cell_installs_the_version_of_the_page_only_where_there_is_none(toy_book, monkeypatch):
    requirements = project.install_requirements(toy_book.root)
    assert install(toy_book, monkeypatch, found=True) == ([], requirements)
    asked, named = install(toy_book, monkeypatch, found=False)
    assert asked == [("pip", "install --quiet {wanted}")]
    assert named == requirements


def test_the_install_cell_says_what_it_got_if_that_is_not_the_library_of_the_page(toy_book, monkeypatch):
    with (
        monkeypatch.context() as patch,
        pytest.raises(ImportError, match=r"pip could not install walks\[notebook\] @ git\+http"),
    ):
        install(toy_book, patch, found=False, installs=False)
    # The notebook of version 2.0.0 where 1.0.0 is installed.
    toy_book.path("src/walks/__init__.py").write_text('__version__ = "2.0.0"\n')
    cell = notebooks.load(toy_book.root, "probe").notebook.cells[0].source
    toy_book.path("src/walks/__init__.py").write_text('__version__ = "1.0.0"\n')
    library_of(toy_book, monkeypatch)
    with pytest.raises(ImportError, match=r"belongs to walks 2.0.0, and 1.0.0 is installed in .*@v2.0.0 and restart"):
        exec(TransformerManager().transform_cell(cell), {"get_ipython": lambda: Shell(lambda: None)})


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  summary: Two walkers.\n", "", "'summary' is a required property"),
        ("  budget: 60", "  budget: 60\n  colour: red", "'colour' was unexpected"),
        ("quick: {size: 3}", "quick: {sizes: 3}", r"\['sizes'\] are not in the parameters cell"),
        ("size = 20", "size = 20 + 1", "malformed node|literal"),
        ("size = 20", "print(20)", "expected assignments only"),
        (":tags: [parameters]\n", "", "expected one cell tagged parameters, got 0"),
        ("# A probe", "A probe", "expected a title"),
    ],
)
def test_a_chapter_that_lacks_something_says_what(toy_book, old, new, message):
    path = toy_book.chapter
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(ValueError, match=message):
        notebooks.load(toy_book.root, "probe")


def test_a_chapter_must_be_in_the_table_of_contents_and_exist(toy_book):
    toy_book.path("notebooks/other.md").write_text("# Other")
    with pytest.raises(ValueError, match=r"present but not listed \['other'\]"):
        notebooks.names(toy_book.root)
    with pytest.raises(ValueError, match="no such chapter"):
        notebooks.load(toy_book.root, "nothing")


def test_the_citation_file_follows_the_config(toy_book):
    assert citation.out_of_sync(toy_book.root) == []
    toy_book.edit("_config.yml", "title: Random", "title: Straight")
    assert citation.out_of_sync(toy_book.root) == ["CITATION.cff"]
    citation.sync(toy_book.root)
    assert "Straight Walks" in toy_book.path("CITATION.cff").read_text()
