"""What the page on limits says of claims is what the ledger says."""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]


def verdicts():
    files = sorted((ROOT / "book" / "claims").glob("*.yml"))
    return {c["id"]: c.get("verdict") for f in files for c in yaml.safe_load(f.read_text())["claims"]}


def apart(page, ledger):
    """Claims that the list lacks or has too much, and those named elsewhere that nobody measured."""
    listed, rest = re.search(
        r"^\(limits-omissions\)=\n(.*?)^What has no claim(.*)", page, re.DOTALL | re.MULTILINE
    ).groups()
    named = r"`([a-z-]+\.[a-z0-9-]+)`"
    lacking = {id for id, verdict in ledger.items() if verdict == "not-attempted"} ^ set(re.findall(named, listed))
    measured = {id for id in re.findall(named, rest) if id.split(".")[0] in {i.split(".")[0] for i in ledger}}
    return lacking | {id for id in measured if ledger.get(id) in (None, "not-attempted")}


def test_the_page_lists_what_the_ledger_does_not_attempt_and_nothing_else():
    page, ledger = (ROOT / "book" / "limits.md").read_text(), verdicts()
    assert apart(page, ledger) == set()
    some = next(id for id, verdict in ledger.items() if verdict == "not-attempted")
    assert apart(page, ledger | {some: "reproduced"}) == {some}
    assert apart(page, ledger | {"a-chapter.new": "not-attempted"}) == {"a-chapter.new"}
