"""What the lesson trained-transformer claims, measured on the variables that its cells leave behind."""

import numpy as np

from companion.claims import Measurement


def by_cell(values, seen):
    """A mean over heads, of each network at each temperature."""
    return np.array([values[seen.network.values == name].mean(axis=0) for name in ("encoder", "causal")])


def closure_on_heads(seen, ratio):
    near = {law: by_cell(abs(ratio.sel(law=law).values) < 0.1, seen) for law in ("closure", "linear")}
    return Measurement(near["closure"].min(), rival=near["linear"].min())


def closure_is_nearest(seen, ratio):
    laws = ["with P", "linear", "one mode", "closure"]
    off = np.nan_to_num(abs(ratio.sel(law=laws).values), nan=np.inf)
    names = seen.network.values
    medians = np.array([np.median(off[:, names == name], axis=1) for name in ("encoder", "causal")])

    def over_others(k):
        return (medians[:, k] / np.delete(medians, k, axis=1).min(axis=1)).max()

    return Measurement(over_others(3), rival=over_others(1))


def closure_has_the_irreversibility(seen):
    sampled, error, closed, naive = (seen.sigma.sel(origin=name).values for name in seen.origin.values)
    shares = []
    for theory in (closed, naive):
        near = np.where(sampled > 10 * error, abs(theory / sampled - 1) < 0.1, np.nan)
        cells = [near[seen.network.values == name, k] for name in ("encoder", "causal") for k in range(3)]
        shares.append(min(np.nanmean(cell) for cell in cells))
    return Measurement(shares[0], rival=shares[1])


def test_a_third_of_the_atoms_is_wrong_after_a_hundred_passes(block):
    assert round(1 - block.atoms.loc[100], 2) == 0.34


def test_by_hand():
    gain = 1 / (1 + np.sqrt(2))
    assert [round(v, 3) for v in (gain, 0.4 * gain, (0.4 * gain) ** 2, 1 / (1 + np.sqrt(2.16)))] == [
        0.414,
        0.166,
        0.027,
        0.405,
    ]


def test_the_closure_of_three_tokens_is_that_by_hand(closure, gain, R2):
    """With the gain of the page, so that the first token's variance and the listeners' covariance agree at any beta."""
    J = np.array([[0.0, 0, 0], [0.4, 0, 0], [0.4, 0, 0]])
    x = np.zeros((3, round(2 * R2 + 2)))
    x[1, 0] = x[2, 1] = np.sqrt(R2)
    f = gain(1.16 * R2)
    m, delayed = closure(J, x)
    assert np.allclose(np.linalg.norm(m[1:], axis=1), f * np.sqrt(R2))
    assert np.allclose(delayed[1:, 0], 0.4 * f * R2)


def test_own_code_and_the_library_agree(theories):
    for own, library in zip(theories["closure"], theories["lens.closure"], strict=True):
        library = np.asarray(library)
        assert np.linalg.norm(own - library) < 0.1 * np.linalg.norm(library)


def test_sinks_by_hand_and_exercise_1(stationary):
    assert round(0.4 / (0.4 + 1 - 0.9), 6) == 0.8
    b = 1.3 - 0.3 / 0.9
    star = np.full((10, 10), 0.7 / 9)
    star[:, 0], star[0] = 0.3, (1 - b) / 9
    star[0, 0] = b
    assert np.isclose(stationary(star, 2000)[0], 0.9)


def test_exercise_2(of):
    flow = np.array([[0.5, 0.1, 0.1], [0.1, 0.1, 0], [0.1, 0, 0]])
    assert np.allclose(flow, flow.T)
    P, sigma = (of[name].values.ravel().argsort().argsort() for name in ("concentration", "irreversibility"))
    assert np.corrcoef(P, sigma)[0, 1] < -0.3


def test_exercise_3():
    gain = 2 / (1 + np.sqrt(1 + 4 * 1.16))
    assert [round(gain, 3), round((0.4 * gain) ** 2, 3)] == [0.593, 0.056]
