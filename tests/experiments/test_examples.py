"""Which examples are seen, by every loop over batches, of numbers that the size of a batch does not divide."""

import numpy as np
import pytest
import torch
from torch import nn

from experiments import digit_network as network
from experiments.comparison import training


def test_every_seed_has_an_order_of_its_own_in_which_all_examples_come_before_one_comes_again():
    plans = [training.batches(22, training.Recipe(num_updates=11, batch=4), seed=seed).ravel() for seed in (3, 3, 4)]
    for plan in plans:
        assert sorted(plan[:22].tolist()) == sorted(plan[22:].tolist()) == list(range(22))
        assert (plan[:22] != plan[22:]).any()
    np.testing.assert_array_equal(plans[0], plans[1])
    assert (plans[0] != plans[2]).mean() > 0.5


def test_the_network_is_tested_on_every_image():
    logits, labels = torch.randn(700, 10, generator=torch.Generator().manual_seed(0)), torch.arange(700) % 10
    loss, accuracy = network._tested(lambda images: logits[images], torch.arange(700), labels)
    assert loss == pytest.approx(float(nn.functional.cross_entropy(logits, labels)))
    assert accuracy == pytest.approx(float((logits.argmax(-1) == labels).float().mean()))
