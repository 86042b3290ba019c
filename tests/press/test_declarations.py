"""Claims: every rule of a declaration fails once, every way in which a claim holds or not, and what is recorded."""

import json
import math
import shutil

import numpy as np
import pytest
import scipy.stats
import yaml

from companion import claims, project
from companion.claims import Claim, Measurement, judge
from companion.declaring import rivals
from companion.running import ledger

NUMBER = {
    "id": "probe.one",
    "says": "One.",
    "source": {"key": "a", "where": "section 1"},
    "kind": "number",
    "published": 1.0,
    "reading_error": 0.01,
    "rival": "a half",
    "verdict": "reproduced",
}
FORMULA = NUMBER | {
    "kind": "formula",
    "route": "quadrature",
    "accuracy": 1e-12,
    "published": None,
    "reading_error": None,
}
STATEMENT = NUMBER | {"kind": "statement", "published": None, "expects": {"above": 0.5, "why": "ours"}}
CORRECTED = NUMBER | {"verdict": "corrected", "corrected": 2.0, "because": "x", "rival": None}
REFUTED = NUMBER | {
    "verdict": "not-reproduced",
    "because": "x",
    "rival": None,
    "control": "at zero",
    "found": {"value": 3.0, "bound": 0.1},
}
OWN = {name: value for name, value in STATEMENT.items() if name != "source"} | {
    "kind": "own",
    "verdict": "result",
    "because": "x",
}
PROGRAM = NUMBER | {"kind": "program", "commit": "abc", "run_by": "the authors' script"}
SKY = {"id": "probe.sky", "says": "x", "source": NUMBER["source"], "kind": "statement", "verdict": "not-attempted"}


def write(folder, *entries, **head):
    entries = [{name: value for name, value in entry.items() if value is not None} for entry in entries]
    path = folder / "probe.yml"
    path.write_text(yaml.safe_dump({"format": 2, **head, "claims": entries}, sort_keys=False))
    return path


@pytest.mark.parametrize("entry", [NUMBER, FORMULA, STATEMENT, CORRECTED, REFUTED, OWN, PROGRAM])
def test_a_whole_declaration_breaks_no_rule(tmp_path, entry):
    (claim,) = claims.declared(write(tmp_path, entry))
    assert (claim.id, claim.kind, claim.is_measured) == ("probe.one", entry["kind"], True)


