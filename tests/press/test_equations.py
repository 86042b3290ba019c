"""The map of equations is complete in both directions, and says of functions and claims what the code does."""

import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from companion import claims
from companion.declaring import calls, equations
from companion.evidence import why
from companion.site import equation_page
from toybook import add_audit, page_of, write

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def whole():
    return equations.Map(ROOT)


def test_the_map_of_the_book_is_complete_in_both_directions(whole):
    assert [str(one) for one in whole.problems()] == []
    assert len([row for row in whole.rows if row.source]) > 130
    assert len(whole.functions) > 150


def test_every_equation_that_is_listed_or_labelled_or_claimed_has_one_row(whole):
    anchors = [row.anchor for row in whole.rows]
    assert len(set(anchors)) == len(anchors)
    labels = {row.label for row in whole.rows if row.label}
    assert labels == set(whole.labels)
    assert {label for claim in whole.claims.values() for label in claim.equation} <= labels
    for row in whole.rows:
        assert set(row.shown) <= labels
        assert row.functions or row.claims or row.reasons or row.places or row.shown or row.label, row


def test_a_place_that_the_map_names_is_that_of_the_definition(whole):
    for one in whole.functions.values():
        line = (ROOT / one.file).read_text().splitlines()[one.line - 1]
        assert one.name.rpartition(".")[2] in line, one


def test_a_test_that_the_map_names_has_the_name_of_the_function_or_of_a_helper_that_has(whole):
    """Read with regular expressions alone: the last part of the name stands in the file, or in what tests share.

    That is a conftest above it, or a module of tests that it imports.
    """
    texts = {}
    for one in whole.functions.values():
        for test in one.tests:
            path = ROOT / test.file
            if path not in texts:
                above = [folder / "conftest.py" for folder in (path.parent, path.parent.parent)]
                taken = re.findall(r"^from (tests[.\w]*) import (\w+)$", path.read_text(), flags=re.MULTILINE)
                shared = [ROOT / f"{package.replace('.', '/')}/{name}.py" for package, name in taken]
                files = [path, *(file for file in (*above, *shared) if file.is_file())]
                texts[path] = "".join(file.read_text() for file in files)
                texts[path] += (ROOT / "tests/policy/registry.py").read_text() if "policy" in test.file else ""
            assert re.search(rf"\b{one.name.rpartition('.')[2]}\b", texts[path]), (one.name, test)


def test_citations_are_read_with_their_ranges_and_ordinary_words_are_none():
    assert equations.cited("Source: Author (2000), equations (13) to (16).") == ["13", "14", "15", "16"]
    assert equations.cited("The equation is iterated; equations of motion, an eq. of state") == ["of"]
    assert equations.cited("labels here and there. Source: Author (2000), labels one and two, with care.") == [
        "one",
        "two",
    ]
    assert equations.cited("as in eq:three-four (eq:five)") == ["three-four", "five"]
    assert equations.named("Equations 4 and 5, a flow, flowlabel") >= {"4", "5", "flowlabel"}


TESTS = """\
import pytest
from walks import pairs as p
from walks.steps import far
from walks.unrelated import Walk
from tests.helpers import twice

CASES = [p.both, None]


@pytest.fixture
def walker():
    return Walk(3)


def other(x: Walk):
    return isinstance(x, Walk)


def test_by_alias():
    assert p.both(1) == 1


def test_through_a_helper():
    assert twice(1) == 2


@pytest.mark.parametrize("f", CASES)
def test_from_a_table(f):
    f(1)


def test_of_a_method(walker):
    walker.go()


def test_of_nothing(x):
    from walks.unrelated import three
    p = x
    p.both(other(1))
    [three for three in x]
"""


HELPERS = "from walks import steps\n\n\ndef twice(x):\n    return steps.far(x)\n"


@pytest.fixture
def code(toy_book):
    write(toy_book.path("tests"), {"test_pairs.py": TESTS, "helpers.py": HELPERS})
    toy_book.path("src/walks/steps.py").write_text("LENGTH = 1.0\n\n\ndef far(x):\n    return 2 * x\n")
    walk = "\n\nclass Walk:\n    def go(self):\n        return three(1)\n"
    path = toy_book.path("src/walks/unrelated.py")
    path.write_text(path.read_text() + walk)
    return calls.Code(toy_book.root, ["walks"])


