"""The smallest error that a book notices: found where it is known, infinite where it is blind, and told from no run."""

import dataclasses
import io
import math
import re
import subprocess
import sys

import numpy as np
import pytest
import torch
import xarray as xr

from companion.declaring import calls
from companion.evidence import epsilon, nudge, records, resumable
from toybook import add_audit

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
def book(toy_book):
    """The toy book in two pages, with a claim that cannot move and one that names what it does not run."""
    add_audit(toy_book)
    path = toy_book.path("book/claims/probe.yml")
    text = path.read_text().replace("  kind: number\n", "  functions: [walks.pairs.both]\n  kind: number\n", 1)
    path.write_text(text + "\n" + DECLARED)
    toy_book.edit("notebooks/audits/probe.md", "\n## What the source says, and where it is answered\n", MEASURED)
    return toy_book


@pytest.mark.long
def test_epsilon_is_found_where_it_is_known_and_infinite_where_the_book_is_blind(book):
    out = io.StringIO()
    epsilon.run(book.root, out)
    epsilon.record(book.root, out)
    kept = records.read(book.root, epsilon.EVIDENCE)
    both = kept["walks.pairs.both | audits/probe"]
    assert (both["stopped"], both["called"], both["applied"]) == ("", True, True)
    # max |1.001 (2 x) - 2 x| = .002, in a bound of 1e-9 + 3e-11 of which rounding has used a little.
    study = epsilon.Study(book.root)
    both_row, three_row = epsilon.rows(study, kept)
    assert both_row.epsilon == pytest.approx(1e-3 * 1.03e-9 / 2e-3, rel=1e-2)
    assert (both_row.claim, both_row.state) == ("probe.slope", epsilon.SEEN)
    # The lesson alone: a bound of .001 + 3e-9 around 1.
    (job,) = [one for one in study.jobs() if one.name == "walks.pairs.both | probe"]
    assert job.ids == ("probe.top",)
    assert not any("subplots" in statement for statement in epsilon._statements(book.root, job))
    plain = {epsilon.PLAIN: kept[f"{epsilon.PLAIN} | probe"]["measured"]}
    assert epsilon._epsilon(study, job, kept[job.name], plain)[0] == pytest.approx(1e-3, rel=1e-4)
    # Named, and not run by its cell; a claim about a boolean does not move.
    assert (three_row.epsilon, three_row.state) == (math.inf, epsilon.NOT_CALLED)
    assert kept["walks.pairs.both | audits/probe"]["measured"]["probe.curved"][0] is True
    said = out.getvalue()
    assert "2 jobs, 0 of them done before" in said
    assert "2 functions; median inf; 1 seen, 1 not called" in said
    again = io.StringIO()
    epsilon.run(book.root, again, pages=["probe"])
    assert "1 jobs, 1 of them done before" in again.getvalue()


def test_what_was_not_run_and_what_was_made_of_other_code_is_said(book):
    study = epsilon.Study(book.root)
    assert [row.state for row in epsilon.rows(study, {})] == [epsilon.NOT_RUN] * 2
    found = {"measured": {"probe.top": [1.0, 0.0, 0.5, None]}, "stopped": "", "called": True, "applied": True}
    kept = {job.name: found | {"key": job.key} for job in study.jobs()}
    row, _ = epsilon.rows(study, kept)
    assert (row.epsilon, row.state, row.old) == (math.inf, epsilon.BLIND, False)
    row, _ = epsilon.rows(study, kept | {"walks.pairs.both | probe": found | {"key": "other"}})
    assert row.old
    # Blind on one page, and another one may still notice.
    part = {name: one for name, one in kept.items() if name != "walks.pairs.both | probe"}
    assert epsilon.rows(study, part)[0].state == epsilon.NOT_RUN
    stops = found | {"stopped": "ValueError: no", "measured": {}}
    row, _ = epsilon.rows(study, {name: one | stops if "both" in name else one for name, one in kept.items()})
    assert (row.epsilon, row.claim, row.state) == (1e-3, "", epsilon.STOPS)
    # A value that two runs of the same page give differently says nothing.
    moved = {"measured": {"probe.top": [1.0005, 0.0, 0.5, None]}}
    shaken = {name: one | moved if "both" in name else one for name, one in kept.items()}
    assert epsilon.rows(study, shaken)[0].epsilon == pytest.approx(2e-3)
    again = {"measured": {"probe.top": [1.0004, 0.0, 0.5, None]}}
    shaken = {name: one | again if epsilon.AGAIN in name else one for name, one in shaken.items()}
    assert epsilon.rows(study, shaken)[0].epsilon == math.inf
    with pytest.raises(ValueError, match=r"PAGE: expected some of \['probe', 'audits/probe'\], got \['none'\]"):
        epsilon.jobs(book.root, ["none"])


