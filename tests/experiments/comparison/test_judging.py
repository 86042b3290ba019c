"""Verdicts are those of Student's tests, by scipy and by simulation, and ties and failures count as is said."""

import math

import numpy as np
import pytest
from scipy import stats

from experiments.comparison import judging

RNG = np.random.default_rng(5)
SAMPLES = [RNG.normal(0.3, 1.0, size=n) for n in (2, 3, 5, 12)]


@pytest.mark.parametrize("sample", SAMPLES, ids=len)
def test_the_interval_is_scipys_for_the_mean_of_the_differences(sample):
    other = RNG.normal(size=len(sample))
    found = judging.paired(sample + other, other, confidence=0.9)
    expected = stats.ttest_rel(sample + other, other).confidence_interval(0.9)
    np.testing.assert_allclose([found.low, found.high], expected, rtol=1e-10)
    assert found.mean == pytest.approx(sample.mean())
    assert found.num_pairs == len(sample)


@pytest.mark.parametrize("sample", SAMPLES, ids=len)
@pytest.mark.parametrize("margin", [-0.5, 0.0, 1.0])
def test_one_sided_probabilities_are_scipys(sample, margin):
    found = judging.above(sample, margin)
    assert found.p_yes == pytest.approx(stats.ttest_1samp(sample, margin, alternative="greater").pvalue, rel=1e-10)
    assert found.p_no == pytest.approx(stats.ttest_1samp(sample, margin, alternative="less").pvalue, rel=1e-10)


@pytest.mark.parametrize("sample", SAMPLES, ids=len)
@pytest.mark.parametrize("margin", [0.2, 1.0, 3.0])
def test_equivalence_is_two_one_sided_tests_and_the_interval_within_the_margins(sample, margin):
    found = judging.equivalent(sample, margin)
    low = stats.ttest_1samp(sample, -margin, alternative="greater").pvalue
    high = stats.ttest_1samp(sample, margin, alternative="less").pvalue
    assert found.p_yes == pytest.approx(max(low, high), rel=1e-10)
    interval = judging.paired(sample, np.zeros(len(sample)), confidence=0.9)
    assert (found.decision == "yes") == (-margin < interval.low and interval.high < margin)


def rejections(judge, mean, size, repetitions=4000):
    """How often a verdict is yes and no, on normal differences of this mean and of standard deviation 1."""
    rng = np.random.default_rng(size)
    decisions = [judge(rng.normal(mean, 1.0, size)).decision for _ in range(repetitions)]
    return tuple(decisions.count(word) / repetitions for word in ("yes", "no"))


def near(expected, repetitions=4000):
    return pytest.approx(expected, abs=4 * math.sqrt(expected * (1 - expected) / repetitions) + 1e-3)


@pytest.mark.parametrize("num_pairs", [100, 10**4, 10**6, 10**9])
def test_many_pairs_find_every_equivalence_and_half_of_those_that_are_as_near_as_it_gets(num_pairs):
    assert judging.equivalence_power(num_pairs, 1.0, 1.0) == pytest.approx(1, abs=1e-5)
    # With a margin of z standard errors both ends are passed with probability 2 Phi(z - 1.645) - 1.
    expected = 2 * stats.norm.cdf(1.0) - 1
    margin = (1 + stats.norm.ppf(0.95)) / math.sqrt(num_pairs)
    assert judging.equivalence_power(num_pairs, margin, 1.0) == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("size", [3, 8])
def test_a_one_sided_test_is_wrong_as_often_as_its_level_at_the_margin(size):
    yes, no = rejections(lambda d: judging.above(d, 0.5), 0.5, size)
    assert yes == near(0.05)
    assert no == near(0.05)


@pytest.mark.parametrize("size", [6, 10])
def test_equivalence_is_claimed_wrongly_no_more_often_than_its_level(size):
    yes, no = rejections(lambda d: judging.equivalent(d, 2.0), 2.0, size)
    # The other margin is so far away that only one of the two tests can fail.
    assert yes == near(0.05)
    assert no == near(0.025)


@pytest.mark.parametrize(("size", "distance"), [(4, 1.0), (10, 0.8)])
def test_the_power_of_a_one_sided_test_is_that_of_simulation(size, distance):
    power = judging.one_sided_power(size, distance, 1.0)
    assert rejections(lambda d: judging.above(d, 0.0), distance, size)[0] == near(power)


@pytest.mark.parametrize(("size", "margin"), [(5, 2.0), (12, 1.0), (4, 0.8)])
def test_the_power_of_equivalence_is_that_of_simulation(size, margin):
    power = judging.equivalence_power(size, margin, 1.0)
    assert rejections(lambda d: judging.equivalent(d, margin), 0.0, size)[0] == near(power)


def test_powers_depend_on_ratios_alone_and_grow_with_the_pairs():
    assert judging.equivalence_power(7, 0.02, 0.015) == pytest.approx(judging.equivalence_power(7, 4.0, 3.0), rel=1e-6)
    powers = [judging.equivalence_power(n, 1.0, 1.0) for n in range(2, 30)]
    assert (np.diff(powers) > 0).all()
    needed = judging.pairs_needed(lambda n: judging.equivalence_power(n, 1.0, 1.0), power=0.9)
    assert powers[needed - 3] < 0.9 <= powers[needed - 2]


def test_the_number_of_pairs_stays_between_its_bounds():
    assert judging.pairs_needed(lambda n: 1.0, least=4) == 4
    assert judging.pairs_needed(lambda n: 0.0, most=9) == 9


@pytest.mark.parametrize("size", [3, 5])
def test_the_spread_that_a_pilot_allows_covers_the_true_one_as_often_as_is_said(size):
    rng = np.random.default_rng(2)
    covered = np.mean([judging.greatest_spread(rng.normal(size=size), confidence=0.8) >= 1 for _ in range(4000)])
    assert covered == near(0.8)


def test_differences_without_spread_decide_unless_they_are_a_tie_with_the_margin():
    assert judging.above([0.3] * 5, 0.1).decision == "yes"
    assert judging.above([0.3] * 5, 0.3).decision == "undecided"
    assert judging.above([0.1] * 5, 0.3).decision == "no"
    assert judging.equivalent([0.0] * 5, 0.01).decision == "yes"
    assert judging.equivalent([0.01] * 5, 0.01).decision == "undecided"
    assert judging.paired([0.4] * 3, [0.1] * 3).standard_error == 0


def verdict(p_yes, p_no):
    return judging.Verdict("undecided", p_yes, p_no)


def test_all_together_are_yes_only_if_each_is_and_no_only_after_correction():
    assert judging.together([verdict(0.01, 0.9), verdict(0.049, 0.9)]) == ("yes", 0.049, 1.0)
    assert judging.together([verdict(0.01, 0.9), verdict(0.051, 0.9)]).decision == "undecided"
    assert judging.together([verdict(0.9, 0.02), verdict(0.01, 0.9)]) == ("no", 0.9, 0.04)
    assert judging.together([verdict(0.9, 0.03), verdict(0.01, 0.9)]).decision == "undecided"


def test_a_wrong_no_of_several_questions_is_as_rare_as_of_one():
    rng, wrong = np.random.default_rng(0), 0
    for _ in range(2000):
        each = [judging.above(rng.normal(0.5, 1.0, 6), 0.5) for _ in range(4)]
        wrong += judging.together(each).decision == "no"
    assert wrong / 2000 < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 2000)


def test_failed_runs_count_as_guesses():
    assert judging.filled([0.9, math.nan, 0.8], [False, True, True], 0.1).tolist() == [0.9, 0.1, 0.1]
