"""What the lesson comparison claims, measured on the variables that its cells leave behind."""

import math

import numpy as np
from scipy import stats
from sklearn.linear_model import LogisticRegression

from companion.claims import Measurement
from experiments.comparison import tasks

MARGIN = 0.5
"""Of the plan of MNIST, in percentage points, whatever a reader makes of it on the page."""
SPINS = "naive spins, one step, 4 heads"
MIXERS = ("pooling mixer", "identity mixer, averaged", "identity mixer")


def accuracies(runs, row, task, updates):
    its = runs[(runs.module == row) & (runs.task == task) & (runs.updates == updates)]
    return its.accuracy.dropna().to_numpy()


def loses(points, direction="greater", times=12):
    """P value that the loss is at most the margin, or at least, for six rows and both sides."""
    return min(1.0, times * stats.ttest_1samp(points, MARGIN, alternative=direction).pvalue)


def residual(lost):
    return Measurement(loses(lost["no residual"]), rival=loses(lost["local pooling"]))


def feed_forward(lost):
    return Measurement(loses(lost["no feed-forward"]), rival=loses(lost["local pooling"]))


def normalisation(lost):
    without, mixing = lost["no normalisation"], lost["identity mixer"]
    return Measurement(without.mean(), without.sem(), rival=(mixing.mean(), mixing.sem()))


def plateau_identity(lost):
    return Measurement(loses(lost["identity mixer"], "less"), rival=loses(lost["no residual"], "less"))


def plateau_spins(lost):
    return Measurement(loses(lost[SPINS]), rival=loses(lost["identity mixer"]))


def recall_needs_attention(runs, wins):
    share = {
        task: min(wins(*(accuracies(runs, row, task, 300) for row in ("vanilla", mixer))) for mixer in MIXERS)
        for task in ("recall", "digits")
    }
    return Measurement(share["recall"], rival=share["digits"])


def memory_catches_up(runs, wins):
    soon, late = (
        wins(*(accuracies(runs, row, "digits", updates) for row in ("vanilla", "memory, three steps")))
        for updates in (300, 1500)
    )
    return Measurement(late, rival=soon)


def digits_are_linear(runs, wins):
    digits = tasks.classify_digits()
    (X, y), (X_new, y_new) = (
        (part.features[:, 1:, :4].reshape(len(part.labels), -1), part.labels[:, 0])
        for part in (digits.train, digits.test)
    )
    labels = y, np.random.default_rng(7).permutation(y)
    right, null = (100 * LogisticRegression(max_iter=2000).fit(X, each).score(X_new, y_new) for each in labels)
    vanilla = accuracies(runs, "vanilla", "digits", 300)
    return Measurement(wins([right], vanilla), rival=wins([null], vanilla))


def test_by_hand(wins, by_luck):
    scores = np.array([0.85, 0.90, 0.91, 0.92])
    ways = [(i, j) for i in range(4) for j in range(i)]
    shares = sorted((4 * wins(scores[list(way)], np.delete(scores, way)) for way in ways), reverse=True)
    assert shares == [4, 3, 2, 2, 1, 0]
    assert wins([0.90, 0.92], [0.85, 0.91]) == 0.75
    assert [by_luck(2, 2), math.comb(10, 5), by_luck(5, 5), by_luck(3, 5)] == [3, 252, 126, 28]


def test_how_often_luck_makes_a_sweep(by_luck):
    rng = np.random.default_rng(0)
    for n in (3, 5):
        a, b = rng.normal(size=(2, 100_000, 5))
        a = a[:, :n]
        one_way = (a.min(axis=1) > b.max(axis=1)) | (a.max(axis=1) < b.min(axis=1))
        share = 1 / by_luck(n, 5)
        assert abs(one_way.mean() - share) < 4 * np.sqrt(share / len(a))


