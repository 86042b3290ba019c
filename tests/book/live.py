"""What tests of live models share: a model on a page of its own, and what holds of each when it opens."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

LIVE = Path(__file__).resolve().parents[2] / "book" / "_static" / "live"
SAYS = "document.querySelector('.live-says').textContent"
WAIT = f"""
const pause = () => new Promise((done) => setTimeout(done, 2500));
const all = (nodes) => [...document.querySelectorAll(nodes)];
const now = async () => {{ await pause(); return [{SAYS}, ...all('.live-point').map((one) => one.getAttribute(
    'aria-label')), all('.live-button').map((one) => one.getAttribute('aria-pressed'))].join(' | '); }};
const slide = (k, value) => {{ const one = all('.live input')[k]; one.value = one[value] ?? value;
    one.dispatchEvent(new Event('input', {{bubbles: true}})); return now(); }};
const click = (k) => {{ (all('.live-button')[k] ?? all('.live button').find((one) => one.textContent.includes(k)))
    .click(); return now(); }};
const press = (k, key, shiftKey = false) => {{ all('.live-point').at(k).dispatchEvent(
    new KeyboardEvent('keydown', {{key, shiftKey, bubbles: true}})); return now(); }};
await pause();"""
"""Functions of a script in a page: each acts, and returns what is then said, names of handles, and pressed buttons."""


class Opening(NamedTuple):
    """What sliders and words of a model say before anything is moved, and how many handles the arrow keys move."""

    sliders: list[str]
    says: list[str]
    handles: int = 0


@dataclass(frozen=True, eq=False)
class Model:
    """A live model as its chapter writes it: the numbers that it ``carries``, how it ``opens``, and how it ``answers``.

    An answer is something that is done, and words that are then said; after "!" words that are not.
    """

    name: str
    writes: Callable[[], str]
    carries: dict[str, Any]
    opens: Callable[[], Opening]
    answers: Callable[[], list[tuple[str, ...]]] = list
    still: str = '<img alt="still" src="data:,">'
    """The picture in the place of the model; "" where the markup has one."""

    @cached_property
    def markup(self) -> str:
        """Written when the first test asks: every worker collects all tests."""
        return self.writes()

    @property
    def id(self) -> str:
        return f"{self.name}-live"


def carried(model: Model) -> Any:
    """The numbers that the markup of a model carries, all of whose scripts exist."""
    data = re.search(rf'<script type="application/json" id="{model.id}-data">(.*?)</script>', model.markup)
    scripts = re.findall(r'src="\.\./_static/live/([^"]+)" defer', model.markup)
    assert scripts == ["kernel.js", f"{model.name}.js"]
    assert all((LIVE / script).is_file() for script in scripts)
    assert data
    return json.loads(data[1])
