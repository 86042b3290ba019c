"""The pages of the reference: what they list, how they read, and the links to them and back."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import yaml
from bs4 import BeautifulSoup
from docutils import core, nodes
from docutils.parsers.rst import roles

from companion.declaring import notebooks
from companion.declaring.library import Library, of_book
from companion.running import environment
from companion.site import docstrings, names, reference, rendering

ROOT = Path(__file__).resolve().parents[2]

GAME = '''\
"""Dice."""
from __future__ import annotations
import jax
import numpy as np
from dataclasses import dataclass
from jaxtyping import Array, Float
from game._hidden import cheat
from game.rules import points

__all__ = ["Die", "cheat", "points", "throw"]

Rule = "anything"


def throw(sides: Float[Array, " N"], *, bonus: np.ndarray | None = None) -> Float[Array, "N N"]:
    """p_i = 1 / |sides|, of every side; see `Die` and ``jax.jit``.

    A side_ with *stars* and | bars is no markup. Costs N^2.

    >>> throw([1.0])
    1
    """


@dataclass(frozen=True)
class Die:
    """A die with ``sides`` sides."""

    sides: int = 6

    def roll(self) -> int:
        """One of its sides."""

    def _worn(self):
        pass
'''

RULES = '''\
"""What counts.

one     a point
two     two points
"""

LIMIT = 21
"""The most that counts."""


def points(sides: int) -> int:
    """The sum of all sides.

    Raises
    ------
    ValueError
        if there are none.
    """


def _secret():
    pass
'''

PROSE = "One `Die`, its `Die.sides`, `r.points()`, `law.nothing`, `rules.LIMIT`, `np.ones`, `points`, `law.points`."
UNSEEN = {"tags": ["remove-input"]}
LINES = ["import numpy as np", "from game import throw, rules as r", "p = throw(np.ones(3))", "r.points(2)"]


@pytest.fixture(scope="module")
def game(tmp_path_factory):
    folder = tmp_path_factory.mktemp("game") / "game"
    folder.mkdir()
    (folder / "__init__.py").write_text(GAME)
    (folder / "rules.py").write_text(RULES)
    (folder / "_hidden.py").write_text('def cheat() -> None:\n    """Wins."""\n')
    return Library({"game": folder})


def test_the_entries_of_a_module_are_its_public_names_and_second_names_lead_to_the_first(game):
    assert set(game.modules) == {"game", "game.rules"}
    assert [entry.name for entry in game.modules["game.rules"].entries] == ["LIMIT", "points"]
    assert game.aliases == {"game.points": "game.rules.points"}
    # What a private module defines has its place where it is public.
    assert {"game.cheat", "game.Die.roll", "game.throw"} <= game.names
    assert not any("_" in name.rpartition(".")[2] for name in game.names)


def test_annotations_read_as_they_were_written_and_know_their_full_names(game):
    entries = {entry.name: entry for entry in game.modules["game"].entries}
    assert entries["throw"].arguments == (
        "sides: ~jaxtyping.Float[~jax.Array, 'N'], *, bonus: ~numpy.ndarray | None=None"
    )
    assert entries["throw"].returns == "~jaxtyping.Float[~jax.Array, 'N N']"
    assert entries["Die"].arguments == "sides: int = 6"


def test_a_first_line_that_is_a_formula_is_code_up_to_its_words():
    assert docstrings.summary("m_i = tanh(h_i): one spin, alone.") == "``m_i = tanh(h_i)``: one spin, alone."
    assert docstrings.summary("The mean of all spins.") == "The mean of all spins."
    assert docstrings.summary("x = y `z`.") == "``x = y z``."


def test_the_first_line_of_a_module_is_words_even_with_a_formula_in_it():
    assert docstrings.restructured("Solve y = f(y).\n\nA b.", of_module=True) == "Solve y = f(y).\n\nA b.\n"
    assert docstrings.restructured("Solve y = f(y).\n\nA b.") == "``Solve y = f(y)``.\n\nA b.\n"


def test_a_docstring_may_name_the_neighbours_of_its_module_and_an_import_says_more(tmp_path):
    for name, text in {
        "a/__init__": "",
        "a/here": "from g.b import far\n",
        "a/near": "def one(): ...\n",
        "a/far": "def two(): ...\n",
        "b/__init__": "",
        "b/far": "def two(): ...\n",
        "__init__": "",
    }.items():
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    made = Library({"g": tmp_path})
    assert made.meaning("g.a.here", "near.one") == "g.a.near.one"
    assert made.meaning("g.a.here", "far.two") == "g.b.far.two"
    assert made.meaning("g.b.far", "near.one") == "near.one"


def test_no_sign_of_a_docstring_is_taken_for_markup():
    assert docstrings.prose("side_ *all* |m| `x`") == r"side\_ \*all\* \|m\| ``x``"
    assert docstrings.restructured("Two.\n\na    one\nb    two\n") == "Two.\n\n::\n\n   a    one\n   b    two\n"
    assert ":raises ValueError: if there are none." in docstrings.restructured(
        ast.get_docstring(ast.parse(RULES).body[-2])
    )


def test_a_name_is_followed_through_imports_until_it_is_something_else():
    found = names.occurrences(
        [
            "import game.rules\nfrom game import throw as t, rules\nx = t(rules.points)",
            "class Night:\n    def t(self):\n        return t(1)",
            "def f(rules):\n    return rules.points, t\nt = 3\nt",
            "[rules for rules in range(3)]; game.rules.points",
        ]
    )
    assert [[(one.line, one.start, one.end, one.name) for one in cell] for cell in found] == [
        [
            (1, 7, 17, "game.rules"),
            (2, 5, 9, "game"),
            (2, 17, 22, "game.throw"),
            (2, 26, 27, "game.throw"),
            (2, 29, 34, "game.rules"),
            (3, 4, 5, "game.throw"),
            (3, 6, 11, "game.rules"),
            (3, 12, 18, "game.rules.points"),
        ],
        [(3, 15, 16, "game.throw")],
        [(2, 25, 26, "game.throw")],
        [(1, 31, 35, "game"), (1, 36, 41, "game.rules"), (1, 42, 48, "game.rules.points")],
    ]


@pytest.fixture(scope="module")
def library():
    """The book's own, read once; no test changes it."""
    return of_book(ROOT)


