"""When a chapter must run again, and when it must not."""

import importlib
from pathlib import Path

import pytest

from companion.declaring import notebooks
from companion.running import freshness

ROOT = Path(__file__).resolve().parents[2]


def key(book):
    return freshness.key(book.root, notebooks.load(book.root, "probe"))


def evidence_key(book):
    return freshness.evidence_key(freshness.ingredients(book.root, notebooks.load(book.root, "probe")))


CHANGES = {
    "a code cell": ("notebooks/probe.md", "x = np.linspace(0, 1, size)", "x = np.linspace(0, 2, size)"),
    "a parameter": ("notebooks/probe.md", "size = 20", "size = 21"),
    "an imported function": ("src/walks/pairs.py", "x**2", "x * x"),
    "a module imported by an imported one": ("src/walks/steps.py", "1.0", "2.0"),
    "a cell that is skipped": ("notebooks/probe.md", ":tags: [hide-input]", ":tags: [hide-input, skip-execution]"),
    "the lock": ("requirements.lock", "numpy==", "numpy==1"),
    "the address": ("_config.yml", "random-walkers/", "elsewhere/"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_key_changes_with(toy_book, change):
    before, of_numbers = key(toy_book), evidence_key(toy_book)
    name, old, new = CHANGES[change]
    toy_book.edit(name, old, new)
    assert key(toy_book) != before
    assert (evidence_key(toy_book) == of_numbers) == (change == "the address")


WORDS = {
    "the prose": ("notebooks/probe.md", "The largest value", "The top"),
    "how a cell is shown": ("notebooks/probe.md", "hide-input", "hide-cell"),
    "what a claim says": ("book/claims/probe.yml", "Walkers who", "Those who"),
    "what is published": ("book/claims/probe.yml", "1.0", "2.0"),
    "an unrelated module": ("src/walks/unrelated.py", "x**3", "x * x * x"),
    "a comment": ("src/walks/pairs.py", "    return", "    # The same.\n    return"),
}


@pytest.mark.parametrize("change", WORDS)
def test_the_key_stays_with(toy_book, change):
    before = key(toy_book)
    name, old, new = WORDS[change]
    toy_book.edit(name, old, new)
    assert key(toy_book) == before


def test_documentation_and_the_texts_of_errors_run_nothing_unless_a_page_may_show_them(toy_book):
    refused = '    if x is None:\n        raise ValueError(f"x: expected {1}")\n'
    code = f'def both(x):\n    """x^2."""\n{refused}    return x**2\n'
    path = toy_book.path("src/walks/pairs.py")

    def seen(old="", new=""):
        path.write_text(code.replace(old, new))
        return key(toy_book)

    before = seen()
    assert seen("x^2.", "The square.") == seen('    """x^2."""\n') == seen("x: expected {1}", "x: got {x}") == before
    assert len({before, seen("is None", "is True"), seen("ValueError", "TypeError"), seen("x**2", '"x^2."')}) == 4
    for cell in (
        "try:\n    pairs.both(None)\nexcept ValueError as error:\n    print(error)",
        "print(pairs.both.__doc__)",
    ):
        toy_book.edit("notebooks/probe.md", "x = np.linspace", f"{cell}\nx = np.linspace")
        assert len({seen(), seen("x^2.", "The square."), seen("x: expected {1}", "x: got {x}")}) == 3
        toy_book.edit("notebooks/probe.md", f"{cell}\n", "")


def test_a_release_makes_pages_run_again_and_leaves_the_key_of_their_numbers(toy_book):
    before, of_the_run = evidence_key(toy_book), key(toy_book)
    toy_book.edit("src/walks/__init__.py", "0.1.0.dev0", "1.0.0")
    assert key(toy_book) != of_the_run
    assert evidence_key(toy_book) == before


def test_the_key_changes_with_a_data_file(toy_book):
    toy_book.path("data.csv").write_text("1")
    toy_book.edit("notebooks/probe.md", "  budget: 60", "  budget: 60\n  data: [data.csv]")
    before = key(toy_book)
    toy_book.path("data.csv").write_text("2")
    assert key(toy_book) != before
    toy_book.path("data.csv").unlink()
    with pytest.raises(ValueError, match=r"data files not found: \['data.csv'\]"):
        key(toy_book)


def test_the_key_changes_with_data_that_lie_beside_an_imported_module_and_with_no_other(toy_book):
    for folder, name in (("record", "rows.json"), ("record/more", "table.csv"), ("record/package", "data.json")):
        toy_book.path(f"src/walks/{folder}").mkdir()
        toy_book.path(f"src/walks/{folder}/{name}").write_text("1")
    for folder in ("record", "record/package"):
        toy_book.path(f"src/walks/{folder}/__init__.py").write_text("")
    toy_book.path("src/walks/pairs.py").write_text("def both(x):\n    from walks import record\n    return x**2\n")
    seen = [key(toy_book)]
    for name in ("record/rows.json", "record/more/table.csv"):
        toy_book.path(f"src/walks/{name}").write_text("2")
        seen.append(key(toy_book))
    assert len(set(seen)) == 3
    toy_book.path("src/walks/record/package/data.json").write_text("2")
    toy_book.path("src/walks/record/.hidden").write_text("2")
    assert key(toy_book) == seen[-1]
    made_of = freshness.ingredients(toy_book.root, notebooks.load(toy_book.root, "probe"))
    assert set(made_of["beside the library"]) == {"walks/record/rows.json", "walks/record/more/table.csv"}, (
        "no style sheet"
    )


def test_every_chapter_of_the_book_is_covered_for_the_data_that_its_library_holds():
    chapter = notebooks.load(ROOT, "comparison")
    covered = freshness.covered_files(ROOT, chapter)
    assert {ROOT / f"src/experiments/comparison/{name}.json.gz" for name in ("comparison", "longer")} <= covered


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A function that installs a package of one module, as pip leaves it."""
    folder = tmp_path / "site-packages"
    monkeypatch.syspath_prepend(folder)
    caches = (freshness._holders, freshness.installed, freshness.required, freshness._version)

    def install(name, version, requires=()):
        facts = folder / f"{name}-0.dist-info"
        facts.mkdir(parents=True, exist_ok=True)
        lines = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}"]
        lines += [f"Requires-Dist: {line}" for line in requires]
        (facts / "METADATA").write_text("\n".join(lines) + "\n")
        (facts / "top_level.txt").write_text(f"{name}_module\n")
        importlib.invalidate_caches()
        for cached in caches[1:]:
            cached.cache_clear()

    for name in ("one", "two", "three"):
        install(name, "0")
    caches[0].cache_clear()
    yield install
    for cached in caches:
        cached.cache_clear()


def test_the_key_changes_with_the_version_of_a_package_that_is_imported_or_required_by_one(toy_book, installed):
    toy_book.path("src/walks/pairs.py").write_text("import one_module\n\n\ndef both(x):\n    return x**2\n")
    seen = []
    extra = 'three; extra == "all"'
    for versions in ("111", "211", "221", "222"):
        installed("one", versions[0], ["two>=1", extra])
        installed("two", versions[1])
        installed("three", versions[2])
        seen.append(key(toy_book))
    assert len(set(seen)) == 3
    assert seen[2] == seen[3], "what is not imported does not count"
    packages = freshness.ingredients(toy_book.root, notebooks.load(toy_book.root, "probe"))["packages"]
    assert {"one": "2", "two": "2"}.items() <= packages.items()
    assert {"numpy", "matplotlib", "pillow", "ipykernel"} <= set(packages)
    assert "three" not in packages


def test_imports_are_followed_through_functions_relative_names_and_packages(tmp_path):
    package = tmp_path / "spinbook"
    (package / "deep").mkdir(parents=True)
    files = {
        "__init__.py": "",
        "one.py": "def f():\n    from spinbook.deep import leaf\n",
        "deep/__init__.py": "from . import side\n",
        "deep/leaf.py": "from ..two import thing\n",
        "deep/side.py": "",
        "two.py": "import numpy\n",
        "three.py": "",
    }
    for name, text in files.items():
        (package / name).write_text(text)
    found = freshness.imported({"spinbook": package}, "import spinbook.one as one")
    expected = {"", ".one", ".deep", ".deep.leaf", ".deep.side", ".two"}
    assert set(found) == {f"spinbook{name}" for name in expected}
