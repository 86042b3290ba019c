"""Frozen ledgers: what counts as a change, and that it needs a reason."""

import json
from copy import deepcopy

import pytest
import yaml

from companion.site import releases


@pytest.fixture(scope="module")
def ledger(built):
    entries = json.loads(built[0].path("_build/claims.json").read_text(encoding="utf-8"))
    assert any(entry["measured"] is not None for entry in entries)
    return {"version": "1.0.0", "claims": entries, "retired": []}, entries


def with_another_verdict(entries):
    changed = deepcopy(entries)
    changed[0]["verdict"] = "partly" if changed[0]["verdict"] != "partly" else "corrected"
    return changed


def measured(entries):
    return next(entry for entry in entries if entry["measured"] is not None and entry["bound"])


def found(before, entries, retired=(), reasons=None):
    return [
        (change.id, change.kind, change.why) for change in releases.changes(before, entries, retired, reasons or {})
    ]


def test_the_same_ledger_has_not_changed(ledger):
    assert found(*ledger) == []


def test_a_value_that_stays_within_its_bound_has_not_changed_and_one_beyond_has(ledger):
    before, entries = ledger
    now = deepcopy(entries)
    entry = measured(now)
    start, bound = entry["measured"], entry["bound"]
    entry["measured"] = start + 0.5 * bound
    assert found(before, now) == []
    entry["measured"] = start + 1.5 * bound
    assert found(before, now) == [(entry["id"], "value", None)]


def test_a_value_on_one_side_of_an_end_may_move_as_far_as_that(ledger):
    before, entries = deepcopy(ledger[0]), deepcopy(ledger[1])
    before["claims"], entries = before["claims"][:1], entries[:1]

    def after(start, end, **of_the_claim):
        before["claims"][0] |= {"measured": start, "bound": 0.0, "found": None, **of_the_claim}
        entries[0] |= before["claims"][0] | {"measured": end}
        return [change.kind for change in releases.changes(before, entries, [], {})]

    # The last digits of a number that is nearly zero are another processor's.
    small = {"expects": {"below": 1e-10, "why": "Rounding."}}
    assert after(2e-16, 5e-16, **small) == []
    assert after(2e-16, 3e-10, **small) == ["value"]
    assert after(0.61, 0.7, expects={"above": 0.5, "why": "A half."}) == []
    assert after(0.61, 0.9, expects={"above": 0.5, "why": "A half."}) == ["value"]
    assert after(0.61, 0.75, expects={"between": [0.5, 0.9], "why": "A range."}) == ["value"]
    found = {
        "expects": {"above": 0.9, "why": "Nearly all."},
        "found": {"value": 0.15, "bound": 0.1, "why": "Five runs."},
    }
    assert after(0.155, 0.2, **found) == []
    assert after(0.155, 0.3, **found) == ["value"]
    assert after(126, 127, expects={"value": 126, "why": "A count."}) == ["value"]


def test_a_verdict_an_expectation_a_retired_a_lost_and_a_new_claim(ledger):
    before, entries = ledger
    now, id = with_another_verdict(entries), entries[0]["id"]
    assert found(before, now, reasons={id: "A better route."}) == [(id, "verdict", "A better route.")]
    now = deepcopy(entries)
    now[0]["expects"] = {"value": 12.5, "why": "Another word."}
    assert [(one[0], one[1]) for one in found(before, now)] == [(id, "expectation")]
    (change,) = releases.changes(before, now, [], {})
    assert change.after.endswith("expected 12.5")
    assert not {"None", "value", "{"}.intersection(change.before.split())
    gone = [{"id": id, "was": [], "reason": "It repeated another."}]
    assert found(before, entries[1:], gone) == [(id, "retired", "It repeated another.")]
    assert found(before, entries[1:]) == [(id, "gone", None)]
    new = [*entries, {**entries[0], "id": "probe.another"}]
    assert found(before, new) == [("probe.another", "new", None)]


def test_a_finer_word_for_a_result_of_our_own_is_no_change_and_undecided_is_one(ledger):
    before, entries = deepcopy(ledger[0]), deepcopy(ledger[1])
    before["claims"][0]["verdict"] = "established"
    for verdict, changed in (("result", []), ("software-check", []), ("undecided", ["verdict"])):
        entries[0]["verdict"] = verdict
        assert [kind for _, kind, _ in found(before, entries)] == changed


def test_a_renamed_claim_and_better_words_are_no_change(ledger):
    before, entries = ledger
    now = deepcopy(entries)
    now[0] |= {"id": "probe.renamed", "was": [now[0]["id"]], "says": "The same in other words."}
    if now[0]["expects"]:
        now[0]["expects"]["why"] = "Other words."
    assert found(before, now) == []