@pytest.fixture(scope="module")
def rendered(game, tmp_path_factory):
    """A site of one page and the reference of a small library, made by Sphinx with every warning counted."""
    root = tmp_path_factory.mktemp("small")
    stage = root / "stage"
    (stage / "notebooks").mkdir(parents=True)
    (stage / "index.md").write_text("# A book\n\nSee `game.rules.points` and `game.nothing`.\n")
    cells = [nbformat.v4.new_markdown_cell(f"# A night\n\n{PROSE}")]
    # What readers do not see imports all the same.
    cells += [nbformat.v4.new_code_cell("from game import Die\nimport game.rules as law", metadata=UNSEEN)]
    cells += [nbformat.v4.new_code_cell(line) for line in [*LINES, "law.points(3)"]]
    metadata = {"language_info": {"name": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=metadata), stage / "notebooks" / "night.ipynb")
    config = yaml.safe_load((ROOT / "_config.yml").read_text())
    inventories = config["sphinx"]["config"]["intersphinx_mapping"]
    config["sphinx"]["config"] = {
        "nitpicky": True,
        "intersphinx_mapping": {key: [url, str(ROOT / path)] for key, (url, path) in inventories.items()},
    }
    config["sphinx"]["extra_extensions"] = [reference.__name__]
    config["bibtex_bibfiles"] = ["references.bib"]
    (stage / "references.bib").write_text("")
    (stage / "_config.yml").write_text(yaml.safe_dump(config))
    used = {name: ["night"] for name in names.used(LINES, game.find)}
    (stage / "notebooks" / "day.md").write_text("# The day after\n")
    chapter = {"file": "notebooks/night", "sections": [{"file": "notebooks/day"}]}
    toc = {"format": "jb-book", "root": "index", "parts": [{"chapters": [chapter]}]}
    toc["parts"].append({"chapters": [{"file": reference.INDEX}]})
    (stage / "_toc.yml").write_text(yaml.safe_dump(toc))
    reference.Reference(game, used, {"night": "A night"}, reference._known(ROOT)).write(stage)
    toc = yaml.safe_load((stage / "_toc.yml").read_text())
    (stage / "reference" / "game.rules.more.rst").write_text("More\n====\n")
    toc["parts"][1]["chapters"][0]["sections"][-1]["sections"] = [{"file": "reference/game.rules.more"}]
    (stage / "_toc.yml").write_text(yaml.safe_dump(toc))
    with pytest.MonkeyPatch.context() as patch:
        # Only with the other extensions of a book may pages be read side by side.
        patch.setattr(environment, "processors", lambda: [0])
        problems = rendering._jupyter_book(stage, root / "site", root / "log")
    html = root / "site" / "_build" / "html"
    unknown = names.link(html, ["game"])
    return html, problems, unknown


