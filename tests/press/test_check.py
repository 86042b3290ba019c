"""Every rule of pages that needs no run is seen to fail, all at once, with its line, before a kernel starts."""

import ast
import re
from pathlib import Path

import pytest

import test_declarations
from companion import __main__ as command_line
from companion import build, check
from companion.running import execution

ROOT = Path(__file__).resolve().parents[2]

LESSON, AUDIT, CLAIMS = "notebooks/probe.md", "notebooks/audits/probe.md", "book/claims/probe.yml"

BROKEN = {
    "equation-label": (AUDIT, "$$ (eq:probe-slope)", "$$ (eq:slope)"),
    "glue-key": (LESSON, "{glue:text}`probe-max:.2f`", "{glue:text}`probe-max: .2f`"),
    "glue-missing": (LESSON, "{glue:text}`probe-max:.2f`", "{glue:text}`probe-min:.2f`"),
    "reference": (LESSON, "{cite:p}`author2000source`", "{cite:p}`nobody1999`"),
    "long-cell": (LESSON, "x = np.linspace(0, 1, size)\n", "x = np.linspace(0, 1, size)\n" + "x = 1 * x\n" * 25),
    "figure-id": (AUDIT, '    "probe-slope",\n', '    "slope-probe",\n'),
    "figure-unspoken": (AUDIT, "{numref}`probe-slope`", "the figure"),
    "alt": (AUDIT, "A straight line that rises from zero at the left to two at the right end.", "A line."),
    "compared": ("book/compared.yml", "probe-line:", "probe-other:"),
    "comparison": ("book/compared.yml", "probe.top", "probe.bottom"),
    "source": (LESSON, "source: author2000source", "source: nobody1999"),
    "thumbnail": (LESSON, "thumbnail: probe-line", "thumbnail: probe-curve"),
    "repeated-figure": (AUDIT, '    "probe-slope",\n', '    "probe-line",\n'),
    "repeated-label": (AUDIT, "(eq:probe-slope)", "(eq:probe-square)"),
    "measured-twice": (AUDIT, 'measure("probe.slope"', 'measure("probe.top"'),
    "undeclared-claim": (AUDIT, 'measure("probe.slope"', 'measure("probe.gradient"'),
    "unmeasured-claim": (AUDIT, 'measure("probe.slope"', 'measure("probe.gradient"'),
    "not-measured": (AUDIT, 'measure("probe.slope"', 'measure("probe.biases"'),
    "rival-literal": (LESSON, "rival=pairs.both(x / 2).max()", "rival=(y.max() / 2, 0.1)"),
    "rival-unmeasured": (LESSON, ", rival=pairs.both(x / 2).max()", ""),
    "lesson-size": (LESSON, "Two independent walkers {cite", "word " * 3500 + "\n\nTwo independent walkers {cite"),
    "measured": (AUDIT, "{measured}`probe.top:.1f`", "{measured}`probe.hill:.1f`"),
    "claim-hidden": (AUDIT, ":tags: [hide-input]\n\nslope", ":tags: [remove-output]\n\nslope"),
    "checked": (LESSON, "Two independent walkers {cite", "Two walkers {checked}`probe.top` {cite"),
    "one-cell-one-claim": (
        AUDIT,
        'claims.measure("probe.slope"',
        'claims.measure("probe.sky", 1.0)\nclaims.measure("probe.slope"',
    ),
    "page": (AUDIT, "  budget: 60\n", ""),
    "state": (CLAIMS, "  says: The slope is x.", "  state: withdrawn\n  says: The slope is x."),
    "quote": ("book/claims/probe.yml", "  quote: It reaches one\n", ""),
    "section": (CLAIMS, "section: The slope}", "section: The end}"),
    "functions": (CLAIMS, "walks.pairs.both", "walks.pairs.none"),
    "equation": (CLAIMS, "equation: eq:probe-slope", "equation: eq:probe-gradient"),
    "text": ("book/sources.yml", "status: current", "status: stale"),
    "item": ("book/items/author2000source.yml", "probe.summit", "probe.hill"),
    "pair": (None, "", ""),
    "unreadable": ("book/compared.yml", "probe-line:", "probe-line: ["),
}