def test_calls_are_followed_through_aliases_helpers_tables_and_fixtures_but_not_through_the_library(code):
    found = {test.name.rpartition(".")[2]: code.called(test) for test in code.tests()}
    assert {name: sorted(reached.names) for name, reached in found.items()} == {
        "test_by_alias": ["walks.pairs.both"],
        "test_through_a_helper": ["walks.steps.far"],
        "test_from_a_table": ["walks.pairs.both"],
        "test_of_a_method": ["walks.unrelated.Walk"],
        "test_of_nothing": [],
    }
    assert found["test_of_a_method"].calls("walks.unrelated.Walk.go")
    assert not found["test_of_a_method"].calls("walks.unrelated.Walk.stop")
    assert "walks.unrelated.three" in code.reached(["walks.unrelated.Walk"]).names


CELLS = [
    "from walks import pairs, steps\nfrom companion import claims, figures\nx = steps.far(3)\ny = 2",
    "def half(x):\n    return pairs.both(x) / 2\n\nx = 1\nlisted = []",
    "figures.publish(x, 'a')\nfor step in range(3):\n    listed.append(half(step))",
    "claims.measure('probe.one', max(listed))\nz = [x for x in range(3)]",
    "claims.measure('probe.two', y + z[0])",
]


def test_what_a_measurement_rests_on_is_found_backwards_through_cells():
    page = calls.Notebook(CELLS)
    # What x was before it was given anew, and what only draws, is not among it.
    assert page.behind("claims.measure", "probe.one").names == {"companion.claims.measure", "walks.pairs.both"}
    assert page.behind("claims.measure", "probe.two").names == {"companion.claims.measure"}
    assert page.behind("claims.measure", "probe.three") is None


LATE = [
    "from walks import pairs, steps\nfrom companion import claims\nimport numpy as np\nrng = np.random.default_rng(1)",
    "new = steps.far(1)\nodd, even = [], []\nfirst = rng.random()",
    "net = [pairs]\ndef apart(x):\n    local = [x]\n    local[0] = rng.random()\n    return new + x",
    "def stops():\n    for layer in net:\n        layer.padding = 1\n    return net",
    "for found, _ in zip((odd, even), range(2)):\n    found.append(steps.far(2))",
    "new = pairs.both(1)",
    "second = apart(first)\nMarkdown(pairs.both(new))",
    "claims.measure('probe.late', apart(3))",
    "claims.measure('probe.loop', max(odd))",
    "claims.measure('probe.called', len([*zip(range(3), range(3))]))",
    "claims.measure('probe.stops', stops())",
    "def fresh():\n    return np.random.default_rng(2).random()",
    "third = fresh()",
    "claims.measure('probe.fresh', fresh())",
]


def test_a_function_finds_its_names_when_it_is_called_and_a_loop_changes_what_it_goes_through():
    page = calls.Notebook(LATE)
    measure = "companion.claims.measure"
    # What a name stood for where the function is defined, and what only shows it, is not what the call uses.
    assert page.behind("claims.measure", "probe.late").names == {
        measure,
        "walks.pairs.both",
        "numpy.random.default_rng",
    }
    assert "walks.steps.far" in page.behind("claims.measure", "probe.loop").names
    # What is called to go through it stays what it was.
    assert page.behind("claims.measure", "probe.called").names == {measure}
    assert page.behind("claims.measure", "probe.stops").names == {measure, "walks.pairs"}
    alone = "\n".join(page.alone("claims.measure", ["probe.late"]))
    # Random numbers that a function drew in between are drawn again.
    assert "new = pairs.both(1)\nsecond = apart(first)" in alone
    assert "first = rng.random()" in alone
    assert "found.append" not in alone
    # A function that makes its own generator draws the same whatever was drawn before.
    assert "third" not in "\n".join(page.alone("claims.measure", ["probe.fresh"]))


@pytest.fixture
def toy(code, toy_book):
    add_audit(toy_book)
    return toy_book


def wrong(book):
    return [(one.rule, one.message) for one in equations.Map(book.root).problems()]


