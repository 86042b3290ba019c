"""The arrows of the title page are those of the library, live and still, and answer mouse and keyboard."""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from chapters import title_page
from spinbook.vector import mean_field
from tests.book.live import Model, Opening

ROOT = Path(__file__).resolve().parents[2]


RIGHT = "press(0, 'ArrowRight', true)"


@pytest.fixture(scope="module")
def markup():
    return title_page.markup()


def opens():
    swayed = re.search(r"(\d+) of them, in orange", title_page.markup())[1]
    return Opening(["attention 1.20"], [f"{swayed} of 53 arrows"], handles=1)


MODEL = Model(
    "title-page",
    lambda: title_page.markup(folder="../_static/live/"),
    {"hand": [-1.7, 0.5], "coupling": 1.2},
    opens,
    lambda: [
        ("now()", "−1.70,"),
        (f"{RIGHT}.then(() => {RIGHT}).then(() => {RIGHT})", "1.30,"),
        ("slide(0, 0)", "1.30,", "Nobody listens"),
        ("click(0)", "−1.70,"),
    ],
    still="",
)


def test_the_title_page_has_three_sentences_and_the_picture_before_anything_else():
    text = (ROOT / "book" / "index.md").read_text()
    before = re.match(r"# .+\n\n([^\n]+)\n\n```\{from-library\} chapters\.title_page\.markup", text)
    assert before
    assert len(re.findall(r"[.!?](?:\s|$)", before[1])) == 3


def test_the_still_picture_has_every_arrow_and_says_what_is_seen(markup):
    shown = title_page.scene()
    alone, together, _ = title_page.answers(shown)
    cosine = (alone * together).sum(axis=1) / np.linalg.norm(alone, axis=1) / np.linalg.norm(together, axis=1)
    swayed = int((np.rad2deg(np.arccos(np.clip(cosine, -1, 1))) > 15).sum())
    assert 5 < swayed < len(shown.places) - 5
    assert markup.count('class="alone"') == len(shown.places)
    assert markup.count('class="swayed"') == swayed
    assert markup.count('class="own"') == len(shown.places) - swayed
    assert f"{len(shown.places)} arrows in rows" in markup
    assert f"{swayed} of them" in markup


def test_the_picture_of_the_readme_is_the_still_one(markup):
    """Counts and words, since another processor may round a coordinate otherwise."""
    readme, still = (ROOT / "README.md").read_text(), (ROOT / "book" / "_static" / "title-page.svg").read_text()
    assert "](book/_static/title-page.svg)" in readme
    drawing = re.search(r"<svg.*?</svg>", markup, flags=re.DOTALL)[0]
    for kind in ("alone", "swayed", "own", "attends"):
        assert still.count(f'class="{kind}"') == drawing.count(f'class="{kind}"')
    assert re.search(r'aria-label="([^"]+)"', still)[1] == re.search(r'aria-label="([^"]+)"', drawing)[1]
    assert still.count("<path ") == drawing.count("<path ")


def test_the_arrows_are_those_of_the_library(each):
    rng = np.random.default_rng(5)
    cases = [
        {"hand": rng.normal(size=2).tolist(), "sharpness": sharpness, "coupling": coupling, "beta": beta}
        for sharpness, coupling, beta in [(0.0, 1.0, 1.0), (1.6, 1.2, 3.0), (4.0, 2.5, 3.0), (1.0, 0.0, 0.2)]
    ]
    found = each(
        cases,
        "{ const x = m.fields(d, c.hand); const J = m.couplings(x, c.sharpness, c.coupling);"
        "return {x, J, means: m.settle(J, x, c.beta, 5000)}; }",
    )
    for case, answer in zip(cases, found, strict=True):
        shown = title_page.scene()._replace(hand=tuple(case["hand"]))
        x = jnp.asarray(np.pad(shown.fields(), ((0, 0), (0, 1))))
        J = case["coupling"] * jax.nn.softmax(case["sharpness"] * x @ x.T, axis=1)
        assert np.abs(x[:, :2] - np.array(answer["x"], dtype=float)).max() < 1e-12
        assert np.abs(J - np.array(answer["J"], dtype=float)).max() < 1e-12
        # The book's own steps from the page's answer stay where it is.
        means = jnp.asarray(np.pad(np.array(answer["means"]), ((0, 0), (0, 1))))
        assert np.abs(mean_field.naive_step(means, J, x, beta=case["beta"]) - means).max() < 1e-12
        solution = mean_field.steady_state(J, x, beta=case["beta"], step=mean_field.naive_step, tol=1e-14)
        assert np.abs(solution.value - means).max() < 1e-12
