"""The smallest error that a book notices: found where it is known, infinite where it is blind, and told from no run."""

import math
import re
import subprocess
import sys

import pytest

from companion.declaring import calls
from companion.evidence import epsilon, records, resumable

DECLARED = """\
- id: probe.curved
  says: The parabola is curved upwards.
  source: {key: author2000source, where: section 3}
  functions: [walks.pairs.both]
  kind: statement
  expects: {value: true, why: as it is said}
  rival: a line
  verdict: reproduced

- id: probe.cube
  says: A cube is measured as a square.
  source: {key: author2000source, where: section 3}
  functions: [walks.unrelated.three]
  kind: number
  published: 1.0
  reading_error: 0.001
  rival: half of it
  verdict: reproduced
"""

# A function of the library, what made a record with it, and what reads this.
RECORDED = """\
from importlib import resources
from walks import unrelated

_FILE = "steps.json"


def compute(folder):
    (folder / _FILE).write_text(str(unrelated.three(1)))


def record():
    return resources.files("walks").joinpath("steps.json").read_text()
"""

MEASURED = """
```{code-cell} ipython3
:name: claim-probe-curved
claims.measure("probe.curved", bool(np.all(np.diff(pairs.both(x), 2) > 0)), rival=False)
```

```{code-cell} ipython3
:name: claim-probe-cube
raise_nothing = pairs.both(1.0)
claims.measure("probe.cube", raise_nothing, rival=0.5)
```

## What the source says, and where it is answered
"""


@pytest.fixture
def book(audited):
    """The toy book in two pages, with a claim that cannot move and one that names what it does not run."""
    path = audited.path("book/claims/probe.yml")
    text = path.read_text().replace("  kind: number\n", "  functions: [walks.pairs.both]\n  kind: number\n", 1)
    path.write_text(text + "\n" + DECLARED)
    audited.edit("notebooks/audits/probe.md", "\n## What the source says, and where it is answered\n", MEASURED)
    return audited


@pytest.mark.slow
@pytest.mark.long
def test_epsilon_is_found_where_it_is_known_and_infinite_where_the_book_is_blind(book, capsys):
    epsilon.run(book.root)
    epsilon.record(book.root)
    kept = records.read(book.root, epsilon.EVIDENCE)
    both = kept["walks.pairs.both | audits/probe"]
    assert (both["stopped"], both["called"], both["applied"]) == ("", True, True)
    # max |1.001 (2 x) - 2 x| = .002, in a bound of 1e-9 + 3e-11 of which rounding has used a little.
    study = epsilon.Study(book.root)
    both_row, three_row = epsilon.rows(study, kept)
    assert both_row.epsilon == pytest.approx(1e-3 * 1.03e-9 / 2e-3, rel=1e-2)
    assert (both_row.claim, both_row.state) == ("probe.slope", epsilon.State.SEEN)
    # The lesson alone: a bound of .001 + 3e-9 around 1.
    (job,) = [one for one in study.jobs if one.name == "walks.pairs.both | probe"]
    assert job.ids == ("probe.top",)
    assert not any("subplots" in statement for statement in epsilon._statements(book.root, job))
    plain = kept[f"{epsilon.PLAIN} | probe"]["measured"]
    assert epsilon._epsilon(study.map.claims, kept[job.name], plain, {})[0] == pytest.approx(1e-3, rel=1e-4)
    # Named, and not run by its cell; a claim about a boolean does not move.
    assert (three_row.epsilon, three_row.state) == (math.inf, epsilon.State.NOT_CALLED)
    assert kept["walks.pairs.both | audits/probe"]["measured"]["probe.curved"][0] is True
    assert "2 jobs, 0 of them done before" in capsys.readouterr().out
    epsilon.run(book.root, pages=["probe"])
    assert "1 jobs, 1 of them done before" in capsys.readouterr().out


def test_what_was_not_run_and_what_was_made_of_other_code_is_said(book):
    study = epsilon.Study(book.root)
    assert [row.state for row in epsilon.rows(study, {})] == [epsilon.State.NOT_RUN] * 2
    found = {"measured": {"probe.top": [1.0, 0.0, 0.5, None]}, "stopped": "", "called": True, "applied": True}
    kept = {job.name: found | {"key": job.key} for job in study.jobs}
    row, _ = epsilon.rows(study, kept)
    assert (row.epsilon, row.state, row.old) == (math.inf, epsilon.State.BLIND, False)
    row, _ = epsilon.rows(study, kept | {"walks.pairs.both | probe": found | {"key": "other", "older": True}})
    assert row.old
    # Blind on one page, and another one may still notice.
    part = {name: one for name, one in kept.items() if name != "walks.pairs.both | probe"}
    assert epsilon.rows(study, part)[0].state == epsilon.State.NOT_RUN
    # Without the page as it is there is nothing to compare with.
    alone = {name: one for name, one in kept.items() if epsilon.PLAIN not in name}
    assert epsilon.rows(study, alone)[0].state == epsilon.State.NOT_RUN
    stops = found | {"stopped": "ValueError: no", "measured": {}}
    row, _ = epsilon.rows(study, {name: one | stops if "both" in name else one for name, one in kept.items()})
    assert (row.epsilon, row.claim, row.state) == (1e-3, "", epsilon.State.STOPS)
    # A value that two runs of the same page give differently says nothing.
    moved = {"measured": {"probe.top": [1.0005, 0.0, 0.5, None]}}
    shaken = {name: one | moved if "both" in name else one for name, one in kept.items()}
    assert epsilon.rows(study, shaken)[0].epsilon == pytest.approx(2e-3)
    again = {"measured": {"probe.top": [1.0004, 0.0, 0.5, None]}}
    shaken = {name: one | again if epsilon.AGAIN in name else one for name, one in shaken.items()}
    assert epsilon.rows(study, shaken)[0].epsilon == math.inf
    with pytest.raises(ValueError, match=r"PAGE: expected some of \['probe', 'audits/probe'\], got \['none'\]"):
        epsilon.jobs(book.root, ["none"])