def test_a_claim_that_reads_what_a_function_recorded_is_not_asked(toy_book):
    add_audit(toy_book)
    toy_book.path("src/walks/recorded.py").write_text(RECORDED)
    toy_book.path("src/walks/steps.json").write_text("2")
    toy_book.edit(
        "book/claims/probe.yml", "- id: probe.top\n", "- id: probe.top\n  functions: [walks.unrelated.three]\n"
    )
    page = next(path for path in toy_book.path("notebooks").rglob("*.md") if '"probe.top"' in path.read_text())
    asked = [job for job in epsilon.Study(toy_book.root).jobs() if "probe.top" in job.ids]
    assert "walks.unrelated.three" in {job.function for job in asked}
    text = re.sub(r'claims\.measure\(\s*"probe\.top".*?\)\n', "", page.read_text(), flags=re.DOTALL)
    cell = 'from walks import recorded\nclaims.measure("probe.top", float(recorded.record()), rival=0.0)\n'
    page.write_text(f"{text}\n```{{code-cell}} ipython3\n{cell}```\n")
    study = epsilon.Study(toy_book.root)
    assert "probe.top" not in {id for job in study.jobs() for id in job.ids}
    (row,) = [row for row in epsilon.rows(study, {}) if row.function == "walks.unrelated.three"]
    assert (row.epsilon, row.state, row.asked) == (None, epsilon.RECORD, ("probe.top",))


def test_statements_that_stop_as_they_are_give_no_result(book, monkeypatch):
    (job,) = [one for one in epsilon.jobs(book.root) if one.name == "walks.pairs.both | probe"]
    stopped = {"stopped": "NameError: y", "measured": {}, "called": False, "applied": False}
    monkeypatch.setattr(epsilon, "_forked", lambda *_, **__: dict(stopped))
    assert epsilon._measured(book.root, job) == "no result, it stops as it is: NameError: y"
    assert resumable.outcome(book.root, job) is None
    # With the function alone it is the function.
    monkeypatch.setattr(
        epsilon,
        "_forked",
        lambda _, job, factor, keep: (
            dict(stopped) if factor else {"stopped": "", "measured": {id: [1.0, 0.0, None, None] for id in job.ids}}
        ),
    )
    assert epsilon._measured(book.root, job) == "NameError: y"
    found = resumable.outcome(book.root, job)
    assert found is not None
    assert found["stopped"] == "NameError: y"


@dataclasses.dataclass(frozen=True)
class Found:
    steps: int
    value: np.ndarray
    residual: float


def test_the_first_floating_part_is_multiplied_and_nothing_else():
    assert nudge.multiplied((True, 3, "word"), 2.0) == ((True, 3, "word"), False)
    assert nudge.multiplied([1, 2.0, 3.0], 2.0) == ([1, 4.0, 3.0], True)
    assert nudge.multiplied({"n": 1, "x": 2.0, "y": 3.0}, 2.0) == ({"n": 1, "x": 4.0, "y": 3.0}, True)
    found, changed = nudge.multiplied(Found(3, np.ones(2), 1e-9), 2.0)
    assert changed
    assert (found.steps, found.value.tolist(), found.residual) == (3, [2.0, 2.0], 1e-9)
    assert nudge.multiplied(torch.ones(2, dtype=torch.int64), 2.0)[1] is False
    assert nudge.multiplied(torch.ones(2, dtype=torch.float16), 2.0)[0].tolist() == [2.0, 2.0]


