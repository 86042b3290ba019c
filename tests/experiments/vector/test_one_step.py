"""What the recorded table of one-step errors rests on: its systems, its averages, and the seal of the record."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from experiments import records
from experiments.vector import one_step
from experiments.vector.one_step import Case, System
from spinbook import sphere


@pytest.fixture(scope="module")
def small() -> System:
    """Two sites of four components."""
    rng = np.random.default_rng(3)
    m, x = rng.normal(size=(2, 2, 4))
    m *= 0.6 * sphere.radius(4) / np.linalg.norm(m, axis=1, keepdims=True)
    return System(np.array([[0.0, 0.3], [-0.2, 0.1]]), m, x)


def test_systems_are_those_of_the_page_and_follow_each_other():
    found = one_step.systems()
    # Drawn from one generator one after another: those of a generator that stands elsewhere are others.
    again = one_step.systems(np.random.default_rng(2666))
    for system, other in zip(found, again, strict=True):
        N, D = system.fields.shape
        R = sphere.radius(D)
        assert system.couplings.shape == (N, N)
        assert np.linalg.norm(system.fields, axis=1) == pytest.approx(np.full(N, R))
        lengths = np.linalg.norm(system.magnetizations, axis=1) / R
        assert ((lengths > 0.4) & (lengths < 0.8)).all()
        assert not np.isclose(system.couplings, other.couplings).any()
    assert not np.isclose(found[1].fields, found[3].fields).any()


def test_without_couplings_the_exact_response_makes_no_error_and_there_is_no_noise(small):
    found = one_step.measure(Case(0, 1.0, 1024), small._replace(couplings=np.zeros((2, 2))))
    by_name = dict(zip(one_step.NAMES, found["errors"], strict=True))
    assert max(by_name["naive, exact"], by_name["TAP, exact"], float(found["noise"])) < 1e-9
    # What is left of the other two is the error of the large-D response.
    h = small.fields
    gap = np.asarray(sphere.magnetization_large_d(h, beta=1.0) - sphere.magnetization(h, beta=1.0))
    expected = np.sqrt(np.mean(np.sum(gap**2, axis=1))) / sphere.radius(4)
    assert by_name["naive, large D"] == pytest.approx(expected, rel=1e-6)
    assert by_name["TAP, large D"] == pytest.approx(expected, rel=1e-6)


def test_averages_over_draws_agree_with_the_spread_of_one_neighbour(small):
    # A weak coupling: the mean of phi(h + e) is phi(h) + phi''(e, e) / 2, and the naive error is the second term.
    J = np.array([[0.0, 0.05], [0.0, 0.0]])
    found = one_step.measure(Case(0, 1.0, 65536), small._replace(couplings=J))
    m, h = small.magnetizations, small.fields + J @ small.magnetizations
    Var = np.asarray(sphere.covariance(sphere.field(m[1], beta=1.0), beta=1.0))
    values, vectors = np.linalg.eigh(Var)
    pushes = J[0, 1] * (np.sqrt(values) * vectors).T
    second = sphere.second_derivative(np.broadcast_to(h[0], pushes.shape), pushes, beta=1.0)
    expected = np.linalg.norm(np.asarray(second).sum(0) / 2) / np.sqrt(2) / sphere.radius(4)
    naive = found["errors"][one_step.NAMES.index("naive, exact")]
    # The next order is smaller by the coupling.
    assert abs(naive - expected) < 0.05 * expected + 3 * found["noise"]
    assert found["noise"] < 0.05 * expected


def test_a_quick_run_writes_all_digits(tmp_path, monkeypatch):
    monkeypatch.setattr(one_step, "measure", lambda case: {"noise": np.array(case.system + 1 / 3)})
    # A function that is made here travels to no other process.
    with ThreadPoolExecutor(1) as executor:
        one_step.compute(tmp_path, True, executor=executor, progress=False)
    monkeypatch.setattr(records.resources, "files", lambda _: tmp_path)
    assert one_step.record()[0][0] == Case(0, 0.4, 1024)
    assert [found["noise"] for _, found in one_step.record()] == [1 / 3, 4 / 3]


def test_a_row_of_the_record_is_measured_again():
    # The lengths of two runs with the same systems differ by a few standard errors of the sampling at most.
    record = one_step.record()
    case, recorded = record[5]
    errors = one_step.measure(case)["errors"]
    assert np.abs(errors - recorded["errors"]).max() < 2 * recorded["noise"]
    assert np.abs(errors - record[4][1]["errors"]).max() > 2 * recorded["noise"]
