"""Claims: every rule of a declaration fails once, every way in which a claim holds or not, and what the ledger says."""

import json
import math

import numpy as np
import pytest
import scipy.stats
import yaml

from companion import claims, project
from companion.claims import Claim, Measurement, judge, ledger
from companion.manuscript import Findings

PRINTED = """
id: probe.one
says: One.
kind: number
source: {key: ann2000, where: section 1}
expects: {printed: 1.0, within: 0.01}
rival: a half
verdict: reproduced
"""
NUMBER = yaml.safe_load(PRINTED)
SOURCE = NUMBER["source"]
FORMULA = NUMBER | {"kind": "formula", "expects": {"accuracy": 1e-12}, "because": "The route is quadrature."}
STATEMENT = NUMBER | {"kind": "statement", "expects": {"above": 0.5}}
RIGHT = {"printed": 1.0, "value": 2.0, "within": 0.01}
CORRECTED = NUMBER | {"kind": "figure", "expects": RIGHT, "verdict": "corrected", "because": "x", "rival": None}
ERRATUM = FORMULA | {"verdict": "corrected", "tex": {"printed": "y' = x", "corrected": "y' = 2 x"}}
FOUND = {"value": 3.0, "within": 0.1, "control": "at zero"}
REFUTED = NUMBER | {"verdict": "not-reproduced", "because": "x", "rival": None, "found": FOUND}
OWN = STATEMENT | {"kind": "own", "source": None, "verdict": "result", "because": "x"}
PROGRAM = NUMBER | {"kind": "program", "source": SOURCE | {"commit": "abc"}}
IDLE = {"source": SOURCE, "verdict": "not-attempted", "because": "x"}
SKY = {"id": "probe.sky", "says": "x", "kind": "statement"} | IDLE
RETIRED = {"id": "probe.gone", "says": "x", "history": {"retired": "True by construction."}}
PARTLY = SKY | {"id": "probe.all", "verdict": "partly", "parts": ["probe.one", "probe.two"]}


def given(entry):
    """The entry without the fields that are None."""
    return {name: value for name, value in entry.items() if value is not None}


def claim(entry, **fields):
    return Claim(**given(entry | fields))


def write(folder, *entries, name="probe", **sections):
    path = folder / f"{name}.yml"
    path.write_text(yaml.safe_dump({"claims": [*map(given, entries)], **sections}, sort_keys=False))
    return path


@pytest.fixture
def book(tmp_path):
    """A book with one work that was read and one that was superseded, and a folder for its claims."""
    (tmp_path / "book" / "claims").mkdir(parents=True)
    (tmp_path / "_config.yml").write_text("title: Probe\n")
    fields = "author = {Author, Ann}, title = {Probes}, year = {2000}, keywords = {source}"
    (tmp_path / "book" / "references.bib").write_text(
        f"@misc{{ann2000, {fields}, version = {{January}}}}\n"
        f"@misc{{ann1999, {fields}, superseded = {{by Probes since 2000}}}}\n"
        "@misc{bob1998, author = {Bob, B.}, title = {Others}, year = {1998}}\n"
    )
    return tmp_path


@pytest.mark.parametrize("entry", [NUMBER, FORMULA, STATEMENT, CORRECTED, ERRATUM, REFUTED, OWN, PROGRAM])
def test_a_whole_declaration_breaks_no_rule(tmp_path, entry):
    claims.declared(write(tmp_path, SKY))
    (said,) = claims.declared(write(tmp_path, entry))
    assert (said.id, said.kind, said.is_measured) == ("probe.one", entry["kind"], True)


def expects(entry, **fields):
    return entry | {"expects": fields}


