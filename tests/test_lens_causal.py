"""The second network of the lens: its layers against the model that is trained, and what a causal mask decides."""

from __future__ import annotations

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments import lens_record
from experiments.comparison import transient
from experiments.lens_record import causal, echoes, runs
from spinbook import lens
from spinbook.precision import enable_x64

DESIGN = transient.SMOKE._replace(depth=2)


@pytest.fixture(scope="module")
def model():
    with enable_x64(False):
        return transient.made(transient.Row("vanilla"), DESIGN, jax.random.key(3))


@pytest.fixture(scope="module")
def characters():
    return causal.windows(DESIGN, 2)[0][:-1]


def test_the_traces_are_those_of_the_trained_model(model, characters):
    with enable_x64(False), jax.numpy_dtype_promotion("standard"):
        traces = causal.run(characters, model)
        logits, _ = model(jnp.asarray(characters), "once")
        following = np.roll(characters, -1)
        expected = -np.mean(np.asarray(jax.nn.log_softmax(logits), float)[np.arange(len(logits)), following])
        assert causal._loss(traces, model, following) == pytest.approx(expected, rel=1e-5)
        assert len(traces) == 2
        for t in traces:
            assert np.asarray(t.attended) == pytest.approx(np.asarray(t.outputs - t.inputs - t.forward), abs=1e-5)


def test_a_mask_decides_the_walk_and_leaves_no_echo(model, characters):
    with enable_x64(False), jax.numpy_dtype_promotion("standard"):
        first, second = causal.run(characters, model)
    seen = lens.measure([t.attention[None] for t in (first, second)])
    assert seen.concentration.values == pytest.approx(np.full((1, 2, 2), 8), rel=1e-6)
    assert np.abs(seen.swap.values).max() == np.abs(seen.irreversibility.values).max() == 0
    layer, following = causal.layers(model)
    given = echoes.contributions(first.attention, first.values, layer.to_output.T)
    to_values = following.to_queries_keys_values[-16:].T
    assert np.abs(echoes.echo(given, second.attention, to_values, following.to_output.T)).max() == 0


def test_what_is_left_out_changes_what_it_should(model, characters):
    with enable_x64(False), jax.numpy_dtype_promotion("standard"):
        whole = causal.run(characters, model)
        silent = causal.run(characters, model, silent=5)
        bare = causal.run(characters, model, residual=False)
    # Nobody before a silent token can hear that it is silent.
    assert np.array_equal(silent[-1].outputs[:5], whole[-1].outputs[:5])
    assert np.abs(silent[0].outputs[5:] - whole[0].outputs[5:]).max() > 1e-3
    assert np.array_equal(bare[0].outputs, bare[0].forward)


def test_controls_keep_what_they_should(model):
    shuffled = causal.control("shuffled", model, DESIGN)
    for old, new in zip(causal.layers(model), causal.layers(shuffled), strict=True):
        for a, b in zip(old, new, strict=True):
            assert np.sort(np.ravel(a)) == pytest.approx(np.sort(np.ravel(b)))
        assert np.array_equal(old.gains, new.gains)
        assert not np.array_equal(old.up, new.up)
    assert np.array_equal(shuffled.embedding, model.embedding)
    assert causal.control("trained", model, DESIGN) is model


@pytest.mark.slow
@pytest.mark.long
def test_a_small_training_is_measured_and_goes_on_from_its_folder(tmp_path):
    sizes = runs.QUICK._replace(jacobians=0)
    record = causal.collect(tmp_path, sizes=sizes)
    assert record["complete"]
    assert lens_record.by_head(record, "attended").shape == (1, 2)
    assert lens_record.values(record, "sentence", "losses").shape == (2, 3)
    weights = (tmp_path / "weights.npz").stat().st_mtime_ns
    again = causal.collect(tmp_path, sizes=sizes)
    assert (tmp_path / "weights.npz").stat().st_mtime_ns == weights
    assert json.dumps(again["networks"]) == json.dumps(record["networks"])


def test_the_record_is_that_of_the_training_it_repeats():
    record = lens_record.recorded("causal")
    training = record["training"]
    # The loss that the recorded training of the same row and seed came to.
    assert abs(training["held_out"] - 1.56) < 4 * training["held_out_error"]
    assert record["sizes"] == runs.FULL._asdict()
    assert lens_record.by_head(record, "concentration") == pytest.approx(np.full((6, 4), 64), abs=0.1)
