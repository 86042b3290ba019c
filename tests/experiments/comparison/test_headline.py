"""The source's network on MNIST: the same images, a record of fixed looks, and runs that can be interrupted."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from functools import wraps

import numpy as np
import pytest
import torch
from scipy import stats

from experiments import digit_network as network
from experiments import records
from experiments.comparison import headline, torch_blocks
from experiments.datasets import files, mnist


def test_images_are_standardised_by_the_training_set_alone():
    found = headline.images(mnist.sample())
    assert float(found.train.mean()) == pytest.approx(0, abs=1e-5)
    assert float(found.train.std()) == pytest.approx(1, rel=1e-5)
    pixels = mnist.sample()
    back = found.test * pixels.train.astype(np.float64).std(ddof=1) + pixels.train.mean()
    np.testing.assert_allclose(back[:, 0], pixels.test, atol=1e-2)
    assert found.test_labels.tolist() == pixels.test_labels.tolist()


def test_a_record_has_every_seed_with_its_looks_and_goes_on_where_it_was(tmp_path, monkeypatch):
    whole = headline.compare(headline.SMOKE, folder=tmp_path)
    assert whole["complete"]
    assert 25_000 < whole["parameters"] < 27_000
    for run in whole["runs"]:
        assert run["frames"] == [0, 2, 4]
        assert len(run["accuracy"]) == 3
        assert np.shape(run["coupling_norms"]) == (3, 17 * 16)
    assert whole["runs"][0]["loss"] != whole["runs"][1]["loss"]
    assert records.read(tmp_path / "headline.json.gz")["runs"] == whole["runs"]
    (tmp_path / "runs" / "task-000001.npz").unlink()
    trained = []
    train = network.train
    # It has the name of the function that it stands for: a function of another module would make it another sweep.
    noted = wraps(train)(lambda *a, **b: trained.append(b["num_updates"]) or train(*a, **b))
    monkeypatch.setattr(network, "train", noted)
    again = headline.compare(headline.SMOKE, folder=tmp_path)
    assert trained == [4]
    np.testing.assert_allclose(again["runs"][1]["loss"], whole["runs"][1]["loss"], rtol=1e-4)


def test_a_seed_leaves_the_generator_as_it_was():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    headline.run_one(1, headline.SMOKE._replace(num_updates=1, frames=(1,)))
    assert torch.equal(torch.get_rng_state(), before)


def test_threads_take_no_numbers_from_each_other():
    def draw(seed):
        with torch_blocks.seeded(seed):
            first = torch.rand(3)
            time.sleep(0.01)
            return torch.cat([first, torch.rand(3)])

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(draw, range(4)))
    assert torch.equal(torch.stack(together), torch.stack([draw(seed) for seed in range(4)]))


def test_nothing_is_drawn_beside_the_start_of_a_seed(tmp_path, monkeypatch):
    headline._num_parameters.cache_clear()
    alone = []
    make = network.DigitNetwork
    monkeypatch.setattr(network, "DigitNetwork", lambda: alone.append(torch_blocks._DRAWING.locked()) or make())
    headline.compare(headline.SMOKE._replace(num_updates=1, frames=(1,)), folder=tmp_path)
    assert alone == [True] * 3


def test_missing_images_are_told_before_anything_is_run(monkeypatch):
    monkeypatch.delenv(files.ENVIRONMENT, raising=False)
    headline._images.cache_clear()
    with pytest.raises(FileNotFoundError, match="train-images-idx3-ubyte"):
        headline.compare(headline.ALL)


def made_up(accuracies, norms=None, frames=(0, 300, 1000)):
    """A record of one run for each row of ``accuracies``; ``norms`` are (runs, looks, pairs)."""
    norms = [[[0.0], [0.5], [1.0]]] * len(accuracies) if norms is None else norms
    looks = [list(frames)] * len(accuracies)
    columns = zip(looks, accuracies, norms, strict=True)
    return {"runs": [dict(zip(("frames", "accuracy", "coupling_norms"), column, strict=True)) for column in columns]}


def test_the_accuracy_is_that_of_the_look_that_is_asked_for():
    record = made_up([[0.1, 0.90, 0.98], [0.1, 0.92, 0.99]])
    assert headline.accuracies(record).tolist() == [0.98, 0.99]
    assert headline.accuracies(record, update=300).tolist() == [0.90, 0.92]
    with pytest.raises(ValueError, match=r"update: expected one of \[0, 300, 1000\], got 301"):
        headline.accuracies(record, update=301)


def test_what_is_organised_is_a_distance_between_all_norms_and_not_between_their_means():
    swapped = [[[3.0, 0.0], [2.0, 1.0], [0.0, 3.0]]] * 2
    assert headline.organised(made_up([[0.1, 0.9, 0.98]] * 2, swapped)) == pytest.approx(np.array([[0, 1 / 3, 1]] * 2))
    away = [[[1.0, 0.0], [2.0, 0.0], [0.0, 0.0]]] * 2
    assert headline.organised(made_up([[0.1, 0.9, 0.98]] * 2, away)) == pytest.approx(np.array([[0, -1, 1]] * 2))
    with pytest.raises(ValueError, match="expected couplings that change"):
        headline.organised(made_up([[0.1, 0.9, 0.98]], [[[1.0], [2.0], [1.0]]]))


def test_a_pattern_is_there_before_the_norms_have_grown():
    norms = np.random.default_rng(3).uniform(size=(2, 3, 40))
    norms[:, 1] = 0.2 + 0.1 * norms[:, 2]
    record = made_up([[0.1, 0.9, 0.98]] * 2, norms.tolist())
    found = headline.pattern(record)
    assert found[:, 1:] == pytest.approx(np.ones((2, 2)))
    assert found[:, 0] == pytest.approx([np.corrcoef(run[0], run[-1])[0, 1] for run in norms])
    assert float(headline.organised(record)[:, 1].max()) < 0.5
    with pytest.raises(ValueError, match="record: expected norms that differ"):
        headline.pattern(made_up([[0.1, 0.9, 0.98]]))


def test_a_design_with_exact_gradients_trains_another_network_from_the_same_start(monkeypatch):
    seen = []
    train = network.train
    monkeypatch.setattr(network, "train", lambda net, *a, **b: seen.append(net) or train(net, *a, **b))
    short = headline.SMOKE._replace(num_updates=1, frames=(1,))
    starts = [headline.run_one(1, design) for design in (short, short._replace(exact=True))]
    rules = [(net.attention.relative, net.attention.eliminate, net.attention.last_update) for net in seen]
    assert rules == [(True, False, True), (False, True, False)]
    # After one update the difference is that of two tolerances.
    assert starts[0]["loss"] == pytest.approx(starts[1]["loss"], rel=1e-3)


@pytest.mark.parametrize(
    ("more", "design", "seeds"), [(False, headline.ALL, range(1, 6)), (True, headline.MORE, range(6, 16))]
)
def test_a_record_is_that_of_its_plan(more, design, seeds):
    record = headline.recorded(more=more)
    assert record["complete"]
    assert record["parameters"] == 25_828
    assert record["design"] == json.loads(json.dumps(design._asdict()))
    assert [run["seed"] for run in record["runs"]] == list(seeds)
    assert all(run["frames"] == list(headline.FRAMES) for run in record["runs"])
    assert all(np.shape(run["coupling_norms"]) == (len(headline.FRAMES), 17 * 16) for run in record["runs"])
    assert record["data"] == {file.name: file.sha256 for file in mnist.FILES}


def test_the_ends_of_the_trainings_are_their_last_five_thousand_updates_and_those_to_one_half():
    assert tuple(range(16_000, 20_001, 1000)) == headline.LAST
    assert tuple(range(6000, 10_001, 1000)) == headline.HALF


def test_the_run_with_exact_gradients_is_there_and_reached_what_the_source_has_before_it_fell():
    (run,) = headline.recorded(exact=True)["runs"]
    assert max(run["accuracy"]) == pytest.approx(headline.PUBLISHED, abs=2e-3)
    assert run["accuracy"][-1] < 0.2


def test_the_sample_of_the_record_is_made_again():
    """With one thread on another machine only rounding differs; another seed is a hundred times as far."""
    record = headline.recorded(sample=True)
    first, second = (run["loss"] for run in record["runs"])
    again = headline.run_one(record["runs"][0]["seed"], headline.SMOKE)["loss"]
    apart = np.abs(np.subtract(first, second)).max()
    assert np.abs(again - first).max() < apart / 100


def test_the_mean_of_the_last_epochs_is_judged_by_two_one_sided_tests_over_seeds():
    def trained(*means):
        """Runs that have these accuracies in the last five epochs, on the average, and others before."""
        steps = 1e-4 * np.array([-2, -1, 0, 1, 2])
        runs = [[0.5] * (len(headline.FRAMES) - 5) + list(mean + steps) for mean in means]
        return {"runs": [{"frames": list(headline.FRAMES), "accuracy": run} for run in runs]}

    seeds = 2e-4 * np.array([-1, 1, -1, 1, 0])
    inside, edge, outside = (trained(*(headline.PUBLISHED + shift + seeds)) for shift in (3e-4, -1e-3, -3e-3))
    difference, verdict = headline.hovering(inside)
    assert (difference.mean, verdict.decision) == (pytest.approx(3e-4), "yes")
    ends = stats.t.ppf(0.95, 4) * difference.standard_error * np.array([-1, 1])
    assert np.abs(difference.mean + ends).max() < headline.MARGIN
    assert [headline.hovering(record)[1].decision for record in (edge, outside)] == ["undecided", "no"]
    assert headline.hovering(inside, headline.HALF)[0].mean == pytest.approx(0.5 - headline.PUBLISHED)
