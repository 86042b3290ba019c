"""What the lesson kinetic-ising claims, measured on the variables that its cells leave behind."""

import numpy as np

from chapters.kinetic_ising.published import published_system
from companion.claims import Measurement
from spinbook.ising import mean_field


def ratio(naive_off, tap_off, error):
    """|TAP - truth| / |naive - truth|, its standard error, and the ratio with the new term's sign turned round."""
    spread = error * abs(naive_off - tap_off) / naive_off**2
    return abs(tap_off / naive_off), spread, abs((2 * naive_off - tap_off) / naive_off)


def tap_closer_critical(off, error):
    value, spread, wrong = ratio(off["naive"][-1], off["TAP"][-1], error[-1])
    return Measurement(value, spread, rival=(wrong, spread))


def tap_closer(truth, bars, by_naive, by_tap):
    sigmas = abs(by_naive - truth) / bars
    seen = sigmas >= min(5, sigmas.max())  # where there is an error to see
    value, spread, wrong = max(zip(*ratio((by_naive - truth)[seen], (by_tap - truth)[seen], bars[seen]), strict=True))
    return Measurement(value, spread, rival=(wrong, spread))


def slope(prediction, found, bars):
    """Least squares through the origin, and its standard error."""
    norm = (prediction**2 / bars**2).sum()
    return (prediction * found / bars**2).sum() / norm, norm**-0.5


def collective_shift(J, x, ratios, beta_c, truth, bars, by_tap, moved):
    return Measurement(
        *slope(-moved, by_tap - truth, bars),
        rival=slope(-two_ticks(J, x, ratios * beta_c), by_tap - truth, bars),
    )


def two_ticks(J, x, betas):
    """The shift from the fluctuations of two ticks alone, without the memory of the crowd."""
    means = []
    for beta in betas:
        m = np.asarray(mean_field.steady_state(J, x, beta=beta).value)
        C_0 = np.diag(1 - m**2)
        A = beta * C_0 @ J
        missed = ((J @ A @ C_0 @ A.T) * J).sum(axis=1)
        means.append(np.linalg.solve(np.eye(len(m)) - A, -(beta**2) * m * (1 - m**2) * missed).mean())
    return np.array(means)


def high_temperature_expansion(widths, ends, seen, seen_error):
    miss = dict(zip(widths, zip(abs(ends["tap"] - seen), seen_error, strict=True), strict=True))
    return Measurement(*miss[0.5], rival=miss[0.4])


def averaged_tanh(widths, ends, seen, seen_error):
    (k,) = np.flatnonzero(widths == 0.5)
    value, rival = (abs(ends[name][k] - seen[k]) for name in ("averaged", "tap"))
    return Measurement(value, seen_error[k], rival=(rival, seen_error[k]))


def test_by_hand(average, guess, tap, naive):
    assert [round(m, 3) for m in (average, np.tanh(1), guess)] == [0.684, 0.762, 0.680]
    assert np.allclose(tap(np.zeros(1), np.array([[0.5]]), 1.0, 1.0), guess)
    assert np.allclose(naive(np.zeros(1), np.array([[0.5]]), 1.0, 1.0), np.tanh(1))
    t = np.tanh(1)
    assert round(t - t * (1 - t**2) / 4, 3) == 0.682
    assert [round(np.tanh(1.5) - t, 2), round(t - np.tanh(0.5), 2)] == [0.14, 0.30]


def test_tick_has_the_mean_of_its_formula(tick):
    assert abs(tick(np.ones((100_000, 1)), np.eye(1), 0.2, 0.7).mean() - np.tanh(0.7 * 1.2)) < 0.015


def test_the_page_draws_the_crowd_of_the_source(x, J, z):
    fields, couplings = published_system()
    assert np.allclose(x, fields, atol=1e-7)
    assert np.allclose(J, couplings, atol=1e-8)
    assert np.allclose(z, (couplings - 1 / 512) * 10, atol=1e-6)


def test_own_code_and_library_agree(shift, tap, averaged, J, x, z):
    m = np.asarray(mean_field.steady_state(J, x, beta=1.3).value)
    assert np.allclose(shift(m, J, 1.3), mean_field.collective_shift(m, J, beta=1.3), atol=1e-10)
    strong = 1 / 512 + 0.5 * z
    for own, step in ((tap, mean_field.tap_step), (averaged, mean_field.averaged_step)):
        assert np.allclose(own(m, strong, x, 2.0), step(m, strong, x, beta=2.0), atol=1e-12)


def test_narrow_fields_are_safe_and_the_disorder_alone_does_not_tell(kinds, strengths, spread, miss):
    assert miss[spread < 0.4].max() < 0.02
    assert miss[spread > 0.7].min() > 0.02
    at_08 = dict(zip(kinds, miss[:, np.argmin(abs(strengths - 0.8))], strict=True))
    assert at_08[(1.5, 1, 0.5)] > 0.1
    assert at_08[(3, 1, 0.5)] < 0.001
    # Where TAP is off by a hundredth, as the end of the lesson says.
    first = {kind: strengths[row > 0.012].min(initial=9) for kind, row in zip(kinds, miss, strict=True)}
    assert abs(first[(2, 1, 0.5)] - 0.8) < 0.01
    assert abs(first[(1.5, 1, 0.5)] - 0.5) < 0.01
    assert first[(3, 1, 0.5)] == 9


def test_the_better_equation_is_that_of_the_runs(sample, steady, kinds, z, x):
    for number, (beta, J_mu, X_0) in enumerate(kinds):
        model = J_mu / 512 + 0.8 / beta * z, X_0 * x / 0.5, beta
        mean, error = sample(100 + number, *model, runs=128)
        assert abs(steady("averaged", *model).mean() - mean) < 0.012 + 4 * error


def test_exercise_1(naive, tap):
    small, alone = np.array([1e-4]), np.eye(1)
    assert abs(np.tanh(1) - 0.762) < 5e-4
    assert abs(naive(small, alone, 0.0, 1.0)[0] / small[0] - 1) < 1e-4
    assert abs(tap(small, alone, 0.0, 1.0)[0] / small[0] - 0.5) < 1e-4


def test_exercise_2():
    J = np.array([0.1, 0.05])
    truth, wrong = (np.tanh(1 + J) + np.tanh(1 - J)) / 2, np.full(2, 0.7)
    for _ in range(50):
        wrong = np.tanh(1 + J**2 * wrong)
    error = wrong - truth
    assert np.allclose(error / (np.tanh(1) - truth), 2, atol=0.01)
    assert abs(error[0] / error[1] - 4) < 0.01


def test_exercise_3():
    average = np.log(np.cosh(1.25) / np.cosh(0.75)) / 0.5
    assert [round(average, 4), round(np.tanh(1), 4)] == [0.7550, 0.7616]
    t = np.tanh(1)
    assert round(-t * (1 - t**2) / 48, 3) == round(average - t, 3) == -0.007


def test_exercise_4(mutual_means, mutual_error):
    off = {name: abs(mutual_means[name] - mutual_means["runs"]) for name in ("tap", "averaged")}
    assert off["tap"] < 0.004 + 4 * mutual_error
    assert off["averaged"] > off["tap"] + 4 * mutual_error
