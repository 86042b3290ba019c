"""Figures of the trained transformer draw what they are given, and nothing else."""

import numpy as np
import pytest
import xarray as xr

from chapters import trained_transformer as plot

RNG = np.random.default_rng(0)


def test_a_map_has_a_cell_for_each_head_with_its_mean_over_windows():
    values = RNG.normal(size=(4, 6, 12))
    found = xr.Dataset({"swap": (("window", "layer", "head"), values, {"long_name": "in words"})})
    figure = plot.heads(found)
    drawn = figure.axes[0].collections[0].get_array()
    assert np.asarray(drawn).reshape(6, 12) == pytest.approx(values.mean(0))
    assert figure.axes[0].get_title(loc="center") == "in words"


def test_points_of_laws_and_courses_are_those_given():
    measured, law = RNG.uniform(0.1, 0.9, (2, 6, 12))
    dots = plot.laws(measured, {"one": law, "two": law**2}).axes[1].lines[1]
    assert np.array(dots.get_data()) == pytest.approx(np.array([measured.ravel(), law.ravel() ** 2]))
    courses = {"a": np.arange(7) / 7, "b": np.ones(7)}
    assert plot.cosines(courses, {"a": np.full(7, 0.01)}).axes[0].get_legend_handles_labels()[1] == ["a", "b"]
    scores = {"x": law, "y": measured}
    assert plot.irreversible(measured, scores).axes[1].lines[2].get_xdata() == pytest.approx(measured[2])
