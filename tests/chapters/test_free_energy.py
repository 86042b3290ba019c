"""Each figure of the chapter shows the numbers that it is given, in order, and nothing that it made up."""

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from chapters import free_energy as plot
from tests.chapters.drawings import shows

T = np.array([0.5, 1.0, 2.0, 4.0])


def test_contour_marks_the_eigenvalues_and_draws_both_cuts():
    axis = np.linspace(-1, 1, 21)
    x, y = np.meshgrid(axis, axis)
    figure = plot.contour(
        axis,
        axis,
        x**2 - y**2,
        saddle=(0.1, 0.0),
        eigenvalues=np.array([-0.9, -0.5]),
        along_real=(T, T**2),
        along_imaginary=(T, -(T**2)),
    )
    assert shows(figure, T**2, -(T**2))
    crosses = [line for line in figure.axes[0].lines if line.get_marker() == "x"]
    assert [line.get_xdata().tolist() for line in crosses] == [[-0.9, -0.5]]
    (lines,) = [c for c in figure.axes[0].collections if isinstance(c, LineCollection)]
    assert len(lines.get_segments()) > 3


def test_strip_and_frames_show_the_same_curves():
    phis = np.arange(24.0).reshape(6, 4)
    betas, stars = np.linspace(1, 6, 6), np.linspace(0.6, 3, 6)
    strip = plot.sweep_strip(T, phis, betas=betas, t_stars=stars)
    free = {name: betas * k for k, name in enumerate(plot.QUANTITIES, start=1)}
    frames = [
        plot.sweep_frame(T, phis[k], frame=k, betas=betas, t_stars=stars, free_energy=free) for k in range(len(phis))
    ]
    for k, frame in enumerate(frames):
        assert np.array_equal(strip.axes[k].lines[0].get_ydata(), phis[k])
        assert np.array_equal(frame.axes[0].lines[0].get_ydata(), phis[k])
        assert strip.axes[k].lines[1].get_xdata() == [stars[k]] == frame.axes[0].lines[1].get_xdata()
        assert shows(frame, free, [values[k : k + 1] for values in free.values()])


def test_frames_are_laid_out_alike_whatever_their_labels():
    free = dict.fromkeys(plot.QUANTITIES, T)
    first, second = (
        plot.sweep_frame(T, T * scale, frame=k, betas=T, t_stars=T, free_energy=free) for k, scale in ((0, 1), (3, 1e6))
    )
    for frame in (first, second):
        frame.draw_without_rendering()
    assert [ax.get_position().bounds for ax in first.axes] == [ax.get_position().bounds for ax in second.axes]


def _live() -> Figure:
    fields = np.array([[0.5, 0.5], [-0.4, 0.2]])
    means = np.array([[[0.1, 0.2], [0.3, -0.4]], [[0.6, 0.7], [-0.8, 0.1]]])
    weights = np.array([[[0.5, 0.0], [0.0, 0.4]], [[0.8, -0.3], [-0.3, 0.9]]])
    return plot.live(fields, means, weights, temperatures=(2.0, 0.1), names="AB")


def test_landscape_draws_every_path_and_its_residuals():
    axis = np.linspace(0.1, 2, 20)
    x, y = np.meshgrid(axis, axis)
    paths = [np.array([[1.9, 0.2], [1.2, 0.8], [1.0, 1.0]]), np.array([[0.2, 1.9], [1.0, 1.0]])]
    residuals = [np.array([1.0, 0.1, 1e-12]), np.array([1.0, 1e-12])]
    figure = plot.landscape(
        axis,
        axis,
        (x - 1) ** 2 + (y - 1) ** 2,
        boundary=(axis, 0.1 / axis),
        saddle=(1.0, 1.0),
        paths=paths,
        residuals=residuals,
    )
    assert shows(figure, [path[:, 1] for path in paths], residuals)


def test_orders_shows_sizes_of_signed_errors():
    dims = np.array([1, 2, 3, 8, 64])
    errors = {name: {"saddle": -1.0 / dims, "next order": 0.1 / dims**2} for name in ("one spin", "two spins")}
    figure = plot.orders(dims, errors)
    assert len(figure.axes) == 2
    assert shows(figure, 1.0 / dims, 0.1 / dims**2)


def test_curvature_puts_the_true_hessian_first_on_one_scale():
    matrices = {"autodiff": np.array([[1.0, 0.5], [0.5, 1.0]]), "printed": np.array([[1.5, 0.0], [0.0, 1.5]])}
    errors = {"printed": T, "correct": T * 1e-12}
    figure = plot.curvature(matrices, strengths=T, gradient_errors=errors)
    first, second = (np.asarray(ax.images[0].get_array()) for ax in figure.axes[:2])
    assert 10 ** first[0, 1] == pytest.approx(0.5)
    assert 10 ** second[0, 0] == pytest.approx(1.5)
    assert figure.axes[0].images[0].get_clim() == figure.axes[1].images[0].get_clim()
    assert shows(figure, errors)


def test_attention_shows_four_matrices_on_one_symmetric_scale():
    matrices = [np.eye(3) * k for k in (1.0, -2.0, 0.1, 0.2)]
    orders = np.arange(1, 5)
    errors = {"falls": np.geomspace(1, 1e-10, 4), "slowly": np.geomspace(1, 0.1, 4), "rises": np.geomspace(1, 50, 4)}
    figure = plot.attention(matrices, ["a", "b", "c", "d"], orders=orders, errors=errors)
    images = [ax.images[0] for ax in figure.axes if ax.images]
    assert [float(np.asarray(image.get_array())[0, 0]) for image in images] == [1.0, -2.0, 0.1, 0.2]
    assert {image.get_clim() for image in images} == {(-2.0, 2.0)}
    assert shows(figure, errors)


def test_channels_shows_every_entry_and_every_share():
    closed = np.array([[0.1, -0.2], [0.3, 0.0]])
    shares = np.array([[0.1, 0.2], [0.5, 0.6]])
    figure = plot.channels(closed, closed + 1, rho=np.array([0.1, 2.0]), shares=shares, labels=["4, 40", "40, 20"])
    assert shows(figure, (closed + 1).ravel(), list(shares))
    places = [line.get_xdata().tolist() for line in figure.axes[1].lines if line.get_marker() == "o"]
    assert places == [[0.1, 0.1], [2.0, 2.0]]
