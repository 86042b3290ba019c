"""A book about random walks: a lesson with checks, an audit, and a library of three small modules.

It goes through the whole pipeline in seconds. ``conftest.py`` of the repository names this package as a plugin.
"""

import io
import os
import shutil
import time
from collections.abc import Callable
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import psutil
import pytest

from companion import pages
from companion.run import build, execute, key
from companion.site import render

REPOSITORY = Path(__file__).resolve().parents[3]
LESSON, AUDIT, CLAIMS = "notebooks/probe.md", "notebooks/audits/probe.md", "book/claims/probe.yml"
CHECKS = "book/checks/probe.py"

FRONT = """\
---
jupytext:
  text_representation: {extension: .md, format_name: myst}
kernelspec: {display_name: Python 3, language: python, name: python3}
companion:
"""

FILES = {
    "_toc.yml": """\
format: jb-book
root: index
parts:
  - caption: Chapters
    numbered: 1
    chapters:
      - file: notebooks/probe
        sections:
          - file: notebooks/audits/probe
  - caption: The record
    chapters:
      - file: book/claims
      - file: book/references
""",
    "book/index.md": "# Random walks\n\n```{chapter-cards}\n```\n",
    "book/claims.md": "# Claims\n\n```{claims-ledger}\n```\n\n```{chapter-status}\n```\n\n```{figure-gallery}\n```\n",
    "book/references.md": "# References\n\n```{bibliography}\n```\n",
    "book/references.bib": """\
@misc{author2000source,
  author = {Author, Ann},
  title = {A source},
  year = {2000},
  keywords = {source},
}
""",
    CLAIMS: """\
claims:
- id: probe.top
  says: The parabola reaches one.
  kind: number
  source: {key: author2000source, where: section 2, quote: It reaches one}
  expects: {printed: 1.0, within: 0.001}
  rival: half of the parabola
  verdict: reproduced

- id: probe.slope
  says: The slope is x.
  kind: formula
  source: {key: author2000source, where: section 3, quote: It is}
  equation: [eq:probe-slope]
  functions: [walks.pairs.both]
  expects: {accuracy: 1.0e-9}
  rival: the slope that is printed
  tex: {printed: y' = x, corrected: y' = 2 x}
  verdict: corrected
  because: The route is central differences. A factor <two> is missing.

- id: probe.end
  says: The slope ends at two.
  kind: own
  expects: {above: 1.9}
  rival: the slope that is printed
  verdict: result
  because: It was measured.
""",
    CHECKS: """\
from companion.claims import Measurement
from walks import pairs


def top(x, y):
    return Measurement(y.max(), 1e-9, rival=pairs.both(x / 2).max())


def test_half(middle):
    assert middle == 0.25
""",
    LESSON: FRONT
    + """\
  summary: Two walkers.
  source: author2000source
  prerequisites: nothing
  budget: 60
  quick: {size: 5}
---

# Two walkers

Two independent walkers {cite:p}`author2000source` who step to the right with probability $x$ both do so with

$$
y = x^2
$$ (eq:probe-square)

```{code-cell} ipython3
import matplotlib.pyplot as plt
import numpy as np
from walks import pairs
```

```{code-cell} ipython3
:tags: [parameters]

size = 20
```

```{code-cell} ipython3
x = np.linspace(0, 1, size)
y, middle = pairs.both(x), pairs.both(0.5)
```

Of {eval}`size` values the largest is {eval}`f"{y.max():.2f}"`, see {numref}`probe-line` {checked}`probe.slope`.

```{code-cell} ipython3
---
mystnb:
  figure:
    name: probe-line
    caption: Two walkers. It shows {eval}`size` points of $x^2$ as in {eq}`eq:probe-square`.
  image:
    alt: A convex curve that rises from zero at the left to {eval}`f"{y[-1]:.1f}"` at the right end.
---
fig, ax = plt.subplots()
ax.plot(x, y, label="both")
ax.legend();
```

The end.
""",
    AUDIT: FRONT
    + """\
  budget: 60
  quick: {points: 5}
---

# The probe, checked

The lesson ends at {measured}`probe.top:.1f`. The slope is in {numref}`probe-slope`:

$$
y' = 2 x
$$ (eq:probe-slope)

```{code-cell} ipython3
:tags: [parameters]

points = 9
```

```{code-cell} ipython3
import numpy as np
from matplotlib import pyplot as plt
from walks import pairs

x = np.linspace(0, 1, points)
slope = (pairs.both(x + 1e-4) - pairs.both(x - 1e-4)) / 2e-4
```

```{code-cell} ipython3
:claim: probe.slope

{"measured": np.max(abs(slope - 2 * x)), "uncertainty": 1e-11, "rival": np.max(abs(slope - x))}
```

```{code-cell} ipython3
:claim: probe.end

{"measured": slope[-1], "rival": x[-1]}
```

```{code-cell} ipython3
---
mystnb:
  figure:
    name: probe-slope
    caption: The slope of the parabola, which is a line.
  image:
    alt: A straight line that rises from zero at the left to two at the right end.
tags: [hide-cell]
---
figure, ax = plt.subplots()
ax.plot(x, slope, label="slope");
```
""",
    "src/walks/__init__.py": '"""Random walks."""\n\n__version__ = "0.1.0.dev0"\n',
    "src/walks/pairs.py": "from walks.steps import LENGTH\n\n\ndef both(x):\n    return LENGTH * x**2\n",
    "src/walks/steps.py": "LENGTH = 1.0\n",
    "src/walks/unrelated.py": 'def three(x):\n    """x^3."""\n    return x**3\n',
    "requirements.lock": "numpy==2.0.2\n",
    "constraints.txt": "",
    "LICENSE-CC-BY-4.0": "",
}


