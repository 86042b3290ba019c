"""What tests of live models share: a model on a page of its own, and what holds of each when it opens."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

LIVE = Path(__file__).resolve().parents[2] / "book" / "_static" / "live"
WAIT = "const pause = () => new Promise((done) => setTimeout(done, 1500));"
SAYS = "document.querySelector('.live-says').textContent"


class Opening(NamedTuple):
    """What sliders and words of a model say before anything is moved, and how many handles the arrow keys move."""

    sliders: list[str]
    says: list[str]
    handles: int = 0


@dataclass(frozen=True, eq=False)
class Model:
    """A live model as its chapter writes it: the numbers that it ``carries``, and how it ``opens``."""

    name: str
    markup: str
    carries: dict[str, Any]
    opens: Callable[[], Opening]
    block: str = "live"
    still: str = '<img alt="still" src="data:,">'
    wait: str = WAIT

    @property
    def id(self) -> str:
        return f"{self.name}-{self.block}"


def carried(model: Model) -> Any:
    """The numbers that the markup of a model carries, all of whose scripts exist."""
    data = re.search(rf'<script type="application/json" id="{model.id}-data">(.*?)</script>', model.markup)
    scripts = re.findall(r'src="\.\./_static/live/([^"]+)" defer', model.markup)
    assert scripts == ["kernel.js", f"{model.name}.js"]
    assert all((LIVE / script).is_file() for script in scripts)
    assert data
    return json.loads(data[1])