BROKEN = {
    "an unknown field": (NUMBER | {"colour": "red"}, "probe.two: expected some of id, says", "got 'colour'"),
    "an unknown field below": (expects(NUMBER, printed=1, width=2), "expects: expected some of printed", "got 'width'"),
    "no words": (NUMBER | {"says": " "}, "says: expected words, got ' '"),
    "no says": (NUMBER | {"says": None}, "probe.two: says: expected words, got nothing"),
    "an id of another chapter": (NUMBER | {"id": "other.one"}, "expected it to begin with 'probe.', got other.one"),
    "an id in capitals": (NUMBER | {"id": "probe.Two"}, "expected CHAPTER.NAME in lower case"),
    "no kind": (NUMBER | {"kind": None}, "kind: expected one of number, figure", "got nothing"),
    "an unknown kind": (NUMBER | {"kind": "guess"}, "kind: expected one of number, figure", "got 'guess'"),
    "no verdict": (NUMBER | {"verdict": None}, "verdict: expected one of reproduced"),
    "an unknown verdict": (NUMBER | {"verdict": "proved"}, "verdict: expected one of reproduced", "got 'proved'"),
    "no source": (NUMBER | {"source": None}, "source: expected key and where for the kind number, got nothing"),
    "no place": (NUMBER | {"source": {"key": "a"}}, "source: where: expected words, got nothing"),
    "a long quotation": (NUMBER | {"source": SOURCE | {"quote": "word " * 16}}, "expected at most 15 words"),
    "an unknown state": (NUMBER | {"source": SOURCE | {"state": "gone"}}, "expected standing, mended in the successor"),
    "a source of our own": (OWN | {"source": SOURCE}, "source: expected none for the kind own"),
    "a verdict of our own": (NUMBER | {"verdict": "result", "because": "x"}, "verdict: expected result, exploratory"),
    "a verdict of a source": (OWN | {"verdict": "reproduced"}, "for the kind own and no other, got reproduced for own"),
    "no reason": (CORRECTED | {"because": None}, "because: expected the reason of the verdict corrected"),
    "no route": (FORMULA | {"because": None}, "because: expected the independent route to a formula"),
    "no expectation": (STATEMENT | {"expects": None}, "expects: expected printed or one of value"),
    "two expectations": (expects(STATEMENT, above=0.5, below=1), "expected one of value", "got below and above"),
    "printed and ours": (expects(PROGRAM, printed=1, above=0.5), "expected printed alone, or value beside it"),
    "no right value": (expects(CORRECTED, printed=1.0), "expects: expected the right value"),
    "a number in words": (expects(STATEMENT, above="1e-3"), "expects.above: expected a finite number, got '1e-3'"),
    "no number": (expects(STATEMENT, above=math.nan), "expects.above: expected a finite number, got nan"),
    "a yes as an end": (expects(STATEMENT, above=True), "expects.above: expected a finite number, got True"),
    "ends the other way round": (expects(STATEMENT, between=[2, 1]), "expected between: [A, B] with A < B, got [2, 1]"),
    "one end": (expects(STATEMENT, between=[1]), "expects.between: expected [A, B], two numbers, got [1]"),
    "a negative bound": (expects(NUMBER, printed=1.0, within=-1), "expects.within: expected a number >= 0, got -1"),
    "a number that is not printed": (expects(NUMBER, value=1.0), "expects: expected printed, the number in the text"),
    "a printed deviation": (expects(FORMULA, printed=1.0), "expected nothing printed for the kind formula, got 1.0"),
    "a yes for a number": (expects(NUMBER, printed=True), "expected a number for the kind number, got a yes or no"),
    "an accuracy of a number": (expects(STATEMENT, accuracy=0), "expects: expected no accuracy for the kind statement"),
    "two allowances": (expects(FORMULA, accuracy=0, within=1), "expects: expected accuracy or within, got both"),
    "a wide bound": (expects(NUMBER, printed=1.0, within=0.2), "because: expected the reason of so wide a bound"),
    "a bound of our own": (
        expects(STATEMENT, above=1.0, within=0.1),
        "because: expected the reason of so wide a bound",
    ),
    "more than rounding": (expects(PROGRAM, accuracy=1e-11), "because: expected the reason of more than rounding"),
    "one sample": (NUMBER | {"sampled": {"samples": 1}}, "sampled.samples: expected a whole number >= 2, got 1"),
    "a sampled word": (NUMBER | {"sampled": "perhaps"}, "sampled: expected yes, or a mapping"),
    "no rival": (NUMBER | {"rival": None}, "rival: expected a wrong answer that a reader could believe, got nothing"),
    "a rival of a refutation": (REFUTED | {"rival": "x"}, "rival: expected a control, under found, in its place"),
    "a refutation without a value": (REFUTED | {"found": None}, "found: expected value, within and control"),
    "a refutation without a control": (
        REFUTED | {"found": {"value": 1}},
        "found: control: expected words, got nothing",
    ),
    "a found number without a bound": (REFUTED | {"found": {"value": 1, "control": "x"}}, "found: expected within be"),
    "a find elsewhere": (NUMBER | {"found": REFUTED["found"]}, "found: expected none for the verdict reproduced"),
    "no parts": (SKY | {"verdict": "partly"}, "parts: expected the claims that decide it, got nothing"),
    "parts elsewhere": (NUMBER | {"parts": ["probe.sky"]}, "parts: expected none for the verdict reproduced"),
    "a program without a version": (PROGRAM | {"source": SOURCE}, "source: expected commit, the version of a program"),
    "a version of a text": (NUMBER | {"source": PROGRAM["source"]}, "source: expected no commit for the kind number"),
    "no formulas": (ERRATUM | {"tex": None}, "tex: expected printed and corrected for a corrected formula"),
    "one formula": (ERRATUM | {"tex": {"printed": "x"}}, "tex: corrected: expected words, got nothing"),
    "formulas elsewhere": (FORMULA | {"tex": ERRATUM["tex"]}, "tex: expected none for the verdict reproduced"),
    "a rival that nobody measures": (SKY | {"rival": "x"}, "rival: expected none, since the verdict not-attempted"),
    "a threshold that nobody needs": (expects(SKY, above=1), "expects: expected none, since the verdict not-attempted"),
    "no reason to retire": (RETIRED | {"history": {"retired": ""}}, "history.retired: expected words"),
    "an id of before": (NUMBER | {"history": {"was": ["One"]}}, "history.was.0: expected CHAPTER.NAME"),
    "a label without eq": (NUMBER | {"equation": ["square"]}, "equation.0: expected the label of an equation, eq:..."),
    "a function alone": (NUMBER | {"functions": ["square"]}, "functions.0: expected the name of a function with its"),
    "a list in place of a claim": ([1], "a claim: expected a claim, a mapping of fields, got [1]"),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_a_declaration_is_refused_with_file_line_field_and_what_was_expected(tmp_path, rule):
    entry, *words = BROKEN[rule]
    if isinstance(entry, dict):
        entry = {"id": "probe.two"} | given(entry | ({"id": "probe.two"} if entry["id"] == "probe.one" else {}))
    path = tmp_path / "probe.yml"
    path.write_text(yaml.safe_dump({"claims": [given(SKY), entry]}, sort_keys=False))
    read, findings = claims.check(path)
    assert [one.id for one in read] == ["probe.sky"]
    assert any(all(word in str(finding) for word in words) for finding in findings), findings
    text = path.read_text().splitlines()
    second = [number for number, line in enumerate(text, start=1) if line.startswith("- ")][1]
    assert {finding.file for finding in findings} == {"probe.yml"}
    assert all(second <= finding.line <= len(text) for finding in findings)
    with pytest.raises(Findings, match=r"probe\.yml"):
        claims.declared(path)


def test_everything_that_is_wrong_with_a_file_is_said_at_once_with_its_lines(tmp_path):
    two = "- {id: probe.two, says: Two.,\n   verdict: proved,\n   kind: own,\n   expects: {\n    above: one}}\n"
    lines = [f"  {line}" for line in PRINTED.strip().splitlines() if not line.startswith("rival")]
    path = tmp_path / "probe.yml"
    path.write_text("\n".join(["claims:", f"- {lines[0].strip()}", *lines[1:], two]))
    assert [str(finding).partition(": expected")[0] for finding in claims.check(path)[1]] == [
        "probe.yml:9: [verdict] probe.two: verdict",
        "probe.yml:12: [expects] probe.two: expects.above",
        "probe.yml:2: [rival] probe.one: rival",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("claims: 1\n", "1: [form] claims: expected a list of claims, got 1"),
        ("format: 2\nclaims: []\n", "1: [form] expected some of claims, figures, items; got 'format'"),
        ("just words\n", "1: [form] expected claims, a list, and perhaps figures and items, got 'just words'"),
        ("figures: {}\n", "1: [form] claims: expected a list of claims, got nothing"),
        ("- id: [\n", "[unreadable]"),
        ("claims:\n- id: probe.one\n  says: a\n  says: b\n", "4: [unreadable]"),
    ],
)
def test_a_file_of_another_form_is_a_finding(tmp_path, text, message):
    path = tmp_path / "probe.yml"
    path.write_text(text)
    read, (finding,) = claims.check(path)
    assert message in str(finding)
    assert read == []


