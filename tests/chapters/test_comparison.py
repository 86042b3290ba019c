"""Each figure of the comparison shows the numbers that it is given, at the row of their module."""

from chapters.comparison import figures as plot
from experiments.comparison import summary
from tests.experiments.comparison.test_summary import made_row, made_run

PHYSICS = {
    "steps_before": 4.0,
    "steps_after": 6.0,
    "contraction_before": 0.4,
    "contraction_after": 0.5,
    "production_before": 0.1,
    "production_after": 2.0,
}


def _runs(*accuracies, **values):
    return [made_run(accuracy=a, time_ratio=2.0, memory_ratio=3.0, **values) for a in accuracies]


def _spins(task, runs):
    return made_row("spins", task, runs=runs, family="spin transformer")


SUMMARIES = summary.summarize(
    {
        "rows": [
            made_row("vanilla", "digits", runs=_runs(0.8, 0.9)),
            made_row("vanilla", "recall", runs=_runs(1.0, 1.0)),
            _spins("digits", _runs(0.5, 0.6, **PHYSICS)),
            _spins("recall", _runs(0.0, failure="diverged")),
        ]
    }
)


def _points(ax):
    return {(float(x), float(y)) for line in ax.lines for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)}


def test_cost_shows_time_memory_and_accuracy_against_time():
    time, memory, digits, recall = plot.cost(SUMMARIES).axes
    assert (2.0, 1.13) in _points(time)
    assert (3.0, 0.87) in _points(memory)
    assert {(2.0, 0.85), (2.0, 0.55)} <= {(x, round(y, 6)) for x, y in _points(digits)}
    assert _points(recall) == {(2.0, 1.0)}


def test_diagnostics_go_from_before_to_after_and_leave_out_modules_without_any():
    figure = plot.diagnostics(SUMMARIES)
    steps, contraction, production = figure.axes[:3]
    assert [label.get_text() for label in steps.get_yticklabels()] == ["spins"]
    assert {(4.0, 0.17), (6.0, 0.17)} <= _points(steps)
    assert {(0.4, 0.17), (0.5, 0.17)} <= _points(contraction)
    assert {(0.1, 0.17), (2.0, 0.17)} <= _points(production)


def test_whole_block_keeps_the_order_it_is_given():
    (ax,) = plot.whole_block(SUMMARIES, ["spins", "vanilla"]).axes
    assert [label.get_text() for label in ax.get_yticklabels()] == ["spins", "vanilla"]
    assert {(0.85, 0.15), (1.0, -0.15), (0.55, 1.15)} <= {(round(x, 6), y) for x, y in _points(ax)}
