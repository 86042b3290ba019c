"""The live model of the lesson free-energy: the library's numbers, mouse and keyboard, and room on a phone."""

import json

import numpy as np
import pytest

from chapters.live import free_energy as live
from chapters.live.free_energy import FIELDS
from spinbook.free_energy import VectorSpinModel
from tests.book.live import WAIT, Model, Opening

BONDS = 0.5 * live.BONDS


def opens():
    magnet = VectorSpinModel(4, 2, 1 / 0.6, BONDS)
    lengths = np.linalg.norm(magnet.magnetizations(FIELDS).numpy(), axis=1)
    free_energy = f"{float(magnet.free_energy(FIELDS)) / 4:.2f}".replace("-", "−")
    return Opening(
        ["temperature 0.60", "coupling 1.00"], [f"A {lengths[0]:.2f}, B {lengths[1]:.2f}", free_energy], handles=4
    )


MODEL = Model(
    "free-energy",
    lambda: live.markup(temperature=0.6, coupling=0.5),
    {"fields": FIELDS.tolist(), "couplings": BONDS.tolist()},
    opens,
    lambda: [
        ("press(0, 'ArrowUp', true)", "1.00, 0.75"),
        ("slide(0, 'max')", "Temperature 5.00"),
        ("slide(1, 0)", "has the weight 0.00 in A"),
        ("click(0)", "Temperature 0.60"),
    ],
)


def test_weights_means_and_free_energy_are_those_of_the_library(each):
    rng = np.random.default_rng(3)
    cases = [
        {"fields": rng.uniform(-1.2, 1.2, (4, 2)).tolist(), "couplings": (strength * BONDS).tolist(), "beta": beta}
        for beta in (0.2, 1.0, 5.0, 20.0)
        for strength in (0.0, 1.0, 3.0)
    ]
    cases.append({"fields": np.zeros((4, 2)).tolist(), "couplings": (3 * BONDS).tolist(), "beta": 20.0})
    found = each(cases, "m.saddle(c.fields, c.couplings, c.beta)")
    for case, answer in zip(cases, found, strict=True):
        fields, couplings = np.array(case["fields"]), np.array(case["couplings"])
        magnet = VectorSpinModel(4, 2, float(case["beta"]), couplings)
        t = magnet.saddle_point(fields, tol=1e-15).value.numpy()
        weights = np.linalg.inv(np.diag(t) - couplings) / 2
        assert np.abs(t - np.array(answer["t"])).max() < 1e-12
        assert np.abs(weights - np.array(answer["weights"])).max() < 1e-12 * max(1.0, np.abs(weights).max())
        assert np.abs(magnet.magnetizations(fields).numpy() - np.array(answer["means"])).max() < 1e-12
        assert abs(float(magnet.free_energy(fields)) - float(answer["freeEnergy"])) < 1e-12


@pytest.mark.parametrize("dark", [False, True])
def test_numbers_stand_out_from_every_shade_of_the_table(page, dark, ask):
    shares = [round(float(share), 2) for share in np.linspace(0.0, 1.0, 21)]
    answer = ask(
        page,
        f"{WAIT} const style = getComputedStyle(document.querySelector('.live'));"
        "const colours = Object.fromEntries(['ink', 'paper', 'blue', 'orange'].map((name) =>"
        "[name, style.getPropertyValue(`--live-${name}`).trim()]));"
        f"const chosen = ['blue', 'orange'].map((name) => {json.dumps(shares)}.map((share) =>"
        "Live.models['free-energy'].readable(colours[name], share, colours)));"
        "const answer = {colours, chosen}",
        dark=dark,
    )
    rgb = {
        name: np.array([int(hex[k : k + 2], 16) / 255 for k in (1, 3, 5)]) for name, hex in answer["colours"].items()
    }

    def contrast(one, other):
        linear = [np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) for c in (one, other)]
        low, high = sorted(float([0.2126, 0.7152, 0.0722] @ colour) + 0.05 for colour in linear)
        return high / low

    # Whatever lies between ink and paper is at least the root of their contrast from one of them.
    least = np.sqrt(contrast(rgb["ink"], rgb["paper"]))
    for name, chosen in zip(("blue", "orange"), answer["chosen"], strict=True):
        for share, text in zip(shares, chosen, strict=True):
            ground = share * rgb[name] + (1 - share) * rgb["paper"]
            written = next(rgb[kind] for kind in ("ink", "paper") if answer["colours"][kind] == text)
            assert contrast(written, ground) >= least * (1 - 1e-9)


def test_three_pictures_stand_side_by_side_on_a_tablet(page, ask):
    answer = ask(
        page,
        f"{WAIT} const answer = [...document.querySelectorAll('.live canvas')]"
        ".map((canvas) => canvas.getBoundingClientRect().top)",
        width=768,
    )
    assert len(answer) == 3
    assert len(set(answer)) == 1


def test_the_still_picture_writes_the_weights_of_the_library():
    _, table = live.still(temperature=0.6, coupling=0.5).axes
    written = np.reshape([float(text.get_text().replace("\N{MINUS SIGN}", "-")) for text in table.texts], (4, 4))
    magnet = VectorSpinModel(4, 2, 1 / 0.6, BONDS)
    assert np.abs(written @ FIELDS - magnet.magnetizations(FIELDS).numpy()).max() < 0.02