def test_the_words_about_mnist(lost, stacks, wins, runs):
    means, bars = lost.mean(), lost.sem() * stats.t.ppf(0.975, len(lost) - 1)
    surely = {row for row in lost if means[row] - bars[row] > MARGIN}
    assert surely == {SPINS, "no residual", "no feed-forward"}
    sweeps = {row for row in lost if wins(stacks["vanilla"], stacks[row]) == 1}
    assert sweeps == set(lost) - {"local pooling"}
    assert abs(means["identity mixer"] - 0.25) < 0.05
    assert 3 < means[SPINS] < 3.5
    others = means.drop([SPINS, "local pooling"])
    assert 0.2 < others.min() < others.max() < 1.1
    assert stacks[["no residual", "no feed-forward"]].mean().between(97.4, 97.6).all()
    assert accuracies(runs, "linear classifier", "MNIST", 16000).max() < stacks["vanilla"].min() - 5


def test_the_words_about_recall_and_digits(runs, wins, cost):
    recall = cost[cost.task == "recall"]
    spins = recall[recall.kind == "spins"]
    assert len(spins) == 10
    assert spins.accuracy.min() > 89
    heads = spins.module.str.endswith("4 heads")
    parts = recall[recall.kind == "part left out"]
    assert min(spins.accuracy[heads].min(), parts.accuracy.min()) >= 99.99
    assert 0.9 < spins.time.min() < spins.time.max() < 16.5
    values = tasks.recall().test.features[:, :8, 16:].argmax(axis=-1)
    frequent = 100 * np.mean([np.bincount(each).max() / len(each) for each in values])
    assert abs(frequent - recall[recall.kind == "other mixer"].accuracy.max()) < 1
    free = runs[runs.kind == "spins, free couplings"]
    assert free.accuracy.isna().mean() > 0.5
    assert recall[recall.kind == "spins, free couplings"].accuracy.max() < 20
    brief = runs[(runs.updates == 300) & (runs.kind == "spins")]
    for (task, row), its in brief.groupby(["task", "module"]):
        assert not its.accuracy.isna().any()
        assert wins(its.accuracy, accuracies(runs, "vanilla", task, 300)) <= 0.5, row


def test_the_words_about_longer_training(means):
    share = means["vanilla wins"]
    assert 0 < share["memory, three steps"] < 50 < share["free energy, symmetric"] < 100
    assert (share[SPINS], share["identity mixer, averaged"]) == (100, 0)
    assert means.loc["memory, three steps", 1500] > means.loc["vanilla", 1500]


def test_no_part_is_clearly_missed_in_the_brief_table(runs, wins):
    vanilla = accuracies(runs, "vanilla", "digits", 300)
    for row in ("no residual", "no normalisation", "no feed-forward"):
        assert 0 < wins(vanilla, accuracies(runs, row, "digits", 300)) < 1
        assert accuracies(runs, row, "recall", 300).min() > 99.9
    assert vanilla.mean() > accuracies(runs, "no feed-forward", "digits", 300).mean()


def test_power_is_one_half_of_the_sweeps_without_a_loss(power, by_luck, num_worlds):
    drawn = np.mean([power(0, 1, 1) for _ in range(30)])
    share = 1 / (2 * by_luck(5, 5))
    assert abs(drawn - share) < 5 * np.sqrt(share / (30 * num_worlds))


def test_exercise_2(spreads):
    rounded = [round(spread, 1) for spread in spreads["digits"]]
    assert rounded == [1.2, 3.7]
    assert round((3.28 / 5) ** 2 * sum(spread**2 for spread in rounded), 1) == 6.5
    error = np.sqrt(sum(spread**2 for spread in rounded) / 7)
    gap = 5 + error * np.random.default_rng(1).normal(size=20_000)
    assert abs((gap > 2 * error).mean() - 0.92) < 0.03


def test_exercise_3(runs):
    y = tasks.classify_digits().test.labels[:, 0]
    constant = accuracies(runs, "identity mixer", "digits", 300).mean()
    assert constant <= 100 * np.bincount(y).max() / len(y) + 1e-9
    assert round(constant) == 9
    assert round(accuracies(runs, "identity mixer, averaged", "digits", 300).mean()) == 96


def test_exercise_4(at_top, runs):
    kinds = runs.drop_duplicates("module").set_index("module").kind[at_top.index]
    assert kinds.value_counts().to_dict() == {"spins": 6, "part left out": 3, "vanilla": 1}
    assert runs[runs.updates == 300].module.nunique() == 19