BROKEN = {
    "unknown-field": (NUMBER | {"colour": "red"}, "unknown fields"),
    "missing-field": (NUMBER | {"kind": None}, "missing fields"),
    "says": (NUMBER | {"says": ""}, "says: expected a sentence"),
    "id": (NUMBER | {"id": "other.one"}, "expected it to begin with 'probe.'"),
    "kind": (NUMBER | {"kind": "guess"}, "kind: expected one of"),
    "verdict": (NUMBER | {"verdict": "proved"}, "verdict: expected one of"),
    "source": (NUMBER | {"source": {"key": "a"}}, "expected the fields key and where"),
    "own": (
        NUMBER | {"kind": "own", "source": None, "published": None, "expects": STATEMENT["expects"]},
        "are for the kind own",
    ),
    "because": (CORRECTED | {"because": None}, "because: required"),
    "quote": (NUMBER | {"quote": "word " * 16}, "expected at most 15 words"),
    "state": (NUMBER | {"state": "gone"}, "state: expected one of"),
    "published": (NUMBER | {"published": None}, "a number is printed in the text"),
    "discrete": (NUMBER | {"published": True, "reading_error": None}, "a yes or no is for the kinds"),
    "expects": (STATEMENT | {"expects": {"above": 0.5}}, "why: required"),
    "target": (STATEMENT | {"expects": None}, "expected published, or expects"),
    "corrected": (CORRECTED | {"corrected": None}, "corrected: required"),
    "reading-error": (NUMBER | {"reading_error": -1.0}, "expected a number >= 0"),
    "bound": (NUMBER | {"reading_error": None, "bound": {"absolute": 0.1}}, "bound: expected"),
    "allowance": (NUMBER | {"bound": {"absolute": 0.1, "why": "x"}}, "expected one allowance"),
    "wide-bound": (NUMBER | {"reading_error": 0.2}, "over 10% of the published value"),
    "rounding": (FORMULA | {"accuracy": 1e-11}, "more than rounding"),
    "accuracy": (FORMULA | {"accuracy": None}, "accuracy: required for a formula"),
    "route": (FORMULA | {"route": None}, "route: required for a formula"),
    "error": (NUMBER | {"error": "guessed"}, "expected numerical or sampled"),
    "samples": (NUMBER | {"samples": 1}, "expected a whole number >= 2"),
    "comparisons": (NUMBER | {"comparisons": 0}, "expected a whole number >= 2"),
    "rival": (NUMBER | {"rival": None}, "rival: required"),
    "control": (REFUTED | {"control": None}, "control: required"),
    "found": (REFUTED | {"found": None}, "found: required"),
    "parts": (SKY | {"verdict": "partly", "because": "x"}, "parts: ids of claims"),
    "resolves": (NUMBER | {"resolves": "maybe"}, "expected yes or no"),
    "program": (PROGRAM | {"commit": None}, "commit: required for a program"),
    "tex": (FORMULA | {"verdict": "corrected", "because": "x"}, "printed_tex: required for a corrected formula"),
    "not-measured": (SKY | {"because": "x", "rival": "x"}, "measures nothing"),
    "retired": (SKY | {"retired": ""}, "expected the reason"),
    "was": (NUMBER | {"was": ["One"]}, "was: expected ids of claims"),
    "equation": (NUMBER | {"equation": "square"}, "labels of equations"),
    "functions": (NUMBER | {"functions": ["square"]}, "names of functions"),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_a_declaration_is_refused_by_the_rule(tmp_path, rule):
    entry, message = BROKEN[rule]
    _, findings = claims.check(write(tmp_path, SKY | {"id": "probe.first", "because": "x"}, entry))
    assert any(finding.rule == rule and message in finding.message for finding in findings), findings
    text = (tmp_path / "probe.yml").read_text().splitlines()
    second = next(
        number for number, line in enumerate(text, start=1) if line.startswith("- id:") and "first" not in line
    )
    assert {finding.file for finding in findings} == {"probe.yml"}
    assert all(second <= finding.line <= len(text) for finding in findings)


def test_everything_that_is_wrong_with_a_file_is_said_at_once_with_its_lines(tmp_path):
    two, misspelt = NUMBER | {"id": "probe.two", "verdict": "proved"}, FORMULA | {"id": "probe.three", "route": None}
    path = write(tmp_path, NUMBER | {"rival": None}, two, NUMBER, misspelt | {"rout": "quadrature"})
    with pytest.raises(ValueError, match="rival: required") as refusal:
        claims.declared(path)
    said = str(refusal.value).splitlines()
    assert [line.partition("]")[0] for line in said] == [
        "probe.yml:3: [rival",
        "probe.yml:19: [verdict",
        "probe.yml:20: [repeated-id",
        "probe.yml:28: [unknown-field",
    ]


def test_a_file_of_no_known_form_a_repeated_field_and_text_that_is_no_yaml_are_findings(tmp_path):
    path = tmp_path / "probe.yml"
    for text, rule in (
        ("format: 3\nclaims: []\n", "format"),
        ("format: 2\nclaims:\n- 1\n", "format"),
        ("format: 2\n", "format"),
        ("just words\n", "format"),
        ("- id: probe.one\n", "format"),
        ("- id: [\n", "unreadable"),
        ("format: 2\nclaims:\n- id: probe.one\n  says: a\n  says: b\n", "unreadable"),
    ):
        path.write_text(text)
        assert rule in [finding.rule for finding in claims.check(path)[1]], text


def test_the_parts_of_a_whole_are_claims_of_the_file_some_right_and_some_not(tmp_path):
    whole = SKY | {"id": "probe.all", "verdict": "partly", "because": "x", "parts": ["probe.one", "probe.two"]}
    two = CORRECTED | {"id": "probe.two"}
    assert len(claims.declared(write(tmp_path, NUMBER, two, whole))) == 3
    for others, message in (
        ((NUMBER,), "no wholes themselves"),
        ((NUMBER, NUMBER | {"id": "probe.two"}), "some that are"),
    ):
        assert message in claims.check(write(tmp_path, *others, whole))[1][0].message


def test_an_id_of_before_is_an_id(tmp_path):
    _, (finding,) = claims.check(write(tmp_path, NUMBER, CORRECTED | {"id": "probe.two", "was": ["probe.one"]}))
    assert finding.rule == "repeated-id"


def claim(entry, **fields):
    return Claim(**{name: value for name, value in (entry | fields).items() if value is not None})


@pytest.mark.parametrize(
    ("measured", "uncertainty", "rival", "holds"),
    [
        (1.005, 0.0, 0.5, True),
        (1.02, 0.0, 0.5, False),  # the value misses
        (1.0, 0.0, 0.995, False),  # the rival passes
        (1.0, 0.0, None, False),  # nobody measured the rival
        (1.0, 0.02, (0.5, 0.02), True),
        (1.0, 0.02, (0.5, 0.2), False),  # the rival is too uncertain to have failed
        (1.0, 0.0, math.nan, True),  # a rival that diverges has failed
        (1.0, 0.0, (math.inf, 0.0), True),
        (1.0, 0.0, True, False),
        (True, 0.0, 0.5, False),
    ],
)
def test_a_reproduced_number_passes_and_its_rival_fails_by_more_than_both_errors(measured, uncertainty, rival, holds):
    assert judge(claim(NUMBER), Measurement(measured, uncertainty, rival)).holds is holds


def test_an_inflated_uncertainty_hides_nothing():
    fits = claim(NUMBER, bound={"absolute": 0.01, "why": "so that only the rival can tell"}, reading_error=None)
    assert judge(fits, Measurement(1.15, 0.06, 0.5)).holds
    swallowed = judge(fits, Measurement(1.15, 0.3, 0.5))
    assert swallowed.gap < swallowed.bound
    assert not swallowed.holds
    assert "the rival passes too" in swallowed.reason


def test_a_bound_over_a_tenth_of_the_published_value_needs_its_reason():
    assert judge(claim(NUMBER), Measurement(1.0, 0.029, 0.0)).holds
    assert "over 10%" in judge(claim(NUMBER), Measurement(1.0, 0.031, 0.0)).reason


@pytest.mark.parametrize(
    ("expects", "right", "wrong"),
    [
        ({"above": 0.5}, 0.6, 0.5),
        ({"below": 0.5}, 0.4, 0.5),
        ({"between": [1, 2]}, 2.0, 2.1),
        ({"value": 3}, 3, 2),
        ({"value": True}, True, False),
    ],
)
def test_a_statement_is_held_against_what_is_expected(expects, right, wrong):
    said = claim(STATEMENT, expects=expects | {"why": "ours"}, reading_error=None)
    assert judge(said, Measurement(right, 0.0, wrong)).holds
    assert not judge(said, Measurement(wrong, 0.0, wrong)).holds
    assert not judge(said, Measurement(right, 0.0, right)).holds


def test_the_uncertainty_works_inside_of_a_range():
    above = claim(STATEMENT, expects={"above": 0.5, "why": "ours"}, reading_error=None)
    for value, holds, reason in ((0.62, True, ""), (0.55, False, "undecided: an end"), (0.46, False, "undecided")):
        judgement = judge(above, Measurement(value, 0.03, 0.0))
        assert (judgement.holds, reason in judgement.reason) == (holds, True)
    assert judge(above, Measurement(0.38, 0.03, 0.0)).reason == "gap 0.12 exceeds the bound 0.09"
    assert judge(above, Measurement(0.62, 0.03, 0.0)).z == pytest.approx(4)
    assert judge(above, Measurement(0.46, 0.03, 0.0)).z == pytest.approx(-4 / 3)
    # The end is known, so that the value's own uncertainty is no excuse for its rival.
    assert judge(above, Measurement(0.9, 0.03, (0.45, 0.01))).holds
    assert not judge(above, Measurement(0.9, 0.03, (0.48, 0.01))).holds
    between = claim(STATEMENT, expects={"between": [0.5, 0.9], "why": "ours"}, reading_error=None)
    assert not judge(between, Measurement(0.85, 0.03, 0.0)).holds
    assert judge(between, Measurement(0.7, 0.03, 0.0)).holds


def test_the_control_of_a_refutation_lies_inside_of_the_range_by_its_uncertainty():
    given = {"because": "x", "control": "at zero", "found": {"value": 0.0, "bound": 0.1}, "rival": None}
    refuted = claim(STATEMENT | given, verdict="not-reproduced", expects={"above": 0.5, "why": "ours"})
    assert judge(refuted, Measurement(0.0, control=(0.6, 0.03))).holds
    assert "the control" in judge(refuted, Measurement(0.0, control=(0.55, 0.03))).reason


@pytest.mark.parametrize(
    ("expects", "value", "rival", "reason"),
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
def test_what_is_undecided_has_both_answers_in_its_interval(expects, value, rival, reason):
    open_ = claim(STATEMENT, verdict="undecided", because="x", expects=expects | {"why": "ours"}, reading_error=None)
    judgement = judge(open_, Measurement(value, 0.03, (rival, 0.0)))
    assert judgement.holds is not bool(reason)
    assert reason in judgement.reason


@pytest.mark.parametrize(("u", "is_multiple"), [(5e-5, True), (6e-5, False)])
def test_a_rival_that_is_a_multiple_of_the_value_shows_nothing(u, is_multiple):
    judgement = judge(claim(NUMBER), Measurement(1.0, 1e-4, (0.5, u)))
    assert judgement.holds is not is_multiple
    assert ("multiple of the value" in judgement.reason) is is_multiple


@pytest.mark.parametrize(
    ("cells", "fault"),
    [
        (["x, u = measured()", "claims.measure('a.b', x, uncertainty=u, rival=(x / np.log(2), u))"], "a multiple"),
        (
            ["half = 0.5", "x = measured()", "twice = 2 * x", "claims.measure('a.b', twice, rival=half * x)"],
            "a multiple",
        ),
        (["claims.measure('a.b', float(x), rival=x + 8 * 512**2)"], "the value and a number"),
        (["grid = np.linspace(0, 1, 9)", "claims.measure('a.b', x, rival=grid.max() / 2)"], "a constant"),
        (["claims.measure('a.b', f(x), rival=f(2 * x))"], ""),
        (["rival = x", "x = measured()", "claims.measure('a.b', x, rival=rival)"], ""),
        (["grid = []", "grid.append(1)", "claims.measure('a.b', x, rival=np.max(grid))"], ""),
        (["claims.measure('a.b', x, rival=np.random.default_rng(0).normal())"], ""),
        (["claims.measure('a.b', measured() / 2, rival=other / 2)"], ""),
    ],
)
def test_a_rival_that_is_written_down_is_found(cells, fault):
    found = [said for _, said in rivals.written_down(["import numpy as np", *cells])]
    assert [said.startswith(fault) for said in found] == [True] * bool(fault)


@pytest.mark.parametrize(("held", "whole"), [((True, False), False), ((True, None), True), ((True, True), True)])
def test_a_whole_holds_if_each_of_its_parts_does_that_is_decided(held, whole):
    parts = [{"id": f"a.{place}", "verdict": "reproduced", "holds": one} for place, one in enumerate(held)]
    entries = [*parts, {"id": "a.whole", "verdict": "partly", "parts": ["a.0", "a.1"], "holds": None}]
    ledger._join_parts(entries)
    assert entries[-1]["holds"] is whole


def test_a_yes_or_no_is_compared_with_yes_or_no_only():
    yes = claim(STATEMENT, expects={"value": True, "why": "ours"}, reading_error=None)
    assert "cannot be compared" in judge(yes, Measurement(1.0, rival=0.0)).reason
    assert "cannot be compared" in judge(claim(NUMBER), Measurement(True, rival=False)).reason


def test_a_stated_bound_replaces_the_reading_error():
    relative = claim(NUMBER, bound={"relative": 0.5, "why": "an order of magnitude"}, published=-2.0)
    assert judge(relative, Measurement(-2.9, rival=0.0)).holds
    assert not judge(relative, Measurement(-3.1, rival=0.0)).holds
    corrected = claim(CORRECTED, bound={"relative": 0.1, "why": "x"}, published=None, expects=None, kind="figure")
    assert judge(corrected, Measurement(2.15, rival=1.0)).holds
    narrow = claim(NUMBER, bound={"absolute": 0.001, "why": "printed digits"})
    assert not judge(narrow, Measurement(1.005, rival=0.0)).holds


def test_a_formula_is_a_deviation_within_its_accuracy():
    assert judge(claim(FORMULA), Measurement(1e-13, 0.0, 0.1)).holds
    assert not judge(claim(FORMULA), Measurement(1e-8, 0.0, 0.1)).holds
    assert not judge(claim(FORMULA), Measurement(1e-13, 0.0, 1e-13)).holds


def test_the_rival_of_a_correction_is_the_printed_form():
    assert judge(claim(CORRECTED), Measurement(2.0)).holds
    assert not judge(claim(CORRECTED), Measurement(1.0)).holds
    close = judge(claim(CORRECTED, corrected=1.005), Measurement(1.005))
    assert "the printed form passes too" in close.reason
    formula = claim(FORMULA, verdict="corrected", because="x")
    assert judge(formula, Measurement(1e-13, 0.0, 0.5)).holds
    assert not judge(formula, Measurement(1e-13)).holds


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
def test_a_refutation_finds_what_it_found_and_has_power(measurement, reason):
    judgement = judge(claim(REFUTED, reading_error=0.01), measurement)
    assert judgement.holds is not bool(reason)
    assert reason in judgement.reason


def test_what_is_not_measured_is_not_judged():
    for entry in (SKY, SKY | {"verdict": "partly"}, NUMBER | {"retired": "x"}):
        assert judge(claim(entry), None).holds is None
    assert judge(claim(NUMBER), None).holds is False


def test_k_follows_the_kind_of_the_error():
    # The chance of more than 4 standard errors to one side, in the tails of other distributions.
    chance = scipy.stats.norm.sf(4)
    assert claims.factor(claim(NUMBER)) == 3
    assert claims.factor(claim(NUMBER, error="sampled")) == 4
    assert claims.factor(claim(NUMBER, samples=16)) == pytest.approx(scipy.stats.t(15).isf(chance))
    assert claims.factor(claim(NUMBER, samples=10**6)) == pytest.approx(4.0, abs=1e-3)
    assert claims.factor(claim(NUMBER, comparisons=100)) == pytest.approx(scipy.stats.norm.isf(chance / 100))
    assert claims.factor(claim(NUMBER, samples=16, comparisons=100)) > claims.factor(claim(NUMBER, samples=16))


def test_rival_and_control_are_recorded_with_their_uncertainty(tmp_path, monkeypatch):
    monkeypatch.setenv("COMPANION_OUT", str(tmp_path))
    claims.measure("probe.one", 1.0, rival=0.5)
    claims.measure("probe.two", 1.0, uncertainty=0.1, rival=(math.inf, 0.2))
    claims.measure("probe.three", True, control=True)
    assert dict(claims.recorded(tmp_path)) == {
        "probe.one": Measurement(1.0, 0.0, (0.5, 0.0)),
        "probe.two": Measurement(1.0, 0.1, (math.inf, 0.2)),
        "probe.three": Measurement(True, 0.0, None, (True, 0.0)),
    }
    with pytest.raises(ValueError, match=r"control of probe\.one: expected a finite number"):
        claims.measure("probe.one", 1.0, control=math.nan)
    with pytest.raises(ValueError, match=r"rival of probe\.one: expected a value or"):
        claims.measure("probe.one", 1.0, rival=(1, 2, 3))
    with pytest.raises(ValueError, match=r"rival uncertainty of probe\.one: expected a number >= 0"):
        claims.measure("probe.one", 1.0, rival=(1.0, -1.0))


@pytest.mark.parametrize("value", [np.zeros(3), float("nan"), np.inf, "many", None])
def test_measuring_something_that_is_no_number_names_the_claim(value):
    with pytest.raises(ValueError, match=r"value of probe\.one"):
        claims.measure("probe.one", value)


def test_a_negative_uncertainty_is_refused():
    with pytest.raises(ValueError, match="uncertainty of probe"):
        claims.measure("probe.one", 1.0, uncertainty=-0.1)


def test_a_measurement_is_recorded_as_a_plain_number_and_shown_as_a_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COMPANION_OUT", str(tmp_path))
    (tmp_path / "book" / "claims").mkdir(parents=True)
    write(tmp_path / "book" / "claims", NUMBER)
    shutil.copy(project.root() / "_config.yml", tmp_path)
    monkeypatch.setenv("COMPANION_ROOT", str(tmp_path))
    claims.measure("probe.one", np.float64(1.0), uncertainty=np.float32(0.5))
    claims.measure("probe.two", np.bool_(True))
    lines = [json.loads(line) for line in (tmp_path / "measured.jsonl").read_text().splitlines()]
    assert lines == [
        {"id": "probe.one", "value": 1.0, "uncertainty": 0.5},
        {"id": "probe.two", "value": True, "uncertainty": 0.0},
    ]
    assert "Claim probe.one: measured 1 ± 0.5'" in capsys.readouterr().out, "a run sees no declaration"
    monkeypatch.delenv("COMPANION_OUT")
    claims.measure("probe.one", np.float64(1.0), uncertainty=np.float32(0.5))
    claims.measure("probe.two", np.bool_(True))
    shown = capsys.readouterr().out
    assert "Claim probe.one: One. measured 1 ± 0.5, published 1" in shown
    assert "no such claim is declared" in shown
    assert len((tmp_path / "measured.jsonl").read_text().splitlines()) == 2
