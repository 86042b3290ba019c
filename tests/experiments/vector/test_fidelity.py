"""What the record of mean-field errors rests on: sampling in halves, the shared mode, and the cases themselves."""

import jax
import numpy as np
import pytest

from experiments.vector import fidelity
from experiments.vector.fidelity import Case
from spinbook import records, sphere
from spinbook.precision import enable_x64
from spinbook.vector import mean_field
from tests.experiments.vector import test_calibration


def test_the_means_of_a_spin_that_couples_to_itself_are_those_of_its_exact_distribution():
    D, beta = 16, 2.0
    R, (exact, _) = sphere.radius(D), test_calibration.alone(D, beta)
    x = R * np.eye(D)[:1]
    halves = fidelity.sampled(jax.random.key(0), np.ones((1, 1)), x, beta=beta, replicas=256, steps=60, transient=20)
    found = np.asarray(halves.means)[..., 0, 0] / R
    error = found.std(ddof=1) / np.sqrt(found.size)
    assert abs(found.mean() - exact) < 4.5 * error
    # The naive answer would be seen: it is the fixed point of one response.
    m = R
    for _ in range(200):
        m = float(np.asarray(sphere.magnetization(np.array([R + m] + (D - 1) * [0.0]), beta=beta))[0])
    assert abs(m / R - exact) > 20 * error


def test_conditional_means_of_spins_without_couplings_are_the_response_and_do_not_fluctuate():
    x = np.random.default_rng(0).normal(size=(3, 8))
    halves = fidelity.sampled(jax.random.key(1), np.zeros((3, 3)), x, beta=1.3, replicas=16, steps=3, transient=1)
    assert np.abs(np.asarray(halves.means) - np.asarray(sphere.magnetization(x, beta=1.3))).max() < 1e-5


def test_spread_means_are_shorter_than_naive_ones_by_the_first_order_of_the_spread():
    # A weak coupling: f(s + e) = f(s) + f'(s) e with e the squared length that the fluctuations add.
    case = Case("rows", 1.0, 1.0, False, 12, 32, 0)
    with enable_x64(True):
        J, x = fidelity.system(case)
        J = 0.01 * J
        naive = fidelity.steady_means(J, x, 1.0, fidelity.STEPS["naive"])
        found = fidelity.spread_means(J, x, beta=1.0)
        drive = x + J @ naive
        gains = sphere.exact.gains(drive, np.asarray(1.0))
        added = J**2 @ (sphere.squared_radius(32) - np.sum(naive**2, axis=1))
        expected = (np.asarray(gains.f1) / 2 * added)[:, None] * drive
    assert np.linalg.norm(found - naive - expected) < 0.02 * np.linalg.norm(expected)


@pytest.mark.parametrize("causal", [False, True])
def test_rows_of_a_case_sum_to_one_and_see_only_what_they_may(causal):
    J, x = fidelity.system(Case("rows", 1.0, 4.0, causal, 8, 16, 1, field=0.25))
    assert J.sum(axis=1) == pytest.approx(np.ones(8))
    assert (J[np.triu_indices(8, 1)].max() == 0) == causal
    assert np.linalg.norm(x, axis=1) == pytest.approx(np.full(8, 0.25 * sphere.radius(16)))


def test_a_shared_mode_that_does_not_die_out_has_no_feedback():
    # chi = beta (1/2 - 1/D) without magnetizations: one at beta = 3 in six dimensions.
    J, m = np.full((4, 4), 0.25), np.zeros((4, 6))
    assert mean_field.collective_mode(J, m, beta=2.9)[1] > 10
    for beta in (3.0, 4.0):
        chi, r, _ = mean_field.collective_mode(J, m, beta=beta)
        assert chi == pytest.approx(beta / 3)
        assert np.isnan(r)


def test_spins_without_a_field_begin_along_the_common_direction():
    x = np.zeros((2, 6))
    x[0, 0] = 1.0
    halves = fidelity.sampled(jax.random.key(0), np.eye(2), x, beta=1.0, replicas=8, steps=1, transient=0)
    # After one step a spin that sees itself only has the mean of where it began, the same in both halves.
    R = sphere.radius(6)
    expected = np.asarray(sphere.magnetization(np.full(6, R * 6**-0.5), beta=1.0))
    assert np.abs(np.asarray(halves.means)[:, :, 1] - expected).max() < 1e-5


def test_replicas_that_groups_do_not_share_are_refused():
    with pytest.raises(ValueError, match="replicas: expected a multiple of 8, the number of groups, got 12"):
        fidelity.sampled(jax.random.key(0), np.eye(2), np.ones((2, 4)), beta=1.0, replicas=12, steps=1, transient=0)


def test_recorded_halves_forget_where_they_began():
    # Errors against sampled means say nothing where they do not, as in weak fields when it is cold.
    found = [(case, float(found["forgotten"])) for case, found in fidelity.record() if case.kind == "rows"]
    assert max(value for case, value in found if case.field == 1) < 2
    assert max(value for case, value in found if case.field < 1 and case.beta == 4) > 2


def test_a_case_of_the_record_is_sampled_again():
    case, recorded = next(row for row in fidelity.record() if row[0].kind == "collective")
    key = jax.random.key(sum(ord(c) * 31**k for k, c in enumerate(repr(case))) % 2**31)
    sizes = {"beta": case.beta, "replicas": case.replicas, "steps": case.steps, "transient": 30}
    with enable_x64(True):
        J, x = fidelity.system(case)
        m = fidelity.steady_means(J, x, case.beta, fidelity.STEPS["naive"])
        theory = fidelity.independent_correlations(J, m, case.beta)
        delayed = np.asarray(fidelity.sampled(key, J, x, delayed=True, **sizes).delayed, float)
        mode = mean_field.collective_mode(J, m, beta=case.beta)
    # The same random numbers give the same values, but where rounding sends a draw another way.
    value, error = recorded["delayed"][0]
    assert abs(fidelity.jackknife(fidelity.squared_error(theory), delayed)[0] - value) < 6 * error
    assert np.array(mode) == pytest.approx(recorded["mode"], abs=1e-3)


def test_the_rows_of_attention_are_those_of_the_record():
    table = records.table("attention-rows")
    found = [row for case, row in fidelity.record() if case.kind == "rows" and case.field == 1]
    assert table.n_eff.to_numpy() == pytest.approx(np.concatenate([row["n_eff"] for row in found]), rel=0.01)
    for k, name in enumerate(("naive", "tap", "spread")):
        errors = np.sqrt(np.maximum(np.concatenate([row["by_row"][k] for row in found]), 0))
        assert table[name].to_numpy() == pytest.approx(errors, rel=0.06, nan_ok=True)
