"""A book about random walks, of one small chapter and a library of its own, built with the machinery alone.

It is complete enough to go through the whole pipeline, and small enough for that to take seconds.
"""

import io
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
import yaml

from companion.pipeline import build, citation, notebooks

REPOSITORY = Path(__file__).resolve().parents[2]

CHAPTER = """\
---
jupytext:
  text_representation: {extension: .md, format_name: myst}
kernelspec: {display_name: Python 3, language: python, name: python3}
companion:
  summary: Two walkers.
  source: author2000source
  thumbnail: probe-line
  prerequisites: nothing
  budget: 60
  quick: {size: 3}
---

# A probe

Two independent walkers {cite:p}`author2000source` who step to the right with probability $x$ both do so with

$$
y = x^2
$$ (eq:probe-square)

```{code-cell} ipython3
:tags: [parameters]

size = 20
```

```{code-cell} ipython3
import numpy as np
from companion import claims, figures
from companion.numbers import glue
from matplotlib import pyplot as plt
from walks import pairs
```

The largest value is {glue:text}`probe-max:.2f`, see {numref}`probe-line` and {eq}`eq:probe-square`.

```{code-cell} ipython3
x = np.linspace(0, 1, size)
y = pairs.both(x)
glue("probe-max", y.max())
claims.measure("probe.top", y.max(), uncertainty=1e-9)
```

```{code-cell} ipython3
:tags: [hide-input]

figure, ax = plt.subplots()
ax.plot(x, y)
figures.publish(
    figure,
    "probe-line",
    data={"x": x, "y": y},
    caption=r"Two walkers. It shows $x^2$ as in {eq}`eq:probe-square`.",
    alt="A convex curve that rises from zero at the left to one at the right end.",
    source="Figure 1 of Author (2000)",
)
```
"""

CLAIMS = """\
- id: probe.top
  says: Walkers who always step to the right do so together.
  source: {key: author2000source, where: section 2}
  published: 1.0
  reading_error: 0.001
  verdict: reproduced
"""

UNATTEMPTED = """\
- id: probe.sky
  says: The walkers reach the sky.
  source: {key: author2000source, where: section 3}
  verdict: not-attempted
  because: The page ends <before> it does.
"""

COMPARED = """\
probe-line:
  agrees: It is <as> steep.
  differs: Ours is longer.
  claims: [probe.top]
"""

REFERENCES = """\
@misc{author2000source,
  author = {Author, Ann},
  title = {A source},
  year = {2000},
  howpublished = {Nowhere},
  keywords = {source},
}
"""

PAGES = {
    "index": "# A book\n\n```{chapter-cards}\n```\n",
    "claims": "# Claims\n\n```{claims-ledger}\n```\n",
    "corrections": "# Corrected\n\n```{corrections} corrected\n```\n\n"
    "```{corrections} not-attempted\n```\n\nFrom {siteurl}`claims.json`.\n",
    "gallery": "# Gallery\n\n```{figure-gallery}\n```\n",
    "status": "# Status\n\n```{chapter-status}\n```\n",
    "references": "# References\n\n```{bibliography}\n```\n",
}

CONTENTS = """\
format: jb-book
root: index
parts:
  - caption: Chapters
    chapters:
      - file: notebooks/probe
  - caption: The record
    chapters:
      - file: book/claims
      - file: book/corrections
      - file: book/gallery
      - file: book/status
      - file: book/references
"""

LIBRARY = {
    "__init__": '"""Random walks."""\n\n__version__ = "0.1.0.dev0"\n',
    "pairs": 'from walks.steps import LENGTH\n\n\ndef both(x):\n    """x^2."""\n    return LENGTH * x**2\n',
    "steps": "LENGTH = 1.0\n",
    "unrelated": 'def three(x):\n    """x^3."""\n    return x**3\n',
}


def config() -> str:
    """The configuration of this repository with another title, author, address and library, and no style."""
    facts = yaml.safe_load((REPOSITORY / "_config.yml").read_text())
    facts |= {"title": "Random Walks", "author": "The Walkers"}
    facts["repository"]["url"] = "https://github.com/random-walkers/walks"
    facts["companion"] = {"library": "walks", "versions": ["numpy", "matplotlib"]}
    return yaml.safe_dump(facts, sort_keys=False)


@dataclass
class ToyBook:
    """The toy book's folder, with the few operations that tests need."""

    root: Path

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
        printed = io.StringIO()
        outcome = build.book(self.root, out=printed)
        return outcome, printed.getvalue()

    def stale(self) -> bool:
        """Whether the chapter would run again."""
        from companion.pipeline import execution, freshness

        key = freshness.key(self.root, notebooks.load(self.root, "probe"))
        return execution.finished(self.root, "probe", key) is None


def write_toy_book(root: Path) -> ToyBook:
    """Write the toy book; the machinery is the installed one."""
    for folder in ("notebooks", "book/claims", "book/_static/mathjax", "src/walks"):
        (root / folder).mkdir(parents=True)
    for name, text in LIBRARY.items():
        (root / "src" / "walks" / f"{name}.py").write_text(text)
    (root / "book" / "_static" / "mathjax" / "tex-mml-chtml.js").write_text("")
    (root / "_config.yml").write_text(config())
    for name in ("constraints.txt", "requirements.lock"):
        shutil.copy(REPOSITORY / name, root / name)
    (root / "_toc.yml").write_text(CONTENTS)
    (root / "notebooks" / "probe.md").write_text(CHAPTER)
    (root / "book" / "claims" / "probe.yml").write_text(CLAIMS + UNATTEMPTED)
    (root / "book" / "references.bib").write_text(REFERENCES)
    (root / "book" / "compared.yml").write_text(COMPARED)
    for name, text in PAGES.items():
        (root / "book" / f"{name}.md").write_text(text)
    notebooks.sync(root)
    citation.sync(root)
    return ToyBook(root)


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


@pytest.fixture
def toy_book(tmp_path: Path) -> ToyBook:
    """A toy book that was never built."""
    return write_toy_book(tmp_path / "book")


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[ToyBook, build.Outcome, str]:
    """A toy book that was built once, for tests to look at and to copy."""
    book = write_toy_book(tmp_path_factory.mktemp("built") / "book")
    outcome, printed = book.build()
    assert outcome.problems == [], printed
    return book, outcome, printed


@pytest.fixture
def copy(built: tuple[ToyBook, build.Outcome, str], tmp_path: Path) -> ToyBook:
    """A copy of the built book: its chapter is fresh and its site whole."""
    shutil.copytree(built[0].root, tmp_path / "book")
    return ToyBook(tmp_path / "book")