def test_a_page_of_the_reference_knows_the_file_it_was_made_from(library):
    for name, module in library.modules.items():
        assert ROOT / reference.source(ROOT, f"reference/{name}") == module.path
    assert reference.source(ROOT, reference.INDEX) is None
    assert reference.source(ROOT, f"notebooks/{library.name}") is None


def test_a_page_leads_to_the_code_that_it_was_made_from(rendered, library, tmp_path):
    page = (rendered[0] / "reference" / "game.rules.html").read_text()
    assert f'<a href="../{reference.code("src/game/rules.py")}">src/game/rules.py</a>' in page
    reference.copy_code(ROOT, tmp_path)
    for module in library.modules.values():
        copied = tmp_path / reference.code(module.path.relative_to(ROOT).as_posix())
        assert copied.read_bytes() == module.path.read_bytes()


def test_the_pages_are_made_without_a_warning(rendered):
    assert rendered[1] == []


def test_names_in_cells_lead_to_their_entries_and_entries_back_to_their_chapters(rendered):
    html = rendered[0]
    page = (html / "notebooks" / "night.html").read_text()
    links = dict(re.findall(r'<a class="reference internal book-name" href="([^"]+)" title="([^"]+)">', page))
    assert links == {
        "../reference/game.html#module-game": "game",
        "../reference/game.html#game.throw": "game.throw",
        "../reference/game.rules.html#module-game.rules": "game.rules",
        "../reference/game.rules.html#game.rules.points": "game.rules.points",
        "../reference/game.html#game.Die": "game.Die",
        "../reference/game.rules.html#game.rules.LIMIT": "game.rules.LIMIT",
    }
    assert page.count('title="game.throw"') == 2
    assert re.search(r'title="game.rules">law</a>', page), "imported where nobody sees it"
    entry = (html / "reference" / "game.rules.html").read_text()
    back = re.findall(r'<p class="book-used">Used in <a class="reference internal" href="([^"]+)">', entry)
    assert back == ["../notebooks/night.html"] * 2
    assert "night.html" not in re.search(r'id="game.rules.LIMIT".*?</dl>', entry, flags=re.DOTALL)[0]


def test_names_in_prose_are_links_and_those_that_nothing_answers_are_reported(rendered):
    html, _, unknown = rendered
    assert 'href="reference/game.rules.html#game.rules.points"' in (html / "index.html").read_text()
    assert unknown == [
        "index.html: game.nothing is not in the reference",
        "notebooks/night.html: game.rules.nothing is not in the reference",
    ]
    prose = (html / "notebooks" / "night.html").read_text().partition('class="cell_input')[0]
    links = re.findall(r'title="([^"]+)"><code[^>]*><span class="pre">([^<]+)</span>', prose)
    assert links == [
        ("game.Die", "Die"),
        ("game.Die", "Die.sides"),
        ("game.rules.points", "r.points()"),
        ("game.rules.LIMIT", "rules.LIMIT"),
        ("game.rules.points", "law.points"),
    ], "nothing is a link that is not a name of the library, or is another page's word for one"


def test_a_page_that_is_not_the_picture_of_its_notebook_is_read_by_itself():
    found, bound = names._read(["import game"], ["import law as l", "l.points"])
    assert [one.name for cell in found for one in cell] == ["law", "law", "law", "law.points"]
    assert bound == {"l": "law"}


def test_shapes_are_legible_and_other_projects_are_linked(rendered):
    text = (rendered[0] / "reference" / "game.html").read_text()
    signature = re.search(r'<dt class="sig[^>]*id="game.throw">.*?</dt>', text, flags=re.DOTALL)[0]
    assert "Float[Array, &quot;N N&quot;]" in re.sub(r"<[^>]+>", "", signature).replace('"', "&quot;")
    assert "jaxtyping" not in re.sub(r"<[^>]+>", "", signature)
    assert 'href="https://docs.jax.dev/en/latest/_autosummary/jax.Array.html#jax.Array"' in signature
    assert 'href="https://numpy.org/doc/stable/reference/generated/numpy.ndarray.html#numpy.ndarray"' in signature
    assert 'href="https://docs.jax.dev/en/latest/_autosummary/jax.jit.html#jax.jit"' in text


def test_the_inventory_holds_every_name_and_second_name(rendered, game):
    held = names.inventory(rendered[0])
    assert game.names | set(game.aliases) <= set(held)
    assert held["game.points"] == held["game.rules.points"]


