"""The statistics behind the verdicts: Student's distribution from the incomplete beta function, and pairs counted."""

import gzip
import itertools
import json

import mpmath
import numpy as np
import pytest

from experiments import records
from experiments.comparison import judging, summary


def above(t, degrees):
    """P(T > t) of Student's t."""
    degrees, t = mpmath.mpf(degrees), mpmath.mpf(t)
    tail = mpmath.betainc(degrees / 2, mpmath.mpf("0.5"), 0, degrees / (degrees + t * t), regularized=True) / 2
    return tail if t >= 0 else 1 - tail


def quantile(share, degrees):
    return mpmath.findroot(lambda t: above(t, degrees) - (1 - mpmath.mpf(share)), 2, tol=1e-40)


OURS = [0.912, 0.934, 0.921, 0.917, 0.940]
THEIRS = [0.905, 0.929, 0.903, 0.921, 0.922]


def moments():
    d = [mpmath.mpf(str(a)) - mpmath.mpf(str(b)) for a, b in zip(OURS, THEIRS, strict=True)]
    mean = sum(d) / len(d)
    return mean, mpmath.sqrt(sum((x - mean) ** 2 for x in d) / (len(d) - 1) / len(d)), len(d) - 1


def test_intervals_of_paired_runs():
    mean, error, degrees = moments()
    half = quantile("0.975", degrees) * error
    found = judging.paired(OURS, THEIRS)
    expected = [float(x) for x in (mean, error, mean - half, mean + half)]
    assert list(found[:4]) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("margin", ["0", "0.005", "0.01"])
def test_one_sided_tests_against_a_margin(margin):
    mean, error, degrees = moments()
    expected = above((mean - mpmath.mpf(margin)) / error, degrees)
    differences = np.subtract(OURS, THEIRS)
    assert judging.above(differences, float(margin))[1] == pytest.approx(float(expected), rel=1e-9)


def test_the_normal_limit_and_the_tail_of_one_degree():
    # Many degrees of freedom are a normal distribution; one is Cauchy's.
    assert mpmath.almosteq(above(1, 1), mpmath.mpf(1) / 4, abs_eps=mpmath.mpf(10) ** -45)
    assert float(above("1.96", 10**9)) == pytest.approx(float(mpmath.ncdf("-1.96")), rel=1e-8)


def test_the_share_of_pairs_that_four_heads_win_counted_one_by_one():
    # Claim comparison.heads, from the file of the record and two loops.
    data = gzip.decompress(records.place("comparison", "comparison.json.gz").read_bytes())
    rows = {(row["module"], row["task"]): row for row in json.loads(data)["rows"]}
    four, one = (
        [run["accuracy"] for run in rows[f"naive spins, one step, {heads}", "digits"]["runs"] if not run["failure"]]
        for heads in ("4 heads", "1 head")
    )
    share = sum((a > b) + (a == b) / 2 for a, b in itertools.product(four, one)) / (len(four) * len(one))
    summaries = summary.summarize(records.of_book("comparison"))
    found = summary.wins(
        *(summary.find(summaries, f"naive spins, one step, {heads}", "digits") for heads in ("4 heads", "1 head"))
    )
    assert found == share > 0.95
