"""What tests of live models share: what is asked of every page, and what holds on each."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

LIVE = Path(__file__).resolve().parents[2] / "book" / "_static" / "live"
WAIT = "const pause = () => new Promise((done) => setTimeout(done, 1500));"
SAYS = "document.querySelector('.live-says').textContent"
NAMES = (
    "const names = [...document.querySelectorAll('.live button, .live canvas')]"
    ".map((node) => node.getAttribute('aria-label') || node.textContent);"
    "const seen = [...document.querySelectorAll('.book-picture, figure img')].filter((node) => node.checkVisibility());"
)
"""Sets the names of all controls, and what is seen of the still picture."""


def carried(markup: str, model: str, id: str) -> Any:
    """The numbers that the markup carries for a model, all of whose scripts exist."""
    data = re.search(rf'<script type="application/json" id="{id}-data">(.*?)</script>', markup)
    scripts = re.findall(r'src="\.\./_static/live/([^"]+)" defer', markup)
    assert scripts == ["kernel.js", f"{model}.js"]
    assert all((LIVE / script).is_file() for script in scripts)
    assert data
    return json.loads(data[1])


def opened(page: Path, ask: Callable[..., Any], *, dark: bool, wait: str = WAIT) -> Any:
    """Sliders and words of a model that has replaced its still picture, and each of whose controls has a name."""
    answer = ask(
        page,
        f"{wait} await pause(); {NAMES}"
        "const sliders = [...document.querySelectorAll('.live input')].map((n) => n.getAttribute('aria-valuetext'));"
        f"const answer = {{names, seen: seen.length, sliders, says: {SAYS}}}",
        dark=dark,
    )
    named(answer)
    return answer


def named(answer: Any) -> None:
    """Whether the still picture is gone, and every control has a name."""
    assert answer["seen"] == 0
    assert all(name and len(name) > 3 for name in answer["names"])


@pytest.mark.parametrize("width", [1400, 390])
def test_the_model_fits_the_window(page, width, ask):
    """Of every module that imports it, on the module's own page."""
    answer = ask(
        page,
        f"{WAIT} await pause(); const wide = document.querySelector('.live').scrollWidth;"
        "const answer = {wide, page: document.documentElement.clientWidth}",
        width=width,
    )
    assert answer["wide"] <= answer["page"]
