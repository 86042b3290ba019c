"""Verdicts are those of Student's tests, by scipy, and ties and failures count as is said."""

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


def test_holm_rejects_until_the_first_that_is_not():
    # 0.01 < 0.05 / 4 and 0.012 < 0.05 / 3, but 0.03 > 0.05 / 2, which keeps 0.04 from being asked.
    assert judging.holm([0.04, 0.01, 0.03, 0.012]).tolist() == [False, True, False, True]
    assert not judging.holm([0.02, 0.02, 0.02]).any()
