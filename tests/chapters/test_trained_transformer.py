"""The map of heads draws what it is given, and nothing else."""

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