def test_the_parts_of_a_whole_are_claims_of_the_file_some_right_and_some_not(tmp_path):
    two = CORRECTED | {"id": "probe.two"}
    assert len(claims.declared(write(tmp_path, NUMBER, two, PARTLY))) == 3
    for others, message in (
        ((NUMBER,), "that have no parts themselves, got probe.two"),
        ((NUMBER, RETIRED | {"id": "probe.two"}), "that have no parts themselves, got probe.two"),
        ((NUMBER, NUMBER | {"id": "probe.two"}), "some that are reproduced and some that are not"),
    ):
        (finding,) = claims.check(write(tmp_path, *others, PARTLY))[1]
        assert message in finding.message


def test_an_id_is_given_once_and_an_id_of_before_is_an_id(tmp_path):
    for second in (CORRECTED, CORRECTED | {"id": "probe.two", "history": {"was": ["probe.one"]}}):
        (finding,) = claims.check(write(tmp_path, NUMBER, second))[1]
        assert "expected every id once, got probe.one again" in finding.message
        assert finding.line == 13


def test_figures_and_items_are_read_with_their_answers(book):
    figures = {"probe-line": {"agrees": "The  line.", "claims": ["probe.one"]}}
    item = {"where": "2", "kind": "figure", "says": "A drawing"}
    answered = {"answered": ["probe.one", "probe-line", "/audits/probe#a.b", "/book/limits"]}
    items = {"ann2000": [item | answered, item | {"because": "Decorative."}]}
    write(book / "book" / "claims", NUMBER, figures=figures, items=items)
    assert claims.figures(book) == {"probe-line": {"agrees": "The  line.", "differs": "", "claims": ["probe.one"]}}
    first, second = claims.items(book, "ann2000")
    assert (first.claims, first.figures) == (["probe.one"], ["probe-line"])
    assert first.pages == ["audits/probe#a.b", "book/limits"]
    assert (second.claims, second.because) == ([], "Decorative.")
    assert claims.items(book, "bob1998") == []