def test_a_change_without_a_reason_and_a_reason_without_a_change_are_problems(ledger, tmp_path):
    before, entries = ledger
    folder = tmp_path / "book/releases"
    folder.mkdir(parents=True)
    (folder / "1.0.0.json").write_text(json.dumps(before), encoding="utf-8")
    # The last release is compared with, by its number and not by its name.
    old = {**before, "version": "0.9.0", "claims": []}
    (folder / "0.9.0.json").write_text(json.dumps(old), encoding="utf-8")
    now, id = with_another_verdict(entries), entries[0]["id"]
    (problem,) = releases.problems(tmp_path, now, [])
    assert problem.startswith(f"claim {id}: its verdict changed since release 1.0.0")
    (folder / "reasons.yml").write_text(yaml.safe_dump({id: "A better\nroute."}), encoding="utf-8")
    assert releases.problems(tmp_path, now, []) == []
    # A value may move back on another machine; a release takes out reasons that explain nothing.
    assert releases.problems(tmp_path, entries, []) == []
    (problem,) = releases.problems(tmp_path, entries, [], values=True)
    assert problem.endswith("but there is none")
    (folder / "reasons.yml").write_text(yaml.safe_dump({"probe.unknown": "Of nothing."}), encoding="utf-8")
    (problem,) = releases.problems(tmp_path, entries, [])
    assert problem.startswith("claim probe.unknown")
    assert problem.endswith("but there is none")
    (folder / "reasons.yml").unlink()
    moved = deepcopy(entries)
    entry = measured(moved)
    entry["measured"] += 1.5 * entry["bound"]
    assert releases.problems(tmp_path, moved, []) == []
    (problem,) = releases.problems(tmp_path, moved, [], values=True)
    assert problem.startswith(f"claim {entry['id']}: its value changed since release 1.0.0")
    (folder / "reasons.yml").write_text("- a list", encoding="utf-8")
    with pytest.raises(ValueError, match=r"reasons\.yml:1: expected ids of claims with a sentence each, got a list"):
        releases.problems(tmp_path, entries, [])


def test_only_the_confirmed_ledger_of_a_committed_release_is_frozen_and_once(built, tmp_path):
    site = tmp_path / "_build/html"
    site.mkdir(parents=True)
    with pytest.raises(ValueError, match=r"^the site: expected a finished one"):
        releases.freeze(tmp_path)
    names = ("book.json", "claims.json", "status.json")
    files = {name: json.loads(built[0].path(f"_build/html/{name}").read_text(encoding="utf-8")) for name in names}

    def put(**index):
        files["book.json"] |= index
        for name, content in files.items():
            (site / name).write_text(json.dumps(content), encoding="utf-8")

    for index, candidate, message in (
        ({"version": "1.0.0.dev0", "dirty": False}, 0, r"version: expected that of a release; .* got 1\.0\.0\.dev0"),
        ({"version": "1.0.0", "dirty": True}, -1, r"candidate: expected the number of a candidate, 1 or more, got -1$"),
        ({}, 1, r"version: expected one of development for a candidate, got 1\.0\.0"),
        ({}, 0, "the site: .* uncommitted changes"),
    ):
        put(**index)
        with pytest.raises(ValueError, match=f"^{message}"):
            releases.freeze(tmp_path, candidate=candidate)
    held = [entry["holds"] for entry in files["claims.json"]]
    files["claims.json"][0]["holds"] = False
    put(dirty=False)
    with pytest.raises(ValueError, match=r"^claims: expected all to be confirmed, got \d+ that are not"):
        releases.freeze(tmp_path)
    for entry, holds in zip(files["claims.json"], held, strict=True):
        entry["holds"] = holds is not False
    put(version="1.0.0.dev0")
    assert releases.freeze(tmp_path, candidate=2).name == "1.0.0rc2.json"
    put(version="1.0.0")
    path = releases.freeze(tmp_path)
    candidate, kept = releases.frozen(tmp_path)
    assert (candidate["version"], path.name) == ("1.0.0rc2", "1.0.0.json")
    assert found(kept, files["claims.json"]) == []
    with pytest.raises(ValueError, match=r"^version: expected one without a frozen ledger, got 1\.0\.0"):
        releases.freeze(tmp_path)
    entry = measured(files["claims.json"])
    entry["measured"] += 1.5 * entry["bound"]
    put(version="1.0.1")
    with pytest.raises(ValueError, match=r"^reasons: 1 missing or without a change, the first: claim .* its value"):
        releases.freeze(tmp_path)
    # The reasons stay with the release that they explain, since their file begins anew.
    reasons = {entry["id"]: "A longer run."}
    (tmp_path / "book/releases/reasons.yml").write_text(yaml.safe_dump(reasons), encoding="utf-8")
    releases.freeze(tmp_path)
    *_, before, after = releases.frozen(tmp_path)
    assert [(one.id, one.kind, one.why) for one in releases.between(before, after)] == [
        (entry["id"], "value", "A longer run.")
    ]