def test_a_claim_that_reads_what_a_function_recorded_is_not_asked(audited):
    audited.path("src/walks/recorded.py").write_text(RECORDED)
    audited.path("src/walks/steps.json").write_text("2")
    audited.edit(
        "book/claims/probe.yml", "- id: probe.top\n", "- id: probe.top\n  functions: [walks.unrelated.three]\n"
    )
    page = next(path for path in audited.path("notebooks").rglob("*.md") if '"probe.top"' in path.read_text())
    asked = [job for job in epsilon.Study(audited.root).jobs if "probe.top" in job.ids]
    assert "walks.unrelated.three" in {job.function for job in asked}
    text = re.sub(r'claims\.measure\(\s*"probe\.top".*?\)\n', "", page.read_text(), flags=re.DOTALL)
    cell = 'from walks import recorded\nclaims.measure("probe.top", float(recorded.record()), rival=0.0)\n'
    page.write_text(f"{text}\n```{{code-cell}} ipython3\n{cell}```\n")
    study = epsilon.Study(audited.root)
    assert "probe.top" not in {id for job in study.jobs for id in job.ids}
    (row,) = [row for row in epsilon.rows(study, {}) if row.function == "walks.unrelated.three"]
    assert (row.epsilon, row.state, row.asked) == (None, epsilon.State.RECORD, ("probe.top",))


def test_statements_that_stop_as_they_are_give_no_result(book, monkeypatch):
    (job,) = [one for one in epsilon.jobs(book.root) if one.name == "walks.pairs.both | probe"]
    stopped = {"stopped": "NameError: y", "measured": {}, "called": False, "applied": False}
    monkeypatch.setattr(epsilon, "_forked", lambda *_: dict(stopped))
    assert epsilon._measured(book.root, job) == "no result, it stops as it is: NameError: y"
    assert resumable.outcome(book.root, job) is None
    # With the function alone it is the function.
    monkeypatch.setattr(
        epsilon,
        "_forked",
        lambda _, job, factor: (
            dict(stopped) if factor else {"stopped": "", "measured": {id: [1.0, 0.0, None, None] for id in job.ids}}
        ),
    )
    assert epsilon._measured(book.root, job) == "NameError: y"
    found = resumable.outcome(book.root, job)
    assert found is not None
    assert found["stopped"] == "NameError: y"


def test_statements_of_a_claim_are_those_that_it_needs_with_all_random_numbers_before_its_own():
    page = calls.Notebook(
        [
            "import jax\nimport numpy as np\nfrom companion import claims\njax.config.update('x', True)",
            "a = 1\nb = 2",
            "rows = []\nrows.append(a)\nprint(b)",
            "rng = np.random.default_rng(1)\nc = rng.normal()\nd = rng.normal()",
            "claims.measure('one', rows[0])\nclaims.measure('two', d)",
        ]
    )
    always = ["import jax", "import numpy as np", "from companion import claims", "jax.config.update('x', True)"]
    own = ["a = 1", "rows = []", "rows.append(a)", "claims.measure('one', rows[0])"]
    drawn = ["rng = np.random.default_rng(1)", "c = rng.normal()", "d = rng.normal()"]
    assert page.alone("claims.measure", ["one"]) == always + own
    assert page.alone("claims.measure", ["two"]) == [*always, *drawn, "claims.measure('two', d)"]


def test_a_run_that_does_not_end_is_stopped_and_has_no_result(tmp_path):
    # In a process of its own: the run is a fork of it, and pytest has threads.
    code = """
import sys, time
from pathlib import Path
from companion.evidence import epsilon
epsilon.LIMIT_SECONDS = 0.0
epsilon._run = lambda *_: time.sleep(600)
job = epsilon.Job("name", "key", "place", "walks.pairs.both", "probe", ("probe.top",), "walks.pairs", "both")
print(epsilon._forked(Path(sys.argv[1]), job, 1.001))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout.strip(), done.returncode) == ("None", 0), done.stderr
