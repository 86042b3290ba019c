"""Frozen heads against sampled spins: exact cases, the layers of a model as they are, and a record."""

from functools import wraps

import equinox as eqx
import jax
import numpy as np
import pytest

from experiments import records
from experiments.comparison import trained_heads, transient
from experiments.comparison.trained_heads import Frozen, Sampling
from experiments.comparison.transient import SMOKE, Row
from spinbook import sphere

LONG = Sampling(replicas=64, steps=200, transient=20)


def system(J, *, d=6, length=0.5, seed=0):
    """One head with these couplings, and fields of this length over R."""
    x = np.random.default_rng(seed).normal(size=(len(J), d))
    return Frozen(J[None], (length * sphere.radius(d) * x / np.linalg.norm(x, axis=1, keepdims=True))[None], 1.0)


def weak(strength, n=5, seed=1):
    return strength * np.random.default_rng(seed).random((n, n)) / n


def test_weak_couplings_are_irreversible_as_the_proxy_says():
    """The first order in the couplings: what is left is of the next, and the sampled number has its standard error."""
    found = trained_heads.measure(system(weak(0.5)), LONG, seed=0)
    (sigma, error), exact = found["sigma"][0], found["proxy"][0, 1]
    assert 0 < error < 0.05 * sigma
    # Of the next order: the couplings of a row sum to about a quarter.
    assert abs(sigma - exact) < 4 * error + 0.1 * exact
    assert abs(sigma / 2 - exact) > 4 * error + 0.1 * exact
    # Half the couplings are a quarter of the irreversibility.
    quarter = trained_heads.measure(system(weak(0.25)), LONG, seed=0)["proxy"][0, 1]
    assert exact / quarter == pytest.approx(4, rel=0.1)


def test_symmetric_couplings_are_reversible():
    J = weak(0.8)
    found = trained_heads.measure(system((J + J.T) / 2), LONG, seed=0)
    assert found["proxy"][0] == pytest.approx(0, abs=1e-12)
    assert abs(found["sigma"][0, 0]) < 4 * found["sigma"][0, 1] + 1e-12
    assert found["delayed"][0, 0] > -4 * found["delayed"][0, 1]


def test_rows_of_a_softmax_share_a_fluctuation_that_the_prediction_knows():
    """Flat couplings without fields: r and q are known, and mean-field theory misses what all spins share."""
    n, d = 8, 16
    layer = Frozen(np.full((1, n, n), 1 / n), np.full((1, n, d), 1e-3), 1.0)
    found = trained_heads.measure(layer, LONG, seed=2)
    chi = sphere.squared_radius(d) / d
    r = chi**2 / (1 - chi**2)
    assert found["q"][0] == pytest.approx(1)
    assert found["n_eff"][0] == pytest.approx(n)
    assert found["predicted"][0] == pytest.approx(r / (1 + r), rel=1e-3)
    squared, error = found["delayed"][0]
    # Exact for Gaussian spins, and spins on a sphere differ from these by one part in d.
    assert abs(np.sqrt(squared) - found["predicted"][0]) < 4 * error / (2 * np.sqrt(squared)) + 1 / d


def test_the_first_site_is_left_out_where_that_is_asked_for():
    """A spin that hears of itself alone, strongly, beside a chain: all of the error is its own."""
    J = np.zeros((4, 4))
    J[0, 0], J[1, 1], J[2, 1], J[3, 2] = 1.0, 0.01, 0.3, 0.3
    found = trained_heads.measure(system(J, d=16, length=0.1), LONG, seed=3)
    assert found["delayed"][0, 0] > 0.01
    assert found["delayed_rest"][0, 0] < found["delayed"][0, 0] - 4 * found["delayed"][0, 1]


@pytest.mark.slow
def test_layers_are_frozen_as_the_model_has_them(single):
    design = SMOKE._replace(depth=2)
    model = transient.made(Row("1", beta=2.0), design, jax.random.key(0))
    characters = np.arange(6)
    layers = trained_heads.frozen(model, characters, "1")
    mask = np.tril(np.ones((6, 6), bool))
    arrays, rest = eqx.partition(model.stack.modules, eqx.is_array)
    second = eqx.combine(jax.tree.map(lambda a: a[1], arrays), rest)
    x = model.stack.under(trained_heads.Unroll(1)).steady_state(model.bottom(characters), mask).value[0]
    np.testing.assert_allclose(layers[1].couplings, second.couplings(x, mask), rtol=1e-4, atol=1e-6)
    heads = layers[1].fields.transpose(1, 0, 2).reshape(6, -1)
    np.testing.assert_allclose(heads, second.fields(x, mask), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="model: expected layers of spins, got VanillaStack"):
        trained_heads.frozen(transient.made(Row("vanilla"), design, jax.random.key(0)), characters, "1")
    np.testing.assert_allclose([layer.couplings.sum(-1) for layer in layers], 1, rtol=1e-12)
    assert layers[0].couplings[:, 0, 0] == pytest.approx(1)
    assert layers[0].beta == 2


def test_errors_are_ratios_of_sums_and_roots_of_means():
    shape = (2, 1, 1)
    cell = {name: np.full(shape, 0.5).tolist() for name in ("predicted", "n_eff", "chi")}
    cell["sigma"] = [[[[1.0, 0.1]]], [[[3.0, 0.1]]]]
    cell["proxy"] = [[[[1.5, 9.0]]], [[[2.9, 9.0]]]]
    cell["delayed"] = [[[[0.04, 0.1]]], [[[0.14, 0.1]]]]
    cell["delayed_rest"] = [[[[-0.04, 0.1]]], [[[0.02, 0.1]]]]
    found = trained_heads.errors({"rows": {"1": cell}}, Row("1"), exact=False)
    assert found.sigma == pytest.approx(0.1)
    assert trained_heads.errors({"rows": {"1": cell}}, Row("1")).sigma == pytest.approx(18 / 4 - 1)
    assert found.sigma_error == pytest.approx(np.std([0.4, -0.4], ddof=1) / np.sqrt(2) / 2)
    assert found.delayed == pytest.approx(0.3)
    assert found.delayed_rest == pytest.approx(0)
    assert (found.within(0.11), found.within(0.09), found.within(0.11, "delayed")) == (1, 0, 0)
    assert found._replace(sigma=np.array([[np.nan]])).within(0.1) == 0


@pytest.mark.slow
def test_the_quick_profile_writes_a_record_and_missing_weights_are_told(tmp_path, monkeypatch):
    trained_heads.compute(tmp_path, True)
    record = records.read(tmp_path / "nonequilibrium-heads" / "heads.json.gz")
    assert not record["trained"]
    assert set(record["rows"]) == {"1", "inf"}
    assert np.shape(record["rows"]["1"]["sigma"]) == (2, SMOKE.depth, SMOKE.num_heads, 2)
    assert trained_heads.errors(record, Row("inf")).sigma.shape == (SMOKE.depth, SMOKE.num_heads)
    refused = wraps(trained_heads.measure)(lambda *a, **b: pytest.fail("was sampled"))
    monkeypatch.setattr(trained_heads, "measure", refused)
    with pytest.raises(FileNotFoundError, match=r"weights: expected weights-1-1.npz in .*nonequilibrium-transient"):
        trained_heads.compute(tmp_path, False)
    trained_heads.compute(tmp_path, True)
