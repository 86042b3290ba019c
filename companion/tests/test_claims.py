"""Claims: declarations that are checked, measurements that are recorded, and the comparison between them."""

import json
import shutil

import numpy as np
import pytest

from companion import claims, project
from companion.claims import Claim, Measurement, judge
from companion.declaring import declaration


@pytest.fixture(autouse=True)
def _the_old_form_is_read(monkeypatch):
    monkeypatch.setattr(declaration, "OLD_FORM_IS_READ", True)


def claim(**fields):
    given = {
        "id": "probe.one",
        "says": "One.",
        "source": {"key": "a", "where": "b"},
        "verdict": "reproduced",
        "published": 2.0,
        "reading_error": 0.1,
    }
    return Claim(**(given | fields))


@pytest.mark.parametrize(
    ("measured", "uncertainty", "holds"),
    [(2.0, 0.0, True), (2.1001, 0.0, False), (2.12, 0.01, True), (1.8, 0.01, False)],
)
def test_a_reproduced_claim_holds_within_reading_error_and_three_standard_errors(measured, uncertainty, holds):
    assert judge(claim(), Measurement(measured, uncertainty)).holds is holds


def test_a_corrected_claim_needs_the_corrected_value_to_pass_and_the_published_one_to_fail():
    corrected = claim(verdict="corrected", corrected=3.0, because="shown")
    assert judge(corrected, Measurement(3.05)).holds
    assert not judge(corrected, Measurement(2.5)).holds
    too_coarse = judge(corrected, Measurement(2.5, uncertainty=1.0))
    assert not too_coarse.holds
    assert "published value passes too" in too_coarse.reason


def test_a_claim_declared_not_reproduced_fails_when_it_reproduces():
    lost = claim(verdict="not-reproduced", because="shown")
    assert judge(lost, Measurement(5.0)).holds
    assert not judge(lost, Measurement(2.05)).holds


def test_a_claim_that_was_not_attempted_is_not_judged_and_one_never_measured_fails():
    assert judge(claim(verdict="not-attempted", because="no network"), None).holds is None
    assert judge(claim(), None).holds is False


def test_booleans_are_compared_with_booleans_only():
    yes = claim(published=True, reading_error=0.0)
    assert judge(yes, Measurement(True)).holds
    assert not judge(yes, Measurement(False)).holds
    assert not judge(yes, Measurement(1.0)).holds
    assert not judge(claim(), Measurement(True)).holds


def test_a_stated_rule_replaces_the_reading_error():
    relative = claim(bound={"relative": 0.5, "why": "an order of magnitude"}, published=-2.0)
    assert judge(relative, Measurement(-2.9)).holds
    assert not judge(relative, Measurement(-3.1)).holds
    assert not judge(claim(bound={"absolute": 0.01, "why": "printed digits"}), Measurement(2.05)).holds


GOOD = {
    "id": "probe.one",
    "says": "One.",
    "source": {"key": "a", "where": "b"},
    "published": 1.0,
    "verdict": "reproduced",
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"verdict": "proved"}, "verdict: expected one of"),
        ({"verdict": "not-reproduced"}, "because: required"),
        ({"verdict": "corrected", "because": "x"}, "corrected: a value is required"),
        ({"corrected": 2.0}, "corrected: a value is required"),
        ({"published": "much"}, "published: expected a number"),
        ({"source": {"key": "a"}}, "source: expected the fields"),
        ({"id": "other.one"}, "expected it to begin with 'probe.'"),
        ({"reading_error": -1.0}, "reading_error: expected a number >= 0"),
        ({"bound": {"relative": 0.1}}, "bound: expected"),
        ({"colour": "red"}, "unknown fields"),
    ],
)
def test_a_declaration_that_could_not_be_decided_names_file_claim_and_field(tmp_path, change, message):
    path = tmp_path / "probe.yml"
    path.write_text(json.dumps([GOOD | change]))
    with pytest.raises(ValueError, match=rf"probe\.yml.*{message}"):
        claims.declared(path)


def test_a_claim_declared_twice_is_refused(tmp_path):
    path = tmp_path / "probe.yml"
    path.write_text(json.dumps([GOOD, GOOD]))
    with pytest.raises(ValueError, match="more than once"):
        claims.declared(path)


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
    (tmp_path / "book" / "claims" / "probe.yml").write_text(json.dumps([GOOD]))
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