QUOTED = SOURCE | {"quote": "It is one"}
ITEM = {"where": "2", "kind": "figure", "says": "A drawing"}


@pytest.mark.parametrize(
    ("entry", "sections", "message"),
    [
        (NUMBER | {"source": QUOTED}, {}, ""),
        (NUMBER, {}, "5: [source] probe.one: source.quote: expected words of the text, got nothing"),
        (NUMBER | {"source": QUOTED | {"key": "eve"}}, {}, "source.key: expected a key of references.bib, got eve"),
        (NUMBER | {"source": QUOTED | {"state": "withdrawn"}}, {}, "expected none, since ann2000 is not superseded"),
        (NUMBER | {"source": {"key": "ann1999", "where": "x", "state": "withdrawn"}}, {}, ""),
        (RETIRED, {"figures": {"probe-a": {"agrees": "x", "claims": ["probe.gone"]}}}, "expected a claim, got probe.g"),
        (RETIRED, {"figures": {"other-a": {"agrees": "x"}}}, "expected a figure of the chapter, probe-NAME, got other"),
        (RETIRED, {"figures": {"probe-a": {}}}, "figures.probe-a: expected agrees or differs in words"),
        (RETIRED, {"items": {"eve": []}}, "items.eve: expected a key of references.bib"),
        (RETIRED, {"items": {"ann2000": [ITEM | {"answered": ["probe.gone"]}]}}, ""),
        (RETIRED, {"items": {"ann2000": [ITEM | {"answered": ["probe.two"]}]}}, "A drawing: expected a claim, got pr"),
        (RETIRED, {"items": {"ann2000": [ITEM | {"answered": ["Probe"]}]}}, "answered.0: expected a claim (CHAPTER"),
        (RETIRED, {"items": {"ann2000": [ITEM]}}, "expected an item, which says what it is, and where it is answered"),
        (RETIRED, {"items": {"ann2000": [ITEM | {"kind": "x", "because": "y"}]}}, "kind: expected one of figure, eq"),
    ],
)
def test_claims_figures_and_items_name_what_is_there(book, entry, sections, message):
    write(book / "book" / "claims", entry, **sections)
    found = claims.check_book(book, project.references(book))
    assert [message in str(finding) for finding in found] == [True] * bool(message), found


