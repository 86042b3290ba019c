"""A function that loops in compiled code is compiled by its first call, and not by the next one of the same shapes."""

import logging

import jax
import numpy as np
import pytest

from experiments.memory import MemoryModule
from spinbook import spin_transformer
from spinbook.rbm import gibbs, recall
from spinbook.rbm.gibbs import hidden_given_visible
from spinbook.self_attention import mean_field, paper_network, token_window


def of_gibbs():
    weights = 0.2 * np.random.default_rng(0).normal(size=(5, 4))
    sampler = hidden_given_visible.bernoulli(0.3)
    return lambda key: gibbs.simulate(key, np.zeros((3, 5)), weights, sampler, steps=9)


def of_recall():
    patterns = np.random.default_rng(0).normal(size=(6, 7))
    return lambda key: recall.trajectory(jax.random.normal(key, (4, 7)), patterns, beta=1.3, steps=12)


def of_self_attention():
    network = paper_network()
    couplings = mean_field.couplings(network, beta=1.27)
    return lambda key: mean_field.simulate(couplings, token_window(network), steps=4)


def of_stack(method):
    stack = spin_transformer.SpinTransformer(
        2, 8, 2, key=jax.random.key(0), theory=spin_transformer.naive, dynamics=spin_transformer.Unroll(2)
    )
    mask = np.tril(np.ones((3, 3), bool))
    return lambda key: getattr(stack, method)(jax.random.normal(key, (3, 8)), mask)


def of_memory(call):
    module = MemoryModule(8, key=jax.random.key(0))
    return lambda key: call(module, jax.random.normal(key, (3, 8)))


CALLS = {
    "rbm.gibbs.simulate": of_gibbs,
    "rbm.recall.trajectory": of_recall,
    "self_attention.mean_field.simulate": of_self_attention,
    "SpinTransformer": lambda: of_stack("__call__"),
    "SpinTransformer.steady_state": lambda: of_stack("steady_state"),
    "SpinTransformer.readout": lambda: of_stack("readout"),
    "MemoryModule": lambda: of_memory(lambda module, x: module(x, steps=3)),
    "MemoryModule.steady_state": lambda: of_memory(lambda module, x: module.steady_state(x)),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_second_call_compiles_nothing(name, caplog):
    call = CALLS[name]()

    def compiled(number):
        caplog.clear()
        with jax.log_compiles(), caplog.at_level(logging.WARNING, "jax"):
            jax.block_until_ready(call(jax.random.key(number)))
        return [record.getMessage() for record in caplog.records if record.getMessage().startswith("Compiling")]

    assert compiled(0), "the log tells what is compiled"
    assert compiled(1) == []
