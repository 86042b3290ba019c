"""The live map of trained-transformer: its windows are the weights it was given; clicks and keys choose a head."""

import numpy as np
import scipy.special

from chapters import trained_transformer as plot
from tests.book.live import Model, Opening

RNG = np.random.default_rng(3)
A = scipy.special.softmax(3 * RNG.normal(size=(2, 3, 12, 12)), axis=-1)
WORDS = [f"w{k}" for k in range(12)]
MEASURES = {"first": ("first measure", RNG.normal(size=(2, 3))), "second": ("second measure", RNG.normal(size=(2, 3)))}


def opens():
    value = f"{MEASURES['first'][1][1, 0]:.2f}".replace("-", "−")
    return Opening(["token w6"], [f"Layer 2, head 1: first measure {value}."], handles=1)


MODEL = Model(
    "trained-transformer",
    lambda: plot.live_markup(A, WORDS, MEASURES, start=(2, 1)),
    {"layers": 2, "heads": 3, "tokens": WORDS, "start": [2, 1]},
    opens,
    lambda: [
        ("click(1)", "Layer 2, head 1: second measure", "false,true"),
        ("press(0, 'ArrowRight')", "Layer 2, head 2: second measure"),
        ("slide(0, 0)", f"“w0” listens most to “w{int(A[1, 1, 0].argmax())}”"),
        ("click(2)", *opens().says),
    ],
)


def test_the_weights_come_back_to_a_part_in_255(each):
    found = each(((0, 2), (1, 0)), "m.unpacked(d.weights, d.layers, d.heads, d.tokens.length, d.kept)(...c)")
    for rows, J in zip(found, (A[0, 2], A[1, 0]), strict=True):
        for i, row in enumerate(rows):
            largest = np.argsort(-J[i])[: len(row)]
            assert {int(place) for place, _ in row} == set(largest.tolist())
            assert all(abs(weight - J[i, int(place)]) <= 0.5 / 255 + 1e-9 for place, weight in row)