def test_a_toy_book_is_complete_and_every_gap_is_named(toy):
    assert wrong(toy) == []
    toy.edit("src/walks/pairs.py", '"""x^2."""', '"""x^2. Source: Author (2000), eq. square."""')
    assert [rule for rule, _ in wrong(toy)] == ["map-docstring"]
    toy.edit("book/items/author2000source.yml", "The parabola", "The parabola, square")
    assert wrong(toy) == []
    row = next(row for row in equations.Map(toy.root).rows if row.words == "The parabola, square")
    assert (row.claims, row.functions, row.shown) == (["probe.top"], ["walks.pairs.both"], ["eq:probe-square"])
    toy.edit("book/claims/probe.yml", "  functions: [walks.pairs.both]\n", "")
    assert wrong(toy) == [("map-functions", "probe.slope: functions: none, but its cell runs ['walks.pairs.both']")]
    toy.edit("book/claims/probe.yml", "  route: central", "  functions: [walks.pairs.both]\n  route: central")
    toy.edit("tests/test_pairs.py", "p.both", "p.neither")
    assert wrong(toy) == [("map-test", "walks.pairs.both: no test calls it")]


RECORDED = """\
from importlib import resources
from walks import steps

_FILE = "steps.json"


def measure(x):
    return steps.far(x)


def compute(folder):
    (folder / _FILE).write_text(str(measure(1)))


def record():
    return resources.files("walks").joinpath("steps.json").read_text()
"""


def test_a_claim_names_what_its_cell_runs_or_what_made_a_record_that_it_reads(toy):
    top = ("probe.top", "walks.pairs.both")
    assert equations.Map(toy.root).relation(*top) is equations.Relation.OWN
    assert equations.Map(toy.root).relation("probe.top", "walks.steps.far") is equations.Relation.NONE
    toy.edit("book/claims/probe.yml", "- id: probe.top\n", "- id: probe.top\n  functions: [walks.pairs.both]\n")
    assert wrong(toy) == []
    # The page reads a record in place of what it computed.
    toy.path("src/walks/recorded.py").write_text(RECORDED)
    toy.path("src/walks/steps.json").write_text("2")
    page = next(path for path in toy.path("notebooks").rglob("*.md") if '"probe.top"' in path.read_text())
    before = page.read_text()
    page.write_text(re.sub(r'claims\.measure\(\s*"probe\.top".*?\)\n', "", before, flags=re.DOTALL))
    assert '"probe.top"' not in page.read_text()
    cell = 'from walks import recorded\nclaims.measure("probe.top", float(recorded.record()), rival=0.0)\n'
    page.write_text(page.read_text() + f"\n```{{code-cell}} ipython3\n{cell}```\n")
    found = equations.Map(toy.root)
    assert found.relation("probe.top", "walks.steps.far") is equations.Relation.RECORD
    assert found.relation("probe.top", "walks.recorded.record") is equations.Relation.OWN
    assert found.relation(*top) is equations.Relation.NONE
    said = "its cell runs none of ['walks.pairs.both'], and none made a record that it reads"
    assert ("map-runs", f"probe.top: functions: {said}") in wrong(toy)
    # What made the record is run once more, beside reading it.
    name = page.relative_to(toy.root).as_posix()
    toy.edit(name, "rival=0.0)", "rival=recorded.measure(1))")
    assert equations.Map(toy.root).relation("probe.top", "walks.steps.far") is equations.Relation.THROUGH
    toy.edit(name, "rival=recorded.measure(1))", "rival=0.0)")
    # One that it runs does not excuse another that it does not.
    toy.edit("book/claims/probe.yml", "[walks.pairs.both]", "[walks.pairs.both, walks.recorded.record]")
    assert ("map-runs", f"probe.top: functions: {said}") in wrong(toy)
    assert "walks.pairs.both (src/walks/pairs.py:4), which its cell does not run\n" in why.text(toy.root, "probe.top")


