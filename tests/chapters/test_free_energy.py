"""The unguarded solver, exact magnets, energies and trainings of the audit of free energies, against what is known."""

import numpy as np
import pytest
import torch

from chapters import free_energy as chapter
from spinbook.free_energy import VectorSpinModel, exact, saddle

DOUBLE = torch.float64
NO_COUPLINGS, UNIT = np.zeros((1, 1)), np.eye(1, 4)


def hessian(P, G):
    return P * (P + P @ G @ P) / 2


@pytest.mark.parametrize(
    ("start", "root", "how"), [(1.0, 0.809017, "arrived"), (-0.2, -0.309017, "elsewhere"), (3.0, np.nan, "lost")]
)
def test_full_steps_arrive_at_either_root_of_one_spin_or_are_lost(start, root, how):
    # 1 - 1 / 2t - 1 / 4t^2 = 0 at t = (1 +- sqrt 5) / 4.
    t, end = chapter.newton(NO_COUPLINGS, UNIT, hessian, np.array([start]))
    assert t[0] == pytest.approx(root, abs=1e-6, nan_ok=True)
    assert end == how


def test_full_steps_from_nearby_arrive_at_the_minimum_of_the_library():
    rng = np.random.default_rng(0)
    J = 0.1 * np.triu(rng.normal(size=(5, 5)), 1)
    J, H = J + J.T, rng.normal(size=(5, 8)) / 8**0.5
    model = VectorSpinModel(5, 8, 1.0, J)
    t, end = chapter.newton(J, H, hessian, np.ones(5))
    assert end == "arrived"
    np.testing.assert_allclose(t, model.saddle_point(H).value, atol=1e-9)
    one, _ = chapter.newton(J, H, hessian, np.ones(1))
    assert one[0] == pytest.approx(float(model.saddle_point(H, t0=np.ones(1)).value[0]), abs=1e-9)


def test_the_complete_magnet_of_two_spins_is_that_of_a_quadrature_over_angles():
    J = torch.tensor([[0.0, 0.2], [0.2, 0.0]], dtype=DOUBLE)
    fields = 0.3 * torch.eye(1, 8, dtype=DOUBLE).expand(2, 8)
    assert chapter.complete_magnet(2, 8) == pytest.approx(float(exact.free_energy(fields, J)) / 2, abs=1e-6)


def test_the_complete_magnet_tends_to_one_spin_in_the_mean_of_the_others():
    gaps = [chapter.complete_magnet(n, 8) - chapter.many_spins(8) for n in (64, 128)]
    assert gaps[0] / gaps[1] == pytest.approx(2, abs=0.15)  # 1 / N, up to the next order


def test_the_saddle_of_the_complete_magnet_is_right_for_many_components():
    few, many = (abs(chapter.at_saddle(16, d) - chapter.complete_magnet(16, d)) for d in (8, 32))
    assert few / many == pytest.approx(4, abs=0.6)


@pytest.mark.parametrize("degree", [2, 6, 10])
def test_a_ring_holds_the_sum_or_the_sum_of_squares_of_its_couplings(degree):
    rng = np.random.default_rng(0)
    alike, signed = chapter.ring(degree, "sum", rng), chapter.ring(degree, "squares", rng)
    np.testing.assert_allclose(alike.sum(axis=1), 0.3)
    np.testing.assert_allclose((signed**2).sum(axis=1), 0.09)
    assert signed.min() < 0
    for J in (alike, signed):
        assert np.array_equal(J, J.T)
        assert ((J != 0).sum(axis=1) == degree).all()


def test_naive_mean_field_neglects_the_sum_of_squares():
    (at_sum, _), (at_squares, error) = (
        chapter.sparse_over_dense(fixed, 12, np.random.default_rng(0)) for fixed in ("sum", "squares")
    )
    # At a fixed sum the sum of squares is five times as large for two neighbours as for ten.
    assert at_sum == pytest.approx(5, rel=0.3)
    assert abs(at_squares - 1) < 4 * error + 0.1


def test_relaxed_spins_have_nearly_the_largest_energy_that_their_couplings_allow():
    N, d = 64, 32
    at_random, aligned, relaxed = chapter.coupling_energies(N, d)
    # Couplings of variance 1 / (2 N d) on N (N - 1) pairs, each counted twice.
    assert aligned == pytest.approx(d * (2 * (N - 1) / (2 * d)) ** 0.5, rel=0.25)
    assert at_random == pytest.approx(aligned / d**0.5, rel=0.3)
    assert 0.75 < relaxed / (N * d * (2 / d) ** 0.5) < 1.02


def test_differences_are_those_of_automatic_differentiation():
    generator = torch.Generator().manual_seed(0)
    J = 0.1 * (torch.ones(3, 3, dtype=DOUBLE) - torch.eye(3, dtype=DOUBLE))
    h, way = torch.randn(2, 3, 4, generator=generator, dtype=DOUBLE) / 2
    x = h.clone().requires_grad_()
    VectorSpinModel(3, 4, 1.0, J).magnetizations(x).square().sum().backward()
    assert chapter.by_differences(J, h, way) == pytest.approx(float((x.grad * way).sum()), abs=1e-9)


def test_one_step_is_timed(monkeypatch):
    taken, original = [], saddle.minimum

    def counted(*arguments, **options):
        taken.append(original(*arguments, **options))
        return taken[-1]

    monkeypatch.setattr(saddle, "minimum", counted)
    J = 0.1 * (torch.ones(30, 30, dtype=DOUBLE) - torch.eye(30, dtype=DOUBLE))
    h = torch.ones(30, 4, dtype=DOUBLE)
    assert chapter.seconds(J, h, repeats=3) > 0
    assert [int(found.num_steps) for found in taken] == [1, 1, 1]


def test_a_scale_of_the_weights_is_a_scale_of_queries_and_of_keys():
    plain, twice = chapter.query_key(4, 6), chapter.query_key(4, 6, 2.0)
    for one, two in zip(plain.parameters(), twice.parameters(), strict=True):
        assert torch.equal(two, 2 * one)


def test_channel_terms_are_what_a_fixed_magnet_lacks_of_the_gradient():
    H, terms, W = chapter.channel_terms(4, 6, 0, 8)
    assert H.shape == terms.shape == (8, 6)
    maps = chapter.query_key(4, 6, 0.5)
    h = H.reshape(2, 4, 6)[0]
    with torch.no_grad():
        total = VectorSpinModel(4, 6, 1.0, maps).field_gradient(h)
        fixed = VectorSpinModel(4, 6, 1.0, maps(h)).magnetizations(h)
    np.testing.assert_allclose(terms[:4], total - fixed, atol=1e-12)
    np.testing.assert_allclose(W, (maps.to_queries.weight.T @ maps.to_keys.weight).detach())


def test_a_network_learns_the_channel_terms_and_nothing_from_the_wrong_tokens():
    assert chapter.learned(64, 4, 1024, 150) > 0.5
    assert chapter.learned(64, 4, 1024, 150, shuffled=True) < 0.1