NO_CLAIM = """ other.sky
  was: [probe.top]
  says: Walkers reach the sky.
  source: {key: author2000source, where: section 2}
  kind: statement
  verdict: not-attempted
  because: It would take wings.
"""

ELSEWHERE = {
    "control-unmeasured",
    "repeated-id",
    "serious",
    "map-docstring",
    "map-functions",
    "map-runs",
    "map-test",
}
"""Rules with a test of their own, and what browsers find in the audit of accessibility."""

NO_RULES = {"faults.py", "why.py"}
"""Modules that yield something else: what is wrong with the list of faults (seen red in `test_faults`), and answers."""


def rules_of(path):
    """The rules that a module speaks of: third argument of a finding, or yielded with a line or alone before words."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        places = []
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Finding":
            places = node.args[2:3]
        elif isinstance(node, ast.Yield) and isinstance(node.value, ast.Tuple):
            places = node.value.elts[:2]
        for place in places:
            if (
                isinstance(place, ast.Constant)
                and isinstance(place.value, str)
                and re.fullmatch("[a-z-]+", place.value)
            ):
                yield place.value


def test_every_rule_is_seen_red_once():
    modules = [path for path in (ROOT / "companion" / "src" / "companion").rglob("*.py") if path.name not in NO_RULES]
    rules = {rule for path in modules for rule in rules_of(path)}
    assert len(rules) > 50
    assert rules - set(BROKEN) - set(test_declarations.BROKEN) - ELSEWHERE == set()


def broken(book, rule):
    """What the check finds in the chapter by this rule."""
    return [finding for finding in check.book(book.root, only="probe") if finding.rule == rule]


def test_a_refutation_without_its_control_is_found(audited):
    path = audited.path(CLAIMS)
    refuted = "control: half as many\n  found: {value: 1.0, bound: 0.1, why: one}\n  because: it is\n"
    text, count = re.subn(
        r"rival: .*\n  verdict: reproduced\n", f"{refuted}  verdict: not-reproduced\n", path.read_text(), count=1
    )
    assert count == 1
    path.write_text(text)
    assert broken(audited, "control-unmeasured") == []
    audited.edit(*BROKEN["rival-unmeasured"])
    (found,) = broken(audited, "control-unmeasured")
    assert (found.file, found.message) == (LESSON, "probe.top: expected control=, 'half as many'")


def test_an_id_is_declared_in_one_file_only(audited):
    other = audited.path(CLAIMS).with_name("other.yml")
    other.write_text(audited.path(CLAIMS).read_text().split("- id:")[0] + "- id:" + NO_CLAIM)
    found = [one for one in check.declarations(audited.root) if one.rule == "repeated-id"]
    assert [(one.file, one.message) for one in found] == [("probe.yml", "probe.top: declared in other.yml too")]


@pytest.mark.parametrize("id", ["probe.bottom", "probe.biases"])
def test_a_comparison_names_claims_that_are_declared_and_not_retired(audited, id):
    audited.edit("book/compared.yml", "probe.top", id)
    assert [one.message for one in broken(audited, "comparison")] == [f"probe-line: claims: unknown claim {id!r}"]


def test_the_source_of_a_claim_is_in_the_bibliography(toy_book):
    toy_book.edit(CLAIMS, "key: author2000source, where: section 2", "key: nobody1999, where: section 2")
    (found,) = check.declarations(toy_book.root)
    assert (found.rule, found.message) == ("reference", "probe.top: source: key: 'nobody1999' is not in references.bib")


@pytest.mark.parametrize("rule", BROKEN)
def test_the_check_finds(audited, rule):
    assert check.book(audited.root, only="probe") == []
    name, old, new = BROKEN[rule]
    if name is None:
        audited.path("notebooks/audits/probe.ipynb").write_text("{}")
    else:
        path = audited.path(name)
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new, 1))
    found = broken(audited, rule)
    assert found
    # The line is that of the place, where there is one.
    whole = {"thumbnail", "source", "lesson-size", "page", "pair", "compared"}
    if rule not in whole:
        last = max(
            len(path.read_text().splitlines()) for path in audited.root.rglob("probe.*") if path.suffix != ".ipynb"
        )
        assert all(0 < finding.line <= last for finding in found)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("probe.top", ""),
        ("probe.summit:.3f", ""),
        ("probe.top rival:.1%", ""),
        ("probe.hill:.1f", "probe.hill: no such claim"),
        ("probe.sky:.1f", "probe.sky: declared not-attempted, so that nothing is measured"),
        ("probe.biases", "probe.biases: declared retired, so that nothing is measured"),
        ("probe.top:.1x", "probe.top: '.1x' is no format of a number"),
        ("probe.top: .1f", "expected ID, ID:FORMAT or ID rival:FORMAT, got 'probe.top: .1f'"),
    ],
)
def test_a_number_of_a_claim_that_prose_asks_for_is_found_or_missed_in_words(audited, asked, message):
    audited.edit(AUDIT, "{measured}`probe.top:.1f`", f"{{measured}}`{asked}`")
    assert [finding.message for finding in broken(audited, "measured")] == [message] * bool(message)


def test_the_cell_of_a_claim_in_parts_may_measure_all_of_them(audited):
    both = 'claims.measure("probe.top", 1.0)\nclaims.measure("probe.slope"'
    audited.edit(AUDIT, 'claims.measure("probe.slope"', both)
    assert broken(audited, "one-cell-one-claim") == []


def test_an_audit_writes_the_ids_of_its_claims_out(audited):
    audited.edit(AUDIT, 'claims.measure("probe.slope"', 'claims.measure("probe." + "slope"')
    (found,) = broken(audited, "one-cell-one-claim")
    assert found.message == "claims.measure: expected ids that are written out, each in a cell of its own"


def test_a_finding_has_the_line_of_its_cell(audited):
    audited.edit(AUDIT, 'measure("probe.slope"', 'measure("probe.no"')
    lines = audited.path(AUDIT).read_text().splitlines()
    (line,) = [number for number, text in enumerate(lines, start=1) if "probe.no" in text]
    (found,) = broken(audited, "undeclared-claim")
    assert (found.file, found.line) == (AUDIT, line)


def test_one_chapter_is_checked_whole_before_a_kernel_starts(audited, monkeypatch, capsys):
    monkeypatch.setattr(execution, "start", lambda *_, **__: pytest.fail("a kernel was started"))
    rules = ("glue-missing", "rival-unmeasured", "equation-label", "state", "item")
    for rule in rules:
        audited.edit(*BROKEN[rule])
    with pytest.raises(ValueError, match="glue-missing") as refusal:
        build.book(audited.root, only="probe")
    assert {line.partition("[")[2].partition("]")[0] for line in str(refusal.value).splitlines()} >= set(rules)
    assert command_line.main(["--root", str(audited.root), "check", "probe"]) == 1
    assert str(refusal.value) in capsys.readouterr().out


def test_a_chapter_without_an_audit_goes_on_working(toy_book, capsys):
    assert check.book(toy_book.root, only="probe") == []
    assert command_line.main(["--root", str(toy_book.root), "check", "probe"]) == 0
    assert "no rule is broken" in capsys.readouterr().out
    assert command_line.main(["--root", str(toy_book.root), "check", "other"]) == 2


def test_a_misspelt_field_is_the_only_thing_that_is_said_of_its_claim(audited):
    # The claim is measured, named by an item, and a part of another one.
    audited.edit(CLAIMS, "  route:", "  rout:")
    (found,) = check.book(audited.root, only="probe")
    assert found.message.startswith("probe.slope: unknown fields ['rout']")