@dataclass
class ToyBook:
    """The toy book's folder, with the few operations that tests need."""

    root: Path

    def path(self, name: str) -> Path:
        return self.root / name

    def edit(self, name: str, old: str, new: str) -> None:
        text = self.path(name).read_text()
        assert old in text, f"{name} does not hold {old!r}"
        self.path(name).write_text(text.replace(old, new, 1))

    def cell(self, code: str, page: str = LESSON) -> None:
        """Add a code cell to the end of a page."""
        self.path(page).write_text(f"{self.path(page).read_text()}\n```{{code-cell}} ipython3\n{code}\n```\n")

    def key(self, page: str = "probe") -> str:
        return key.key(self.root, pages.load(self.root, page))

    def run(self, page: str = "probe", **options: object) -> execute.Failure | None:
        """Run a page in this process into ``_build/try``."""
        return execute.run(self.root, pages.load(self.root, page), self.path("_build/try"), **options)

    def build(self, only: str | None = None, *, site: bool = False) -> tuple[build.Outcome, str]:
        """Build the book in this process, with its site or without; returns the outcome and what was printed."""
        with ExitStack() as stack:
            printed = stack.enter_context(redirect_stdout(io.StringIO()))
            if not site:
                stack.enter_context(mock.patch.object(render, "render", return_value=render.Site([], rendered=True)))
                stack.enter_context(mock.patch.object(render, "stands", return_value=True))
            return build.book(self.root, only), printed.getvalue()


def write_toy_book(root: Path) -> ToyBook:
    """Write the book; no formula is typeset, which would take time."""
    config = (REPOSITORY / "_config.yml").read_text()
    config = config.replace("title: Transformers as Spin Systems", "title: Random Walks")
    config = config.replace("library: spinbook", "library: walks")
    config = (
        config.split("    # What the annotations and docstrings")[0]
        + config[config.index("    # An entry of the ref") :]
    )
    for name, text in {
        **FILES,
        "_config.yml": config,
        "book/_static/mathjax/tex-mml-chtml.js": "",
        "book/moved/old.html": "",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return ToyBook(root)


def wait_until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    """Return when `condition()` is true; fail if it is not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def processes_of(root: Path) -> list[str]:
    """Everything that runs for the book in `root`: builds, pages, kernels, the renderer."""
    found = []
    for process in psutil.process_iter():
        try:
            words = " ".join(process.cmdline())
            # A kernel has the book in its environment only.
            mine = str(root) in words or process.environ().get("COMPANION_ROOT") == str(root)
            if process.status() != psutil.STATUS_ZOMBIE and process.pid != os.getpid() and mine:
                found.append(f"{process.pid}: {words}")
        except psutil.Error:
            continue
    return found


@pytest.fixture
def toy_book(tmp_path: Path) -> ToyBook:
    """A toy book that was never built."""
    return write_toy_book(tmp_path / "book")


ODD = "book: [a-z] of 'walks' & $HOME é%20 #1"
"""The name of a folder that nothing may take for a pattern, a list of folders, an address or words of a shell."""


@pytest.fixture(scope="session")
def ran(tmp_path_factory: pytest.TempPathFactory) -> ToyBook:
    """A toy book whose pages ran once, for tests to look at; it has no site."""
    book = write_toy_book(tmp_path_factory.mktemp("ran") / ODD)
    place = tmp_path_factory.mktemp("ran") / ODD
    place.mkdir()
    with mock.patch.dict(os.environ, {"TMPDIR": str(place)}):
        outcome, printed = book.build()
    assert outcome.problems == [], printed
    return book


@pytest.fixture
def copy(ran: ToyBook, tmp_path: Path) -> ToyBook:
    """A copy of the book whose pages ran once."""
    return ToyBook(shutil.copytree(ran.root, tmp_path / "book"))


@pytest.fixture(scope="session")
def built(ran: ToyBook, tmp_path_factory: pytest.TempPathFactory) -> ToyBook:
    """A toy book with its site, built once, for tests to look at."""
    book = ToyBook(shutil.copytree(ran.root, tmp_path_factory.mktemp("built") / ODD))
    outcome, printed = book.build(site=True)
    assert outcome.problems == [], printed
    return book
