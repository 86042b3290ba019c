"""The page "Use the library": every listing runs as it stands, and what it prints is what the page promises."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "use-the-library.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, flags=re.DOTALL | re.MULTILINE))
LISTING = re.compile(r"^```python\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def printed():
    """What the listings of each section print: one process for all, since most of its time is spent on imports."""
    program = []
    for title, text in SECTIONS.items():
        listings = LISTING.findall(text)
        assert listings, title
        # A section stands alone: its listings share their names with each other and with nothing else.
        code = "\n".join(listings)
        program += [f"print('#', {title!r})", f"exec(compile({code!r}, {title!r}, 'exec'), {{'__name__': 'listing'}})"]
    # What is compiled is run a few times: it takes longer to compile than to compute.
    environment = os.environ | {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    command = [sys.executable, "-W", "error", "-c", "\n".join(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    parts = re.split(r"^# (.*)\n", done.stdout, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def numbers(text):
    return [float(number) for number in re.findall(r"-?\d+\.\d+", text)]


def test_the_page_has_listings_in_python_only():
    assert len(SECTIONS) >= 6
    assert len(re.findall("^```", PAGE, flags=re.MULTILINE)) == 2 * sum(
        len(LISTING.findall(text)) for text in SECTIONS.values()
    )


SAID = {
    "Mend naive attention, in PyTorch": (
        "the gradient is finite: True",
        "padding reaches nothing: True",
        "converged: True",
        "the twin agrees: True",
    ),
    "Train in JAX": (
        "converged, layer by layer: [True]",
        "padding changes nothing: True",
        "and stays what it was: True",
    ),
    "Train in PyTorch": ("finite under autocast: True", "zeros alone: False", "without couplings: True"),
}


@pytest.mark.slow
@pytest.mark.parametrize("section", SAID)
def test_a_section_prints_what_the_page_promises(printed, section):
    assert [words for words in SAID[section] if words not in printed[section]] == []


@pytest.mark.slow
@pytest.mark.parametrize("section", ["Train in JAX", "Train in PyTorch"])
def test_training_lowers_the_loss(printed, section):
    first, last = numbers(re.search(r"^loss .*$", printed[section], flags=re.MULTILINE)[0])
    assert last < 0.9 * first


@pytest.mark.slow
def test_the_sweep_goes_on_and_refuses_another_identity(printed):
    shown = printed["A sweep that can be interrupted"]
    assert len(re.findall(r"^task \d is kept$", shown, flags=re.MULTILINE)) == 1
    assert len(re.findall(r"^beta ", shown, flags=re.MULTILINE)) == 4
    assert "refused: " in shown


@pytest.mark.slow
def test_a_memory_a_map_and_a_diagram_say_what_is_known_of_them(printed):
    lines = printed["Memories, exponents and diagrams of your own"].splitlines()
    first, second = numbers(lines[0])
    # In the convex hull, near the first pattern.
    assert first > 0.9
    assert 0 < second < 0.1
    # Of the cycle at a = 1 the largest exponent is negative; at a = 1.4 it is .419 (Sprott 2003, table A.3).
    assert numbers(lines[1])[1] < 0
    _, exponent, error = numbers(lines[2])
    assert abs(exponent - 0.419) < 4 * error
    assert "chaotic" in lines[3]


@pytest.mark.slow
def test_the_three_entropy_productions_agree_as_the_page_says(printed):
    lines = printed["Entropy production of your own system"].splitlines()
    exact, (sampled, error), approximate, symmetric = (
        numbers(lines[0])[0],
        numbers(lines[1]),
        numbers(lines[2])[0],
        numbers(lines[3])[0],
    )
    assert abs(sampled - exact) < 4 * error
    assert 0 < error < 0.1 * exact
    assert exact < approximate < 2 * exact
    assert "converged: True" in lines[2]
    assert symmetric == 0.0


@pytest.mark.slow
def test_a_network_without_training_is_no_star(printed):
    shown = printed["Your own network under the lens"]
    by_layer = numbers(re.search(r"^concentration by layer .*$", shown, flags=re.MULTILINE)[0])
    assert len(by_layer) == 3
    assert max(by_layer) < 1.5
    assert "drawn: True" in shown
    # Attention that is nearly even makes spins fluctuate together, a little, and forwards as backwards.
    assert 0.01 < numbers(re.search(r"^a spin and another .*$", shown, flags=re.MULTILINE)[0])[0] < 0.2
    assert numbers(re.search(r"^irreversibility .*$", shown, flags=re.MULTILINE)[0])[0] > 0
    assert "converged True" in shown
