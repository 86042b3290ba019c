"""The live models of the overview and of the comparison compute what the library computes, and answer the keyboard."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from chapters.collectives import figures, response
from chapters.collectives.response import exact
from chapters.comparison import figures as comparison
from experiments.comparison import experiment, summary
from tests.book.live import SAYS

FIELDS = np.array([[0.3, 1.2], [-0.5, -0.1], [0.6, -0.3]])
SCORES = np.array([[1.2, 0.5], [-0.5, 0.9]])


@pytest.fixture(scope="module")
def spins(live_page):
    markup = figures.live_markup(FIELDS, SCORES, beta=1.0, coupling=0.6)
    return live_page("collectives", "collectives-live", markup)


@pytest.fixture(scope="module")
def table(live_page):
    records = {300: summary.summarize(experiment.recorded()), 1500: summary.summarize(experiment.recorded(longer=True))}
    markup = comparison.live_markup(
        records, chances={"digits": 0.1, "recall": 0.125}, quantiles={2: 4.3, 4: 2.776}, start="vanilla"
    )
    return live_page("comparison", "comparison-accuracy", markup)


_WAIT = "const pause = () => new Promise((done) => setTimeout(done, 900));"


def test_mean_spins_and_induced_terms_are_those_of_the_library(spins, ask):
    rng = np.random.default_rng(3)
    cases = [
        {
            "fields": rng.normal(size=(3, 2)).tolist(),
            "beta": beta,
            "coupling": coupling,
            "reads": reads,
            "scores": rng.normal(size=(2, 2)).tolist(),
        }
        for beta, coupling, reads in [(0.1, 0.0, False), (0.7, 0.5, False), (1.0, 0.6, True), (2.0, 1.0, True)]
    ]
    found = ask(
        spins,
        f"const answer = {json.dumps(cases)}.map((c) => Live.models.collectives.response(c.fields, c))",
    )
    three = exact.configurations(3, 2, num_nodes=24)
    for case, answer in zip(cases, found, strict=True):
        h, scores, coupling = np.array(case["fields"]), np.array(case["scores"]), case["coupling"]

        def couplings(h, reads=case["reads"], scores=scores, coupling=coupling):
            read = jax.nn.softmax(h @ scores @ h.T, axis=1)
            return coupling * (read if reads else (1 - jnp.eye(3)) / 2)

        averages = exact.moments(three, couplings(jnp.asarray(h)), h, beta=case["beta"])
        terms = response.of_moments(averages, couplings, h)
        assert np.abs(np.array(answer["means"], float) - terms.expectation).max() < 1e-12
        assert np.abs(np.array(answer["induced"], float) - terms.induced).max() < 1e-12
        assert np.abs(np.array(answer["response"], float) - terms.response).max() < 1e-12


@pytest.mark.parametrize(("width", "dark"), [(1400, False), (390, True)])
def test_the_spins_replace_the_still_picture_and_answer_keys_slider_and_button(spins, width, dark, ask):
    answer = ask(
        spins,
        f"{_WAIT} await pause(); const still = getComputedStyle(document.querySelector('.book-picture')).display;"
        "const tips = [...document.querySelectorAll('.live-point')]; const before = tips[0].getAttribute('aria-label');"
        "tips[0].dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowLeft', shiftKey: true})); await pause();"
        "const after = tips[0].getAttribute('aria-label');"
        "const slider = document.querySelector('.live input'); slider.value = 0;"
        f"slider.dispatchEvent(new Event('input')); await pause(); const apart = {SAYS};"
        "document.querySelector('.live-button').click(); await pause();"
        f"const answer = {{still, before, after, apart, reads: {SAYS}, tips: tips.length,"
        "wide: document.querySelector('.live').scrollWidth, page: document.documentElement.clientWidth}",
        width=width,
        dark=dark,
    )
    assert answer["still"] == "none"
    assert answer["tips"] == 3
    assert answer["before"] != answer["after"]
    assert "follows its own field alone" in answer["apart"]
    assert "The longest response" in answer["reads"]
    assert answer["wide"] <= answer["page"]


def test_the_table_compares_rows_as_the_library_does(table, ask):
    rows = summary.summarize(experiment.recorded())
    pairs = [(a, b) for a in rows for b in rows if a.task == b.task and min(a.accuracies.size, b.accuracies.size) > 1]
    cases = [[a.accuracies.tolist(), b.accuracies.tolist()] for a, b in pairs]
    found = ask(table, f"const answer = {json.dumps(cases)}.map((c) => Live.models.comparison.compare(...c))")
    for (a, b), answer in zip(pairs, found, strict=True):
        gap, error = summary.difference(a, b)
        assert answer["gap"] == pytest.approx(gap, abs=1e-12)
        assert answer["error"] == pytest.approx(error, abs=1e-12)
        assert answer["wins"] == pytest.approx(summary.wins(a, b), abs=1e-12)


@pytest.mark.parametrize(("width", "dark"), [(1400, True), (390, False)])
def test_the_table_changes_task_and_length_and_names_what_is_lost(table, width, dark, ask):
    answer = ask(
        table,
        f"{_WAIT} await pause(); const count = () => document.querySelectorAll('.live-table button').length;"
        f"const press = async (text) => {{ [...document.querySelectorAll('.live button')].find((b) => b.textContent"
        f".startsWith(text)).click(); await pause(); return {{says: {SAYS}, rows: count()}}; }};"
        f"const first = {{says: {SAYS}, rows: count()}}; const recall = await press('recall');"
        "const longer = await press('1500'); const pooled = await press('identity mixer, averaged');"
        "const back = await press('recall'); const numbers = [...document.querySelectorAll('.live-table .number')];"
        "const high = numbers.map((n) => n.clientHeight); const lines = Math.max(...high) / Math.min(...high);"
        "const answer = {first, recall, longer, pooled, back, lines, wide: document.querySelector('.live').scrollWidth,"
        "page: document.documentElement.clientWidth}",
        width=width,
        dark=dark,
    )
    assert answer["first"]["rows"] == answer["recall"]["rows"] == 19
    assert "You give up vanilla on digits, which has 0.918" in answer["first"]["says"]
    assert "on recall, which has 1.000" in answer["recall"]["says"]
    # The longer record is of digits alone.
    assert answer["longer"]["rows"] == 5
    assert "vanilla on digits, which has 0.944" in answer["longer"]["says"]
    assert "better in 0 % of the pairs" in answer["pooled"]["says"]
    assert answer["back"]["rows"] == 19
    assert "on recall" in answer["back"]["says"]
    assert answer["lines"] == pytest.approx(1)
    assert answer["wide"] <= answer["page"]