@pytest.mark.parametrize(
    ("measured", "uncertainty", "rival", "holds"),
    [
        (1.005, 0.0, 0.5, True),
        (1.02, 0.0, 0.5, False),  # the value misses
        (1.0, 0.0, 0.995, False),  # the rival passes
        (1.0, 0.0, None, False),  # the rival was not measured
        (1.0, 0.02, (0.5, 0.02), True),
        (1.0, 0.02, (0.5, 0.2), False),  # the rival is too uncertain to have failed
        (1.0, 0.0, (0.5, math.inf), False),
        (1.0, 0.0, math.nan, True),  # a rival that diverges has failed
        (1.0, 0.0, (math.inf, 0.0), True),
        (1.0, 0.0, True, False),
        (True, 0.0, 0.5, False),
    ],
)
def test_a_reproduced_number_passes_and_its_rival_fails_by_more_than_both_errors(measured, uncertainty, rival, holds):
    assert judge(claim(NUMBER), Measurement(measured, uncertainty, rival)).holds is holds


def test_a_bound_over_a_tenth_of_the_printed_value_needs_its_reason():
    assert judge(claim(NUMBER), Measurement(1.0, 0.029, 0.0)).holds
    assert "over 10%" in judge(claim(NUMBER), Measurement(1.0, 0.031, 0.0)).reason
    assert judge(claim(NUMBER, because="x"), Measurement(1.0, 0.031, 0.0)).holds


@pytest.mark.parametrize(
    ("wanted", "right", "wrong"),
    [
        ({"above": 0.5}, 0.6, 0.5),
        ({"below": 0.5}, 0.4, 0.5),
        ({"between": [1, 2]}, 2.0, 2.1),
        ({"value": 3}, 3, 2),
        ({"value": True}, True, False),
        ({"printed": 3}, 3, 2),
        ({"accuracy": 1e-12}, 1e-13, 1e-11),
        ({"value": 3, "within": 0.5}, 3.5, 3.6),
    ],
)
def test_a_value_is_held_against_what_is_expected(wanted, right, wrong):
    said = claim(STATEMENT, expects=wanted, because="x")
    assert judge(said, Measurement(right, 0.0, wrong)).holds
    assert not judge(said, Measurement(wrong, 0.0, wrong)).holds
    assert not judge(said, Measurement(right, 0.0, right)).holds


def test_the_uncertainty_works_inside_of_a_range():
    above = claim(STATEMENT)
    for value, holds, reason in ((0.62, True, ""), (0.55, False, "undecided: an end"), (0.46, False, "undecided")):
        judgement = judge(above, Measurement(value, 0.03, 0.0))
        assert (judgement.holds, reason in judgement.reason) == (holds, True)
    assert judge(above, Measurement(0.38, 0.03, 0.0)).reason == "gap 0.12 exceeds the bound 0.09"
    assert judge(above, Measurement(0.62, 0.03, 0.0)).z == pytest.approx(4)
    assert judge(above, Measurement(0.46, 0.03, 0.0)).z == pytest.approx(-4 / 3)
    # The end is known, so that the value's own uncertainty is no excuse for its rival.
    assert judge(above, Measurement(0.9, 0.03, (0.45, 0.01))).holds
    assert not judge(above, Measurement(0.9, 0.03, (0.48, 0.01))).holds
    between = claim(STATEMENT, expects={"between": [0.5, 0.9]})
    assert not judge(between, Measurement(0.85, 0.03, 0.0)).holds
    assert judge(between, Measurement(0.7, 0.03, 0.0)).holds


@pytest.mark.parametrize(
    ("wanted", "value", "rival", "reason"),
    [
        ({"above": 0.5}, 0.55, 0.0, ""),
        ({"above": 0.5}, 0.46, 0.0, ""),
        ({"above": 0.5}, 0.65, 0.0, "the value agrees"),
        ({"above": 0.5}, 0.35, 0.0, "the value misses"),
        ({"value": 0.5}, 0.55, 0.6, ""),
        ({"value": 0.5}, 0.55, 0.7, "the rival is outside"),
        ({"value": 0.5}, 0.65, 0.6, "the value misses"),
    ],
)
def test_what_is_undecided_has_both_answers_in_its_interval(wanted, value, rival, reason):
    open_ = claim(STATEMENT, verdict="undecided", expects=wanted)
    judgement = judge(open_, Measurement(value, 0.03, (rival, 0.0)))
    assert judgement.holds is not bool(reason)
    assert reason in judgement.reason


