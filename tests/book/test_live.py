"""Every live model carries its numbers, replaces its still picture, names its controls and fits the window.

What a model computes, and how it answers, is tested in a module of its own, `test_live_NAME`.
"""

import re
from importlib import import_module
from pathlib import Path

import pytest

from tests.book.live import LIVE, SAYS, WAIT, carried

SCRIPTS = sorted(path.stem for path in LIVE.glob("*.js"))
MODULES = [import_module(f"tests.book.{path.stem}") for path in sorted(Path(__file__).parent.glob("test_live_*.py"))]
MODELS = [module.MODEL for module in MODULES]
HEAVIEST = 15_000
"""Most bytes of the shared kernel, and of one model."""

every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)


def test_every_script_is_that_of_a_model_that_is_tested():
    assert sorted([*(model.name for model in MODELS), "kernel"]) == SCRIPTS


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_light_and_loads_nothing(name):
    text = (LIVE / f"{name}.js").read_text()
    assert len(text.encode()) <= HEAVIEST
    assert not re.search(r"https?:|fetch\(|import\s|XMLHttpRequest|eval\(|innerHTML", text)


@every_model
def test_the_markup_carries_the_numbers_and_names_scripts_that_exist(model):
    content = carried(model)
    assert {name: content[name] for name in model.carries} == model.carries


@every_model
@pytest.mark.parametrize(("width", "dark"), [(1400, False), (390, True)])
def test_the_model_replaces_the_still_picture_names_its_controls_and_fits_the_window(page_of, model, width, dark, ask):
    answer = ask(
        page_of(model),
        f"{WAIT} const answer = {{"
        "seen: all('.book-picture, figure img').filter((node) => node.checkVisibility()).length,"
        "names: all('.live button, .live canvas').map((n) => n.getAttribute('aria-label') || n.textContent),"
        "sliders: all('.live input').map((node) => node.getAttribute('aria-valuetext')),"
        "handles: all('.live-point').map((node) => node.clientWidth),"
        f"says: {SAYS}, wide: document.querySelector('.live').scrollWidth,"
        "page: document.documentElement.clientWidth}",
        width=width,
        dark=dark,
    )
    expected = model.opens()
    assert answer["seen"] == 0
    assert all(name and len(name) > 3 for name in answer["names"])
    assert answer["sliders"] == expected.sliders
    assert all(words in answer["says"] for words in expected.says), answer["says"]
    assert sum("arrow keys move it" in name for name in answer["names"]) == expected.handles
    assert len(answer["handles"]) >= expected.handles
    assert min(answer["handles"], default=24) >= 24
    assert answer["wide"] <= answer["page"]


@pytest.mark.parametrize("model", [model for model in MODELS if model.answers()], ids=lambda model: model.name)
def test_the_model_answers_buttons_sliders_and_keys(page_of, model, ask):
    answers = [("now()",), *model.answers()]
    script = "".join(f"answer.push(await {act});" for act, *_ in answers)
    found = ask(page_of(model), f"{WAIT} const answer = []; {script}")
    for (act, *words), before, said in zip(answers[1:], found, found[1:], strict=False):
        assert said != before or act == "now()", act
        assert [one for one in words if (one.removeprefix("!") in said) == one.startswith("!")] == [], (act, said)
