"""The map of the packages in the README says what the modules say."""

import re
from pathlib import Path

import pytest

from companion.site import package_map

ROOT = Path(__file__).resolve().parents[2]


def test_the_map_of_the_readme_is_in_sync_and_its_links_lead_to_modules():
    assert package_map.out_of_sync(ROOT) == []
    shown = package_map.text(ROOT)
    links = re.findall(r"\]\(((?:companion/)?src/[\w/.]+)\)", shown)
    assert all((ROOT / link).is_file() for link in links)
    listed = {Path(link).parent.name if link.endswith("__init__.py") else Path(link).stem for link in links}
    assert {"claims", "figures", "running", "ising", "sphere", "fixed_point"} <= listed
    assert "`mean_field`" in shown


@pytest.fixture
def book(toy_book):
    """The toy book with a README whose map is still empty, a package within the library, and private parts."""
    toy_book.path("README.md").write_text(f"# Walks\n\n{package_map.BEGIN}\n{package_map.END}\n\nThe end.\n")
    for name in ("pairs", "steps", "unrelated"):
        toy_book.path(f"src/walks/{name}.py").write_text(f'"""What {name} are | for.\n\nMore of them.\n"""\n')
    toy_book.path("src/walks/on").mkdir()
    for name, first in (("__init__", "Where one walks."), ("lattice", "A lattice."), ("_parts", "Hidden.")):
        toy_book.path(f"src/walks/on/{name}.py").write_text(f'"""{first}"""\n')
    toy_book.path("src/walks/_private.py").write_text("")
    return toy_book


def test_the_map_is_written_between_its_marks_and_follows_the_modules(book):
    assert package_map.out_of_sync(book.root) == ["README.md"]
    assert package_map.sync(book.root) == [book.path("README.md")]
    readme = book.path("README.md").read_text()
    assert readme.startswith("# Walks\n")
    assert readme.endswith("The end.\n")
    assert "**`walks`**: Random walks." in readme
    assert "| [`pairs`](src/walks/pairs.py) | What pairs are \\| for. |  |" in readme
    assert "| [`on`](src/walks/on/__init__.py) | Where one walks. | `lattice` |" in readme
    assert "_private" not in readme
    assert "More of them" not in readme
    assert package_map.sync(book.root) == []
    book.edit("src/walks/pairs.py", "What pairs are", "What two are")
    assert package_map.out_of_sync(book.root) == ["README.md"]


def test_a_module_that_does_not_say_what_it_is_is_named_and_a_readme_without_marks_is_left_alone(book):
    book.path("src/walks/pairs.py").write_text('"""No sentence"""\n')
    with pytest.raises(ValueError, match=r"pairs.py: expected a docstring whose first line ends a sentence, got 'No"):
        package_map.out_of_sync(book.root)
    book.path("README.md").write_text("# Walks\n")
    assert package_map.out_of_sync(book.root) == []
    assert package_map.sync(book.root) == []