def test_a_rival_that_is_a_multiple_of_the_value_shows_nothing():
    assert "multiple of the value" in judge(claim(NUMBER), Measurement(1.0, 1e-4, (0.5, 5e-5))).reason
    assert judge(claim(NUMBER), Measurement(1.0, 1e-4, (0.5, 6e-5))).holds


def test_a_yes_or_no_is_compared_with_yes_or_no_only():
    yes = claim(STATEMENT, expects={"value": True})
    assert "cannot be compared" in judge(yes, Measurement(1.0, rival=0.0)).reason
    assert "cannot be compared" in judge(claim(NUMBER), Measurement(True, rival=False)).reason


def test_the_rival_of_a_correction_is_the_printed_form():
    assert judge(claim(CORRECTED), Measurement(2.0)).holds
    assert not judge(claim(CORRECTED), Measurement(1.0)).holds
    close = judge(claim(CORRECTED, expects={"printed": 1.0, "value": 1.005, "within": 0.01}), Measurement(1.005))
    assert "the printed form passes too" in close.reason
    assert judge(claim(ERRATUM), Measurement(1e-13, 0.0, 0.5)).holds
    assert not judge(claim(ERRATUM), Measurement(1e-13)).holds


@pytest.mark.parametrize(
    ("measurement", "reason"),
    [
        (Measurement(3.05, 0.0, control=1.0), ""),
        (Measurement(3.05, 0.0, rival=1.0), ""),
        (Measurement(1.0, 0.0, control=1.0), "is within the bound"),
        (Measurement(3.5, 0.0, control=1.0), "the value declared as found"),
        (Measurement(3.0, 0.0, control=2.0), "the control, where the statement is true, misses"),
        (Measurement(3.0, 0.0, control=math.nan), "diverges"),
        (Measurement(3.0), "no control was measured"),
        (Measurement(3.0, 1.0, control=1.0), "is within the bound"),
    ],
)
def test_a_refutation_has_the_value_that_was_found_and_a_control_that_agrees(measurement, reason):
    judgement = judge(claim(REFUTED), measurement)
    assert judgement.holds is not bool(reason)
    assert reason in judgement.reason


def test_the_control_of_a_refutation_lies_inside_of_the_range_by_its_uncertainty():
    refuted = claim(REFUTED, expects={"above": 0.5}, found={"value": 0.0, "within": 0.1, "control": "at zero"})
    assert judge(refuted, Measurement(0.0, control=(0.6, 0.03))).holds
    assert "the control" in judge(refuted, Measurement(0.0, control=(0.55, 0.03))).reason


def test_what_is_not_measured_is_not_judged():
    for entry in (SKY, PARTLY, RETIRED, NUMBER | {"history": {"retired": "x"}}):
        assert judge(claim(entry), None).holds is None
    assert judge(claim(NUMBER), None).holds is False


def test_k_follows_the_kind_of_the_error():
    # The chance of more than 4 standard errors to one side, in the tails of other distributions.
    chance = scipy.stats.norm.sf(4)
    few, many = {"samples": 16}, {"comparisons": 100}
    assert claims.factor(claim(NUMBER)) == 3
    assert claims.factor(claim(NUMBER, sampled=True)) == 4
    assert claims.factor(claim(NUMBER, sampled=few)) == pytest.approx(scipy.stats.t(15).isf(chance))
    assert claims.factor(claim(NUMBER, sampled={"samples": 10**6})) == pytest.approx(4.0, abs=1e-3)
    assert claims.factor(claim(NUMBER, sampled=many)) == pytest.approx(scipy.stats.norm.isf(chance / 100))
    assert claims.factor(claim(NUMBER, sampled=few | many)) == pytest.approx(scipy.stats.t(15).isf(chance / 100))


def test_a_measurement_is_recorded_as_plain_numbers(tmp_path):
    claims.note(tmp_path, "probe.one", Measurement(np.float64(1.0), np.float32(0.5), 0.5))
    claims.note(tmp_path, "probe.two", Measurement(np.bool_(True), control=True))
    claims.note(tmp_path, "probe.three", Measurement(np.array(2.0), rival=(math.inf, np.float64(0.25))))
    assert dict(claims.recorded(tmp_path)) == {
        "probe.one": Measurement(1.0, 0.5, (0.5, 0.0)),
        "probe.two": Measurement(True, 0.0, None, (True, 0.0)),
        "probe.three": Measurement(2.0, 0.0, (math.inf, 0.25)),
    }
    assert json.loads((tmp_path / claims.RECORD).read_text().splitlines()[1])["value"] is True


