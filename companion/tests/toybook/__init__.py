"""A book about random walks, of one small chapter and a library of its own, built with the machinery alone.

It is complete enough to go through the whole pipeline, and small enough for that to take seconds. The fixtures are
there for all tests: ``conftest.py`` of the repository names this package as a plugin.
"""

import io
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from bs4 import BeautifulSoup

from companion import build, new
from companion.declaring import notebooks
from companion.running import execution, freshness
from companion.site import browser

REPOSITORY = Path(__file__).resolve().parents[3]
STATIC = REPOSITORY / "companion" / "src" / "companion" / "static"

CLAIMS = new.text("book/claims/CHAPTER.yml", "probe", "walks")
CLAIM = CLAIMS.removeprefix("format: 2\nclaims:\n")

UNATTEMPTED = """\
- id: probe.sky
  says: The walkers reach the sky.
  source: {key: author2000source, where: section 3}
  kind: statement
  verdict: not-attempted
  because: The page ends <before> it does.
"""

AUDIT = """\
---
jupytext:
  text_representation: {extension: .md, format_name: myst}
kernelspec: {display_name: Python 3, language: python, name: python3}
companion:
  budget: 60
  quick: {points: 5}
---

# The probe, checked

```{audit-report}
```

What the lesson leaves out, which ends at {measured}`probe.top:.1f`, see {numref}`probe-slope` and {eq}`eq:probe-slope`:

$$
y' = 2 x
$$ (eq:probe-slope)

```{code-cell} ipython3
:tags: [parameters]

points = 9
```

```{code-cell} ipython3
import numpy as np
from companion import claims, figures
from matplotlib import pyplot as plt
from walks import pairs

x = np.linspace(0, 1, points)
```

The slope, which the source gives as $x$:

```{code-cell} ipython3
:name: claim-probe-slope
:tags: [hide-input]

slope = (pairs.both(x + 1e-4) - pairs.both(x - 1e-4)) / 2e-4
claims.measure("probe.slope", np.max(abs(slope - 2 * x)), uncertainty=1e-11, rival=np.max(abs(slope - x)))
```

```{code-cell} ipython3
:tags: [hide-input]

figure, ax = plt.subplots(layout="constrained")
ax.plot(x, slope)
figures.publish(
    figure,
    "probe-slope",
    data={"x": x, "slope": slope},
    caption="The slope of the parabola, which is a line.",
    alt="A straight line that rises from zero at the left to two at the right end.",
    source="this book",
)
```

## What the source says, and where it is answered

```{source-items} author2000source
```
"""

TWO_PAGES = """\
format: 2
claims:
- id: probe.top
  was: [probe.summit]
  says: The parabola reaches one.
  source: {key: author2000source, where: section 2}
  quote: It reaches one
  kind: number
  published: 1.0
  reading_error: 0.001
  rival: half of the parabola
  verdict: reproduced

- id: probe.slope
  says: The slope is x.
  source: {key: author2000source, where: section 3, section: The slope}
  quote: It is
  equation: eq:probe-slope
  functions: [walks.pairs.both]
  kind: formula
  route: central differences
  bound: {absolute: 1.0e-9, why: "The square of the step, and rounding over it."}
  printed_tex: y' = x
  corrected_tex: y' = 2 x
  verdict: corrected
  because: A factor <two> is missing.

- id: probe.both
  says: The parabola and its slope are as printed.
  source: {key: author2000source, where: section 3}
  quote: It is
  kind: statement
  parts: [probe.top, probe.slope]
  verdict: partly
  because: The slope is not.

- id: probe.sky
  says: The parabola reaches the sky.
  source: {key: author2000source, where: section 3}
  quote: No walker <comes> down
  kind: statement
  verdict: not-attempted
  because: The page ends <before> it does.

- id: probe.biases
  says: There are no biases.
  retired: True by construction.
"""

SOURCES = """\
- key: author2000source
  version: "2000-01-02"
  address: https://example.org/source
  file: source.md
  status: current
  sections:
    - {number: "0", title: "", sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855}
    - {number: "3", title: The slope, sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855}
"""

ITEMS = """\
- item: The parabola
  kind: equation
  section: "2"
  answered: {claim: probe.top, figure: probe-line, page: "probe#equation-eq-probe-square"}
- item: Its slope, as <printed>
  kind: statement
  section: "3"
  answered: {claim: [probe.slope, probe.summit]}
- item: Its colour
  kind: statement
  section: "3"
  answered: {reason: It has none.}
"""

LIBRARY = {
    "pairs.py": 'from walks.steps import LENGTH\n\n\ndef both(x):\n    """x^2."""\n    return LENGTH * x**2\n',
    "steps.py": "LENGTH = 1.0\n",
    "unrelated.py": 'def three(x):\n    """x^3."""\n    return x**3\n',
}