def test_every_public_name_of_the_library_has_an_entry(library):
    program = (
        "import importlib, inspect, json, sys\nfound = {}\n"
        "for name in json.loads(sys.argv[1]):\n"
        "    module = importlib.import_module(name)\n"
        "    listed = getattr(module, '__all__', None)\n"
        "    found[name] = listed if listed is not None else [\n"
        "        local for local, value in vars(module).items() if not local.startswith('_')\n"
        "        and (inspect.isfunction(value) or inspect.isclass(value)) and value.__module__ == name]\n"
        "print(json.dumps(found))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(sorted(library.modules))], capture_output=True, text=True, check=True
    )
    public = [f"{module}.{local}" for module, locals_ in json.loads(done.stdout).items() for local in locals_]
    assert len(public) > 300
    assert [name for name in public if library.find(name) is None] == []
    assert list(library.packages) == ["spinbook", "chapters", "experiments"]
    places = [path for folder in library.packages.values() for path in folder.rglob("*.py")]
    files = {path.relative_to(ROOT / "src").with_suffix("") for path in places}
    dotted = {".".join(part for part in path.parts if part != "__init__") for path in files}
    assert set(library.modules) == {name for name in dotted if not re.search(r"\._", name)}


def test_every_name_that_a_chapter_imports_from_the_library_has_an_entry(library):
    missing = []
    for chapter in notebooks.names(ROOT):
        cells = [cell.source for cell in notebooks.load(ROOT, chapter).notebook.cells if cell.cell_type == "code"]
        found = [one.name for cell in names.occurrences(cells) for one in cell]
        assert library.packages.keys() & {name.partition(".")[0] for name in found}, chapter
        for name in found:
            # Attributes of a constant or of a class's instance belong to the entry before them.
            head = name.split(".")
            inside = any(library.find(".".join(head[:count])) for count in range(2, len(head) + 1))
            if head[0] in library.packages and len(head) > 1 and not inside:
                missing.append(f"{chapter}: {name}")
    assert missing == []


def docs(library):
    """Every docstring of a library, by its name, with the name of the module it stands in."""
    for module in library.modules.values():
        yield module.name, module.name, module.doc
        for entry in module.entries:
            yield module.name, f"{module.name}.{entry.name}", entry.doc
            for member in entry.members:
                yield module.name, f"{module.name}.{entry.name}.{member.name}", member.doc


@pytest.mark.slow
def test_no_docstring_of_the_library_is_broken_markup(library):
    roles.register_generic_role("py:obj", nodes.literal)
    broken, count = [], 0
    for _, name, doc in docs(library):
        count += 1
        text = docstrings.restructured(doc, lambda name: name) if doc else ""
        options = {"report_level": 5, "halt_level": 5, "file_insertion_enabled": False}
        tree = core.publish_doctree(text, settings_overrides=options)
        messages = [*tree.parse_messages, *tree.transform_messages, *tree.findall(nodes.system_message)]
        # The role is Sphinx's; that it is registered from outside is remarked on.
        broken += [f"{name}: {one.astext()}" for one in messages if "No role entry" not in one.astext()]
        broken += [f"{name}: {part.astext()}" for part in tree.findall(nodes.problematic)]
    assert count > 500
    assert broken == []


def test_every_name_of_another_project_in_an_annotation_stands_in_its_inventory(library):
    known = reference._known(ROOT)
    assert {"jax", "numpy", "torch"} <= set(known)
    found = set()
    for module in library.modules.values():
        for entry in [part for whole in module.entries for part in (whole, *whole.members)]:
            found |= set(re.findall(r"~([A-Za-z_][\w.]*)", f"{entry.arguments} {entry.returns}"))
    held = {name for name in found if name.partition(".")[0] in known}
    assert {"jax.Array", "numpy.ndarray", "torch.Tensor"} <= held
    assert {name for name in held if name not in known[name.partition(".")[0]]} == set()


def test_the_contents_list_pages_of_the_reference_around_the_open_one_alone(rendered):
    listed = {}
    for name in ("notebooks/night", "genindex", "reference/game", "reference/game.rules"):
        page = BeautifulSoup((rendered[0] / f"{name}.html").read_text(), "html.parser")
        margin = page.select_one("nav.bd-links")
        # The first is the way to the title page.
        listed[name] = [link.get_text().strip() for link in margin.select("a")][1:]
        for item in margin.select("li"):
            assert ("has-children" in item.get("class", [])) == bool(item.find("ul"))
    assert listed == {
        "notebooks/night": ["A night", "The day after", "Reference"],
        "genindex": ["A night", "The day after", "Reference"],
        "reference/game": ["A night", "Reference", "game", "rules"],
        "reference/game.rules": ["A night", "Reference", "game", "rules", "More"],
    }