def test_the_last_expression_of_a_cell_is_a_measurement():
    whole = {"measured": np.float64(1.0), "uncertainty": 0.1, "rival": 0.5, "rival_uncertainty": 0.2, "control": 2}
    assert claims.of_cell("probe.one", whole) == Measurement(1.0, 0.1, (0.5, 0.2), (2, 0.0))
    for wrong in (1.0, {"rival": 1.0}, {"measured": 1.0, "rivals": 2.0}):
        with pytest.raises(ValueError, match=r"probe\.one: expected a mapping with measured and some of rival"):
            claims.of_cell("probe.one", wrong)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"value": np.zeros(3)}, r"value of probe\.one: expected a number or a boolean, got an array of shape \(3,\)"),
        ({"value": math.nan}, r"value of probe\.one: expected a finite number"),
        ({"value": "many"}, r"value of probe\.one: expected a finite number or a boolean, got 'many'"),
        ({"value": 1.0, "uncertainty": -0.1}, r"uncertainty of probe\.one: expected a number >= 0"),
        ({"value": 1.0, "control": math.nan}, r"control of probe\.one: expected a finite number"),
        ({"value": 1.0, "rival": (1, 2, 3)}, r"rival of probe\.one: expected a value or"),
        ({"value": 1.0, "rival": (1.0, -1.0)}, r"rival uncertainty of probe\.one: expected a number >= 0"),
    ],
)
def test_measuring_something_that_is_no_number_names_the_claim(tmp_path, wrong, message):
    with pytest.raises(ValueError, match=message):
        claims.note(tmp_path, "probe.one", Measurement(**wrong))


def collected(book, *entries, measured=(), on="probe"):
    """Entries and problems of a book whose page ``on`` measured, by id; other pages measured nothing."""
    write(book / "book" / "claims", *entries)
    folder = book / "results"
    folder.mkdir(exist_ok=True)
    (folder / claims.RECORD).write_text("")
    for id, measurement in measured:
        claims.note(folder, id, measurement)
    results = {on: folder}
    made = ledger.collect(book, results)
    return {entry["id"]: entry for entry in made}, ledger.problems(made, ["probe"])


def test_an_entry_has_what_was_declared_and_what_was_measured(book):
    entries, problems = collected(
        book,
        NUMBER | {"history": {"was": ["probe.first"]}, "source": QUOTED},
        REFUTED | {"id": "probe.two"},
        OWN | {"id": "probe.three"},
        STATEMENT | {"id": "probe.four", "source": {"key": "bob1998", "where": "x"}},
        measured=[
            ("probe.one", Measurement(1.0, 0.001, (math.inf, 0.1))),
            ("probe.two", Measurement(3.0, control=1.0)),
            ("probe.three", Measurement(0.7, rival=0.2)),
            ("probe.four", Measurement(0.7, rival=0.2)),
        ],
    )
    assert problems == []
    assert json.loads(json.dumps(entries, allow_nan=False)) == entries
    one, two, three, four = entries.values()
    assert (one["published"], one["expects"], one["measured"], one["holds"]) == (1.0, None, 1.0, True)
    assert (one["bound"], one["declared"], one["k"]) == (pytest.approx(0.013), 0.01, 3.0)
    assert (one["rival"]["says"], one["rival"]["diverges"], one["rival"]["value"]) == ("a half", True, None)
    assert one["source"] == {"key": "ann2000", "where": "section 1", "version": "January"}
    assert (one["quote"], one["state"], one["external"], one["page"]) == ("It is one", "standing", False, "probe")
    assert (two["found"], two["control"]["value"]) == ({"value": 3.0, "bound": 0.1}, 1.0)
    assert (three["expects"], three["state"], four["external"]) == ({"above": 0.5}, None, True)
    assert ledger.by_id(entries.values())["probe.first"] is one


@pytest.mark.parametrize(
    ("entries", "measured", "problem"),
    [
        ([NUMBER], ["probe.one"], ""),
        ([NUMBER], [], "claim probe.one: declared but never measured"),
    ],
)
def test_a_build_fails_for_a_claim_that_is_not_confirmed_or_not_declared(book, entries, measured, problem):
    _, problems = collected(book, *entries, measured=[(id, Measurement(1.0, rival=0.5)) for id in measured])
    assert problems == [problem] * bool(problem)