@dataclass
class ToyBook:
    """The toy book's folder, with the few operations that tests need."""

    root: Path

    def html(self, page: str) -> BeautifulSoup:
        """A page of its site."""
        return BeautifulSoup(self.path(f"_build/html/{page}.html").read_text(encoding="utf-8"), "html.parser")

    def path(self, name: str) -> Path:
        return self.root / name

    @property
    def chapter(self) -> Path:
        return self.root / "notebooks" / "probe.md"

    def edit(self, name: str, old: str, new: str) -> None:
        path = self.root / name
        text = path.read_text()
        assert old in text, f"{name} does not hold {old!r}"
        path.write_text(text.replace(old, new))
        if name.startswith("notebooks/"):
            notebooks.sync(self.root)

    def build(self) -> tuple[build.Outcome, str]:
        """Run the pipeline in this process; returns its outcome and what it printed."""
        with redirect_stdout(io.StringIO()) as printed:
            outcome = build.book(self.root)
        return outcome, printed.getvalue()

    def problems(self) -> list[str]:
        """What a build says of the results that are there, without a run."""
        chapters = {name: notebooks.load(self.root, name) for name in notebooks.names(self.root)}
        results = {name: execution.results_folder(self.root, name) for name in chapters}
        read = {name: execution.read_record(folder) for name, folder in results.items()}
        records = {name: record for name, record in read.items() if record}
        return build._collect(self.root, list(chapters), chapters, records, results, [])

    def stale(self) -> bool:
        """Whether the chapter would run again."""
        key = freshness.key(self.root, notebooks.load(self.root, "probe"))
        return execution.standing(self.root, "probe", key).record is None


def write(folder: Path, files: dict[str, str]) -> Path:
    """Write texts by the names of their files, with the folders that these need; returns ``folder``."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def write_toy_book(root: Path) -> ToyBook:
    """Write the book of ``companion new`` with a library of three modules and a claim that nobody measures."""
    new.write(root, "probe", "walks")
    write(root / "src" / "walks", LIBRARY)
    # No formula is typeset, which would take time.
    write(root / "book", {"_static/mathjax/tex-mml-chtml.js": "", "claims/probe.yml": CLAIMS + UNATTEMPTED})
    for name in ("constraints.txt", "requirements.lock"):
        shutil.copy(REPOSITORY / name, root / name)
    compared = root / "book" / "compared.yml"
    compared.write_text(compared.read_text().replace("as steep", "<as> steep"))
    return ToyBook(root)


def add_audit(book: ToyBook) -> ToyBook:
    """Give the toy chapter an audit and claims of every verdict: the template of a chapter in two pages."""
    files = {"claims/probe.yml": TWO_PAGES, "sources.yml": SOURCES, "items/author2000source.yml": ITEMS}
    write(book.path("book"), files)
    write(book.path("notebooks/audits"), {"probe.md": AUDIT})
    contents = book.path("_toc.yml").read_text()
    beneath = "      - file: notebooks/probe\n        sections:\n          - file: notebooks/audits/probe\n"
    book.path("_toc.yml").write_text(contents.replace("      - file: notebooks/probe\n", beneath))
    notebooks.sync(book.root)
    return book


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder, as somebody; returns what it prints. A test that needs it is skipped where there is none."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    done = subprocess.run(["git", *who, "-C", str(folder), *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def committed(folder: Path) -> None:
    """A repository in which everything is committed that is there."""
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        git(folder, *arguments)


def wait_until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    """Return when `condition()` is true; fail if it is not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def processes_of(root: Path) -> list[str]:
    """Everything that runs for the book in `root`: builds, chapters, kernels, the renderer."""
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


def page_of(path: Path, body: str, *files: str, head: str = "") -> Path:
    """Write a page whose head has style sheets and scripts of the press, by their names."""
    for name in files:
        kind = "style" if name.endswith(".css") else "script"
        head += f"<{kind}>{(STATIC / name).read_text()}</{kind}>"
    path.write_text(f"<!DOCTYPE html><html><head>{head}</head><body><main>{body}</main></body></html>")
    return path


@pytest.fixture(scope="module")
def ask() -> Iterator[Callable[..., Any]]:
    """Runs a script in a page and returns what it calls `answer`: `ask(page, script)`. A module has one browser."""
    if browser.find() is None:
        pytest.skip("no browser is installed")
    with browser.Browser() as one:
        yield lambda page, script, **options: json.loads(
            one.evaluate(page, f"{script}; return JSON.stringify(answer);", **options)
        )


@pytest.fixture
def toy_book(tmp_path: Path) -> ToyBook:
    """A toy book that was never built."""
    return write_toy_book(tmp_path / "book")


@pytest.fixture
def audited(toy_book: ToyBook) -> ToyBook:
    """A toy book whose chapter has a lesson and an audit, and that was never built."""
    return add_audit(toy_book)


Built = tuple[ToyBook, build.Outcome, str]


def build_once(book: ToyBook) -> Built:
    """Build a book, without a problem; returns it with the outcome and what was printed."""
    outcome, printed = book.build()
    assert outcome.problems == [], printed
    return book, outcome, printed


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """A toy book that was built once, for tests to look at and to copy."""
    return build_once(write_toy_book(tmp_path_factory.mktemp("built") / "book"))


@pytest.fixture(scope="session")
def two_pages(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """A toy book whose chapter has a lesson and an audit, built once."""
    return build_once(add_audit(write_toy_book(tmp_path_factory.mktemp("pair") / "book")))


@pytest.fixture
def pair(two_pages: Built, tmp_path: Path) -> ToyBook:
    """A copy of the built book of two pages."""
    return ToyBook(shutil.copytree(two_pages[0].root, tmp_path / "book"))


@pytest.fixture
def copy(built: Built, tmp_path: Path) -> ToyBook:
    """A copy of the built book: its chapter is fresh and its site whole."""
    return ToyBook(shutil.copytree(built[0].root, tmp_path / "book"))
