"""The live table of comparison: rows are compared as the library does, and task, length and row can be changed."""

import math

import pytest

from chapters.live import comparison as live
from experiments import records
from experiments.comparison import summary
from tests.book.live import SAYS, WAIT, Model, Opening

ROWS = summary.summarize(records.of_book("comparison"))
MODEL = Model(
    "comparison",
    lambda: live.markup(task="MNIST", module="vanilla"),
    {"task": "MNIST", "start": "vanilla"},
    lambda: Opening([], ["You give up vanilla on MNIST, which has 0.985"]),
)


def test_the_table_compares_rows_as_the_library_does(each):
    pairs = [(a, b) for a in ROWS for b in ROWS if a.task == b.task and min(a.scores.size, b.scores.size) > 1]
    cases = [[a.scores.tolist(), b.scores.tolist()] for a, b in pairs]
    for (a, b), answer in zip(pairs, each(cases, "m.compare(...c)"), strict=True):
        error = math.hypot(a.standard_error, b.standard_error)
        assert answer["gap"] == pytest.approx(a.score - b.score, abs=1e-12)
        assert answer["error"] == pytest.approx(error, abs=1e-12)
        assert answer["wins"] == pytest.approx(summary.wins(a, b), abs=1e-12)


@pytest.mark.parametrize("width", [1400, 390])
def test_the_table_changes_task_and_length_and_names_what_is_lost(page, width, ask):
    answer = ask(
        page,
        f"{WAIT} const count = () => document.querySelectorAll('.live-table button').length;"
        f"const choose = async (text) => {{ [...document.querySelectorAll('.live button')].find((b) => b.textContent"
        f".startsWith(text)).click(); await pause(); return {{says: {SAYS}, rows: count()}}; }};"
        "const first = count(); const recall = await choose('recall');"
        "const longer = await choose('1,500'); const pooled = await choose('identity mixer, averaged');"
        "const back = await choose('recall'); const numbers = [...document.querySelectorAll('.live-table .number')];"
        "const high = numbers.filter((n) => n.textContent).map((n) => n.clientHeight);"
        "const lines = Math.max(...high) / Math.min(...high);"
        "const answer = {first, recall, longer, pooled, back, lines,"
        "wide: document.querySelector('.live').scrollWidth, page: document.documentElement.clientWidth}",
        width=width,
    )
    assert (answer["first"], answer["recall"]["rows"]) == (7, 19)
    assert "on recall, which has 1.000" in answer["recall"]["says"]
    # The longer record is of digits alone.
    assert answer["longer"]["rows"] == 5
    assert "vanilla on digits, which has 0.944" in answer["longer"]["says"]
    assert "better in 0 % of the pairs" in answer["pooled"]["says"]
    assert answer["back"]["rows"] == 19
    assert "on recall" in answer["back"]["says"]
    assert answer["lines"] < 1.5
    assert answer["wide"] <= answer["page"]