@pytest.mark.parametrize(("second", "holds"), [(Measurement(2.0), True), (Measurement(1.5), False), (None, False)])
def test_a_whole_holds_only_if_all_of_its_parts_do(book, second, holds):
    measured = [("probe.one", Measurement(1.0, rival=0.5))] + [("probe.two", second)] * bool(second)
    entries, problems = collected(book, NUMBER, CORRECTED | {"id": "probe.two"}, PARTLY, measured=measured)
    assert entries["probe.one"]["holds"]
    assert entries["probe.all"]["holds"] is holds
    assert ("claim probe.all: probe.two does not hold" in problems) is not holds
    assert not any("probe" in problem for problem in ledger.problems(list(entries.values()), ["walk"]))
    whole = PARTLY | {"parts": ["probe.one", "probe.sky"]}
    assert collected(book, NUMBER, SKY, whole, measured=measured[:1])[0]["probe.all"]["holds"] is True


def test_what_is_not_measured_is_of_the_audit_and_what_is_retired_is_listed_apart(book):
    assert collected(book, SKY, RETIRED)[0]["probe.sky"]["page"] == "probe"
    (book / "notebooks" / "audits").mkdir(parents=True)
    (book / "notebooks" / "audits" / "probe.md").write_text("# Probe\n")
    entries, _ = collected(book, SKY, RETIRED)
    assert {id: entry["page"] for id, entry in entries.items()} == {"probe.sky": "audits/probe"}
    (gone,) = ledger.retired(book)
    assert (gone["id"], gone["reason"], gone["page"]) == ("probe.gone", "True by construction.", "audits/probe")


def test_a_number_is_quoted_from_the_ledger_in_the_form_that_prose_asks_for(book):
    history = {"history": {"was": ["probe.first"]}}
    measurement = Measurement(1.004, 0.001, (0.5, 0.0))
    entries, _ = collected(book, NUMBER | history, SKY, measured=[("probe.one", measurement)])
    known = ledger.by_id(entries.values())
    forms = {"probe.one:.2f": "1.00", "probe.first rival:.1f": "0.5", "probe.one uncertainty:.0e": "1e-03"}
    for asked, shown in (forms | {"probe.one": "1.004"}).items():
        assert ledger.quoted(asked, known) == (shown, entries["probe.one"])
    for asked, message in (
        ("probe.one :", "expected ID"),
        ("probe.ten", "no such claim"),
        ("probe.sky", "no measured value"),
        ("probe.one control", "no control value"),
        ("probe.one:.2q", "no format of the number 1.004"),
    ):
        with pytest.raises(ValueError, match=message):
            ledger.quoted(asked, known)


def test_totals_count_every_claim_once(book):
    external = STATEMENT | {"id": "probe.five", "source": {"key": "bob1998", "where": "x"}}
    two = CORRECTED | {"id": "probe.two"}
    entries, _ = collected(book, NUMBER, two, PARTLY, OWN | {"id": "probe.three"}, external)
    counted = claims.among(list(entries.values()))
    assert {name: [entry["id"].partition(".")[2] for entry in some] for name, some in counted.items()} == {
        "said": ["all"],
        "parts": ["one", "two"],
        "external": ["five"],
        "own": ["three"],
    }


def test_a_line_says_what_the_value_is_compared_with():
    for entry, words in (
        (NUMBER, "measured 1, published 1"),
        (CORRECTED, "published 1, corrected 2"),
        (ERRATUM, "a deviation, which should be 0"),
        (STATEMENT, "expected above 0.5"),
        (STATEMENT | {"expects": {"between": [0, 2]}}, "expected between 0 and 2"),
    ):
        assert words in claims.line(claim(entry), Measurement(1.0), "ledger.html")[1]


def test_a_line_shows_the_rival_or_the_control_and_leads_to_the_ledger():
    markup, _ = claims.line(claim(NUMBER), Measurement(1.0, rival=0.5), "ledger.html")
    assert 'class="book-claim book-claim-reproduced" id="claim-probe-one"' in markup
    assert 'href="ledger.html#ledger-claim-probe-one"' in markup
    assert "Rival: a half." in markup
    markup, _ = claims.line(claim(REFUTED), Measurement(1.0, control=1.0), "ledger.html")
    assert "book-claim-failed" in markup
    assert "Control: at zero." in markup