def test_all_floating_columns_of_a_table_are_multiplied_and_what_stands_beside_them_stays():
    table = xr.Dataset(
        {"period": ("beta", [4, 0]), "exponents": ("beta", [0.5, 1.0]), "errors": ("beta", [0.1, 0.2])},
        {"beta": [1.0, 2.0]},
        {"steps": 10},
    )
    table.exponents.attrs["units"] = "per step"
    found, changed = nudge.multiplied(table, 2.0)
    assert changed
    expected = table.assign(exponents=2 * table.exponents, errors=2 * table.errors)
    expected.exponents.attrs["units"] = "per step"
    xr.testing.assert_identical(found, expected)
    assert nudge.multiplied(table[["period"]], 2.0)[1] is False


SHAPES = """\
import functools
from typing import NamedTuple


class Pair(NamedTuple):
    a: int
    b: float


def pair():
    return Pair(1, 2.0)


def maker(b):
    def made(x):
        return b * x

    return made


@functools.cache
def cached(x):
    return 2.0 * x


table = {"cached": cached}
other = functools.partial(cached, 3.0)


class Unit:
    def __call__(self, x):
        return 2.0 * x

    @property
    def size(self):
        return 4.0

    @staticmethod
    def still():
        return 5.0
"""


@pytest.mark.parametrize(
    ("name", "asked", "expected"),
    [
        ("pair", "pair()", (1, 4.0)),
        ("maker", "maker(2.0)(3.0)", 12.0),
        ("cached", "table['cached'](3.0)", 12.0),
        ("cached", "(cached.cache_clear(), cached(3.0))[1]", 12.0),
        ("other", "other()", 12.0),
        ("Unit", "Unit()(3.0)", 12.0),
        ("Unit.size", "Unit().size", 8.0),
        ("Unit.still", "Unit.still()", 10.0),
    ],
)
def test_a_function_is_multiplied_wherever_it_is_called_from(tmp_path, monkeypatch, name, asked, expected):
    module = f"shapes_{name.replace('.', '_')}_{len(asked)}"
    (tmp_path / f"{module}.py").write_text(SHAPES)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("sys.meta_path", list(__import__("sys").meta_path))
    monkeypatch.setenv("COMPANION_OUT", str(tmp_path))
    monkeypatch.setattr(nudge, "_seen", {"called": False, "applied": False})
    assert nudge.can_be_called(SHAPES, name)
    nudge.install(module, name, 2.0)
    scope: dict[str, object] = {}
    exec(f"from {module} import *", scope)
    assert eval(asked, scope) == expected
    assert nudge.noted(tmp_path) == {"called": True, "applied": True}
    with pytest.raises(ValueError, match="module: expected one that is not imported yet"):
        nudge.install(module, name, 2.0)


def test_a_record_is_not_called():
    assert not nudge.can_be_called(SHAPES, "Pair")
    assert not nudge.can_be_called(SHAPES, "none")


def test_statements_of_a_claim_are_those_that_it_needs():
    page = calls.Notebook(
        [
            "import jax\nfrom companion import claims\njax.config.update('x', True)",
            "a = 1\nb = 2",
            "rows = []\nrows.append(a)\nprint(b)",
            "claims.measure('one', rows[0])\nclaims.measure('two', b)",
        ]
    )
    assert page.alone("claims.measure", ["one"]) == [
        "import jax",
        "from companion import claims",
        "jax.config.update('x', True)",
        "a = 1",
        "rows = []",
        "rows.append(a)",
        "claims.measure('one', rows[0])",
    ]


def test_statements_of_a_claim_draw_as_many_random_numbers_as_on_the_page():
    page = calls.Notebook(
        [
            "import numpy as np",
            "rng = np.random.default_rng(1)\na = rng.normal()\nb = rng.normal()",
            "c = 3",
            "m('x', b)",
        ]
    )
    assert page.alone("m", ["x"])[1:] == [
        "rng = np.random.default_rng(1)",
        "a = rng.normal()",
        "b = rng.normal()",
        "m('x', b)",
    ]


def test_a_run_that_does_not_end_is_stopped_and_has_no_result(tmp_path):
    # In a process of its own: the run is a fork of it, and pytest has threads.
    code = """
import sys, time
from pathlib import Path
from companion.evidence import epsilon
epsilon.LIMIT_SECONDS = 0.0
epsilon._run = lambda *_: time.sleep(600)
job = epsilon.Job("walks.pairs.both", "probe", ("probe.top",), "walks.pairs", "both", "key")
print(epsilon._forked(Path(sys.argv[1]), job, 1.001, keep=True))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout.strip(), done.returncode) == ("None", 0), done.stderr
