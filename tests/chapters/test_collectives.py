"""Each figure of the chapter shows the numbers that it is given, in order, and nothing that it made up."""

import re
from pathlib import Path

import numpy as np
import pytest

from chapters.collectives import figures as plot
from companion import pages as pages_of_the_book
from tests.chapters.drawings import shows, written

X = np.array([0.5, 1.0, 2.0, 4.0])


def test_approximations_name_the_slopes_of_their_lines():
    means, pairs = {"naive": X**2, "TAP": X**3}, {"naive": X, "TAP": X**2}
    saddle = {"mean spins": 2 / X, "induced term": 1 / X}
    slopes = {"naive": (2.0, 1.0), "TAP": (3.0, 2.0)}
    figure = plot.approximations(X, means, pairs, dims=X, saddle=saddle, slopes=slopes)
    assert shows(figure, means, pairs, saddle)
    assert {"naive: slope 2.0", "TAP: slope 3.0", "naive: slope 1.0", "induced term"} <= set(written(figure))


def test_landscape_draws_every_path_from_start_to_end():
    axis = np.linspace(-1, 1, 15)
    bowl = axis[:, None] ** 2 + axis**2
    path = np.linspace([[0.9, 0.8], [-0.5, 0.4]], [[0.0, 0.0], [0.1, 0.1]], 6)
    figure = plot.landscape(
        axis, [bowl, 2 * bowl], [path, path / 2], keys=np.zeros((1, 2)), separations=X, shares={"a": X / 8, "b": X / 9}
    )
    assert shows(figure, [p[:, k, 1] for p in (path, path / 2) for k in range(2)], path[-1, :, 1], X / 8)


def test_terms_show_each_part_in_its_colour():
    names = ("residual", "token mixing", "channel mixing")
    fields = {name: X**k / 10 for k, name in enumerate(names)}
    figure = plot.terms(X, fields, lengths=X, gains={"g": X / 5}, reactions=(X, X / 100))
    colours = {line.get_color() for line in figure.axes[0].lines}
    assert colours == {plot.TERMS[name] for name in names}
    assert shows(figure, fields, X / 5, X / 100)


def test_extensivity_keeps_the_labels_of_close_curves_apart():
    figure = plot.extensivity(X, {"up": X, "one": X**0, "nearly": 1.1 * X**0})
    assert shows(figure, X)
    shifts = {text.get_text(): text.xyann[1] for text in figure.axes[0].texts}
    assert shifts["one"] < 0 < shifts["nearly"]
    assert shifts["up"] == 0


def test_feed_forward_draws_bars_and_the_bound():
    figure = plot.feed_forward(
        X, X / 2, explained={"own": 0.5, "all": 0.9}, bound=(0.6, 0.01), strengths=X, local=np.stack([X, 3 * X]) / 20
    )
    assert [patch.get_width() for patch in figure.axes[1].containers[0]] == [0.5, 0.9]
    assert figure.axes[1].lines[0].get_xdata() == [0.6, 0.6]
    assert shows(figure, X / 10)


def test_training_and_its_frames_show_the_same_matrices():
    rng = np.random.default_rng(0)
    couplings, responses = rng.normal(size=(2, 4, 3, 3))
    common = {"tops": (1.0, 2.0), "updates": np.arange(4), "losses": X[::-1], "levels": {"best": 0.2}}
    strip = plot.training(couplings, responses, chosen=(0, 1, 3), **common)
    images = [np.asarray(image.get_array()) for ax in strip.axes for image in ax.images]
    assert all(
        any(np.array_equal(m, image) for image in images) for k in (0, 1, 3) for m in (couplings[k], responses[k])
    )
    frame = plot.training_frame(couplings[1], responses[1], record=1, **common)
    assert np.array_equal(frame.axes[0].images[0].get_array(), couplings[1])
    assert frame.axes[1].images[0].get_clim() == (-2.0, 2.0)
    assert shows(frame, X[::-1][1:2])


def test_stack_has_a_dashed_and_a_solid_line_for_each_temperature():
    figure = plot.stack(X, {"a": X, "b": 2 * X}, {"a": X**2, "b": 2 * X**2}, {"a": X / 5, "b": X / 6})
    drawn = [(line.get_linestyle(), line.get_ydata().tolist()) for line in figure.axes[0].lines]
    assert ("--", X.tolist()) in drawn
    assert ("-", (X**2).tolist()) in drawn
    assert shows(figure, X / 6)


ROOT = Path(__file__).resolve().parents[2]


def test_the_road_has_every_lesson_once_in_the_order_of_the_book_and_builds_on_what_comes_before():
    pages = [stop.page for stop in plot.ROAD]
    contents = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    assert pages == re.findall(r"^ {6}- file: notebooks/(\S+)$", contents, flags=re.MULTILINE)
    for place, stop in enumerate(plot.ROAD):
        assert set(stop.after) <= set(pages[:place])
        assert abs(stop.minutes - pages_of_the_book.load(ROOT, stop.page).minutes) <= 10
    assert len({stop.place for stop in plot.ROAD}) == len(plot.ROAD)


@pytest.mark.parametrize("folder", ["", "notebooks/"])
def test_the_road_links_every_lesson_in_the_drawing_and_in_the_list_and_runs_no_script(folder):
    markup = plot.roadmap(folder=folder)
    links = re.findall(r'href="([^"]+)"', markup)
    wanted = [f"{folder}{stop.page}.html" for stop in plot.ROAD]
    assert links == [*wanted, *wanted]
    assert "<script" not in markup
    assert markup.count('class="line') == sum(max(1, len(stop.after)) for stop in plot.ROAD[1:])
    for stop in plot.ROAD:
        assert f"{stop.page}, {stop.minutes} min" in markup