def test_why_names_source_version_equation_function_tests_and_rival(toy):
    said = why.text(toy.root, "probe.slope")
    for words in (
        "probe.slope\n  The slope is x.\n",
        "source      author2000source, version 2000-01-02: section 3",
        "equation    eq:probe-slope (notebooks/audits/probe.md)",
        "route       central differences",
        "measured    notebooks/audits/probe.md:",
        "verdict     corrected is declared; no build in this folder has measured it",
        "function    walks.pairs.both (src/walks/pairs.py:4)\n",
        "tests/test_pairs.py:19 test_by_alias",
        "because     A factor <two> is missing.",
    ):
        assert words in said, said
    # An old name leads to the same claim; a claim without functions says what its cell runs.
    assert why.text(toy.root, "probe.summit").startswith("probe.top\n")
    assert "rival       half of the parabola" in why.text(toy.root, "probe.top")
    expected = r"CLAIM: expected an id of book/claims or a name of the library, as probe\..*; got 'probe.nothing'"
    with pytest.raises(ValueError, match=expected):
        why.text(toy.root, "probe.nothing")


def test_why_names_place_tests_and_claims_of_a_function(toy):
    said = why.text(toy.root, "walks.pairs.both")
    assert said.startswith("walks.pairs.both\n\n  defined     src/walks/pairs.py:4\n  tests       tests/")
    assert "tests/test_pairs.py:19 test_by_alias\n" in said
    # One claim names it, another's cell runs it.
    assert re.findall(r"probe\.\w+", said.partition("  claims ")[2]) == sorted({"probe.slope", "probe.top"})


def entries(found):
    return [
        {"id": id, "verdict": claim.verdict, "holds": True, "page": f"audits/{claim.chapter}"}
        for id, claim in found.claims.items()
    ]


def test_the_page_lists_every_equation_and_function_with_links_to_one_another(toy):
    found = equations.Map(toy.root)
    page = BeautifulSoup(equation_page.markup(found, entries(found), "../"), "html.parser")
    rows = page.select(".book-equations tbody tr")
    assert len(rows) == len(found.rows)
    own = page.find(id="row-probe-slope")
    assert [link["href"] for link in own.select("a")] == [
        "../notebooks/audits/probe.html#equation-eq-probe-slope",
        "#function-walks-pairs-both",
        f"../book/claims.html#ledger-{claims.anchor_of('probe.slope')}",
    ]
    assert own["data-text"] == "this book"
    functions = page.select(".book-functions tbody tr")
    assert {row["id"] for row in functions} == {"function-walks-pairs-both"}
    assert functions[0].select_one("details").get_text(" ") == (
        "2 tests in 1 file tests/test_pairs.py:19 by alias tests/test_pairs.py:28 from a table"
    )
    ids = {one["id"] for one in page.select("[id]")}
    assert {link["href"][1:] for link in page.select("a[href^='#']")} <= ids


def test_the_map_of_the_book_is_light_enough_to_read(whole):
    made = equation_page.markup(whole, entries(whole), "../")
    assert len(made.encode()) < 1_000_000
    page = BeautifulSoup(made, "html.parser")
    ids = [one["id"] for one in page.select("[id]")]
    assert len(ids) == len(set(ids))
    assert {link["href"][1:] for link in page.select("a[href^='#']")} <= set(ids)


def test_the_map_is_searched_by_word_and_by_text(tmp_path, toy, ask):
    found = equations.Map(toy.root)
    page = page_of(tmp_path / "page.html", equation_page.markup(found, entries(found), "../"), "companion.js")
    script = """
      const rows = [...document.querySelectorAll(".book-equations tbody tr")];
      const shown = () => rows.filter((row) => !row.hidden).length;
      const [text, choice] = document.querySelectorAll(".book-filter input, .book-filter select");
      const type = (control, words) => {
        control.value = words;
        control.dispatchEvent(new Event("input", { bubbles: true }));
        return shown();
      };
      const counts = [shown(), type(text, "slope")];
      const names = [...document.querySelectorAll(".book-graph a")].map((link) => link.getAttribute("href"));
      const lines = document.querySelectorAll(".book-graph path").length;
      type(text, "");
      counts.push(type(choice, "author2000source"));
      const answer = [counts, names, lines];
    """
    counts, names, lines = ask(page, script)
    assert counts == [len(found.rows), 1, 1]
    # The one that is left is drawn: an equation, its function and its claim, and the lines between them.
    ledger = f"../book/claims.html#ledger-{claims.anchor_of('probe.slope')}"
    assert (names, lines) == (["#row-probe-slope", "#function-walks-pairs-both", ledger], 2)
