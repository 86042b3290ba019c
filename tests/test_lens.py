"""The lenses against other routes to the same numbers: enumerated matrices, loops, PyTorch's layer, sampled spins."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.special
import torch

from experiments import encoder, lens_record
from experiments.lens_record import echoes, jacobians, networks
from experiments.vector import fidelity
from spinbook import lens, sphere
from spinbook.entropy_production import vector_delayed_correlations
from spinbook.vector import mean_field


def softmax(*shape, seed=0, scale=1.5):
    return scipy.special.softmax(scale * np.random.default_rng(seed).normal(size=shape), axis=-1)


def sink(N, weight, own=0.9):
    """All listen to the first token with this weight; the first listens to itself."""
    J = np.full((N, N), (1 - weight) / (N - 1))
    J[:, 0] = weight
    J[0] = (1 - own) / (N - 1)
    J[0, 0] = own
    return J


def test_the_stationary_distribution_is_where_the_walk_ends():
    J = softmax(2, 3, 7, 7)
    assert lens.stationary(J) == pytest.approx(np.linalg.matrix_power(J, 200)[..., 0, :], abs=1e-12)


def test_a_causal_head_ends_on_the_first_token():
    J = np.tril(softmax(6, 6))
    J /= J.sum(1, keepdims=True)
    assert lens.stationary(J) == pytest.approx([1, 0, 0, 0, 0, 0], abs=1e-12)
    assert lens.irreversibility(J) == 0


def test_packed_documents_are_groups_that_have_no_one_distribution():
    n, m = 7, 4
    packed = scipy.linalg.block_diag(softmax(n, n), softmax(m, m, seed=10))
    # A third group that listens to both is left for good, and does not connect them.
    above = np.block([[packed, np.zeros((n + m, 3))], [np.full((3, n + m + 3), 1 / (n + m + 3))]])
    for J in (packed, above, packed[::-1, ::-1]):
        for measure in (lens.stationary, lens.irreversibility, lambda J: lens.measure([J[None, None]])):
            with pytest.raises(ValueError, match="2 groups that never listen to each other"):
                measure(J)
    one_document = np.block([[packed[:n, :n], np.zeros((n, m))], [np.full((m, n + m), 1 / (n + m))]])
    expected = np.concatenate([lens.stationary(packed[:n, :n]), np.zeros(m)])
    np.testing.assert_allclose(lens.stationary(one_document), expected, rtol=1e-12)


@pytest.mark.parametrize(("n", "eps"), [(27, 1e-2), (12, 1e-4), (12, 1e-6), (5, 1e-9), (60, 1e-12), (5, 1e-160)])
def test_groups_that_hardly_listen_to_each_other_have_the_weights_of_detailed_balance(n, eps):
    up = np.where(np.arange(n - 1) >= n // 2, 0.4, eps)
    down = np.where(np.arange(1, n) <= n // 2, 0.4, eps)
    P = np.diag(up, 1) + np.diag(down, -1)
    P += np.diag(1 - P.sum(1))
    log_pi = np.concatenate([[0], np.cumsum(np.log(up) - np.log(down))])
    expected = scipy.special.softmax(log_pi)
    found = lens.stationary(np.stack([P, P[::-1, ::-1]]))
    np.testing.assert_allclose(found, [expected, expected[::-1]], rtol=1e-9, atol=1e-300)


def test_a_sink_concentrates_the_stationary_distribution_as_two_states_say():
    N, weight, own = 64, 0.4, 0.9
    share = weight / (weight + 1 - own)
    expected = N * (share**2 + (1 - share) ** 2 / (N - 1))
    assert lens.concentration(lens.stationary(sink(N, weight, own))) == pytest.approx(expected, rel=1e-12)
    assert lens.second_eigenvalue(sink(N, weight, own)) == pytest.approx(abs(own - weight), rel=1e-9)


def test_irreversibility_is_the_divergence_of_pairs_from_their_reversal():
    J = softmax(4, 5, 5)
    flow = lens.stationary(J)[..., None] * J
    divergence = scipy.special.rel_entr(flow, np.swapaxes(flow, -1, -2)).sum((-1, -2))
    assert lens.irreversibility(J) == pytest.approx(divergence, rel=1e-10)
    symmetric = J + np.swapaxes(J, -1, -2) + 5
    # Sinkhorn's steps keep the symmetry, and rows come to sum to one.
    for _ in range(200):
        d = np.sqrt(symmetric.sum(-1))
        symmetric = symmetric / d[..., None] / d[..., None, :]
    assert lens.irreversibility(symmetric) == pytest.approx(np.zeros(4), abs=1e-12)


def test_attended_swap_positional_and_cosine_of_small_cases():
    J = np.array([[0.0, 0.75, 0.25], [0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])
    assert lens.attended(J) == pytest.approx(np.mean([1.6, 2, 1]))
    assert lens.measure([J[None, None]]).swap.item() == 0.5
    ring = np.roll(np.eye(6), -1, axis=1)
    assert lens.measure([ring[None, None]]).positional.item() == 1
    x = np.random.default_rng(0).normal(size=(4, 5))
    u = x / np.linalg.norm(x, axis=1, keepdims=True)
    pairs = [u[i] @ u[j] for i in range(4) for j in range(4) if i != j]
    assert lens.token_cosine(x) == pytest.approx(np.mean(pairs))


def test_the_antisymmetric_share_is_that_of_the_whole_jacobian():
    rng = np.random.default_rng(0)
    W, x = jnp.asarray(rng.normal(size=(12, 12))), rng.normal(size=(3, 4))

    def layer(x, W):
        return jnp.tanh(W @ x.ravel()).reshape(3, 4)

    J = np.asarray(jax.jacobian(layer)(jnp.asarray(x), W)).reshape(12, 12)
    expected = np.sum((J - J.T) ** 2) / 4 / np.sum(J**2)
    share, error = jacobians.antisymmetric_share(jax.random.key(0), layer, x, (W,), num_probes=2000)
    assert abs(share - expected) < 4 * error
    energy = jax.grad(lambda x, W: jnp.sum(jnp.logaddexp(0, W @ x.ravel())))
    assert jacobians.antisymmetric_share(jax.random.key(0), energy, x, (W,))[0] < 1e-25


def tiny(heads=2, dim=8, wide=16, seed=0):
    rng = np.random.default_rng(seed)

    def linear(a, b):
        return jnp.asarray(rng.normal(size=(a, b)) / np.sqrt(a)), jnp.asarray(0.1 * rng.normal(size=b))

    def norm():
        return jnp.asarray(rng.uniform(0.5, 1.5, dim)), jnp.asarray(0.1 * rng.normal(size=dim))

    maps = [linear(dim, dim) for _ in range(4)]
    return encoder.Layer(*maps, norm(), linear(dim, wide), linear(wide, dim), norm())


def test_a_layer_is_that_of_pytorch():
    layer, x = tiny(), np.random.default_rng(1).normal(size=(5, 8))
    theirs = torch.nn.TransformerEncoderLayer(
        8, 2, 16, 0.0, "gelu", layer_norm_eps=1e-12, batch_first=True, dtype=torch.float64
    )
    pairs = [layer.to_queries, layer.to_keys, layer.to_values]
    joined = [np.concatenate([np.asarray(p[k]).T if k == 0 else np.asarray(p[k]) for p in pairs]) for k in (0, 1)]
    given = dict(zip(("self_attn.in_proj_weight", "self_attn.in_proj_bias"), joined, strict=True))
    names = {"self_attn.out_proj": layer.from_values, "linear1": layer.widen, "linear2": layer.narrow}
    for name, (W, b) in names.items():
        given |= {f"{name}.weight": np.asarray(W).T, f"{name}.bias": np.asarray(b)}
    for name, (g, b) in {"norm1": layer.first_norm, "norm2": layer.second_norm}.items():
        given |= {f"{name}.weight": np.asarray(g), f"{name}.bias": np.asarray(b)}
    theirs.load_state_dict({name: torch.tensor(np.array(value)) for name, value in given.items()})
    with torch.no_grad():
        expected = theirs.eval()(torch.tensor(x)[None])[0].numpy()
    assert np.asarray(encoder.block(jnp.asarray(x), layer, 2).outputs) == pytest.approx(expected, abs=1e-12)


def test_contributions_add_up_to_attention():
    layer = tiny()
    t = encoder.block(jnp.asarray(np.random.default_rng(1).normal(size=(5, 8))), layer, 2)
    C = echoes.contributions(t.attention, t.values, layer.from_values[0])
    assert C.sum(1) == pytest.approx(np.asarray(t.attended - layer.from_values[1]), abs=1e-12)


def test_a_planted_echo_is_found_and_one_that_is_not_there_explains_nothing():
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=(3, 400, 6)), rng.normal(size=(400, 6))
    fitted = np.arange(400) % 2 == 0
    found = echoes.explained(0.5 * x[0] - 0.3 * x[2] + noise + 7, x, fitted)
    assert found.coefficients == pytest.approx([0.5, 0, -0.3], abs=4 / np.sqrt(1200))
    # On held-out tokens: the part of the variance (0.25 + 0.09) / 1.34, and without the echo 0.25 / 1.34.
    assert found.share == pytest.approx(0.34 / 1.34, abs=0.05)
    assert found.without[2] == pytest.approx(0.25 / 1.34, abs=0.05)
    assert found.without[1] == pytest.approx(found.share, abs=0.01)


@pytest.mark.parametrize(("own", "law_holds"), [(0.4, True), (0.9, False)])
def test_laws_of_delayed_correlations_against_sampled_spins_on_a_sink(own, law_holds, optimised):
    J = sink(32, 0.4, own)
    x = np.random.default_rng(0).normal(size=(32, 16))
    x *= sphere.radius(16) / np.linalg.norm(x, axis=1, keepdims=True)
    sizes = {"replicas": 64, "steps": 80, "transient": 20}
    halves = fidelity.sampled(jax.random.key(1), J, x, beta=1.0, delayed=True, **sizes)
    a, b = np.asarray(halves.delayed, float).mean(1)
    m = np.asarray(mean_field.steady_state(J, x, beta=1.0, step=mean_field.naive_step).value)
    theta = x + J @ m
    D = np.asarray(vector_delayed_correlations(J, theta, theta, beta=1.0, response=sphere.exact))
    measured = np.sqrt(np.sum((D - a) * (D - b)) / np.sum(a * b))
    law = lens.sink_law(J, m, beta=1.0)
    assert law.linear == pytest.approx(measured, rel=0.05)
    assert law.one_mode == pytest.approx(measured, rel=0.05)
    assert law.uniform < measured / 2
    # The short law counts what a sink keeps of itself as if others had heard it.
    assert (abs(law.with_sinks / measured - 1) < 0.1) == law_holds


def test_measure_takes_tensors_and_names_what_it_does_not_take():
    J, x = softmax(3, 2, 4, 6, 6), np.random.default_rng(0).normal(size=(4, 2, 6, 5))
    found = lens.measure([torch.tensor(a, requires_grad=True) for a in J], list(map(torch.tensor, x)))
    assert found.attended.transpose("layer", "window", "head").values == pytest.approx(lens.attended(J), rel=1e-13)
    assert found.token_cosine.values[1, 3] == pytest.approx(float(lens.token_cosine(x[3, 1])))
    padded = J.copy()
    padded[..., -1] = 0
    with pytest.raises(ValueError, match=r"attentions: expected weights .* leave out padding"):
        lens.measure(list(padded))
    # As a tokenizer pads the shorter of two texts: rows sum to one, and nobody sees the last token.
    hidden = J.copy()
    hidden[:, 1, :, :, -1] = 0
    hidden /= hidden.sum(-1, keepdims=True)
    with pytest.raises(ValueError, match="none who sees token 5 of window 1; leave out padding"):
        lens.measure(list(hidden))
    for nothing in (None, (None,) * 3):
        with pytest.raises(ValueError, match=r"attentions: .* attn_implementation='eager'"):
            lens.measure(nothing)
    with pytest.raises(ValueError, match="hidden_states: expected 4 arrays"):
        lens.measure(list(J), list(x[:3]))


def test_controls_keep_what_they_should():
    network = encoder.Encoder(jnp.ones((9, 8)), jnp.ones((6, 8)), (jnp.ones(8), jnp.ones(8)), (tiny(),))
    shuffled = networks.control("shuffled", network)
    for old, new in zip(network.layers[0], shuffled.layers[0], strict=True):
        assert np.sort(np.ravel(old[0])) == pytest.approx(np.sort(np.ravel(new[0])))
        assert np.array_equal(old[1], new[1])
    assert not np.array_equal(network.layers[0].widen[0], shuffled.layers[0].widen[0])
    assert float(jnp.std(networks.control("fresh", network).layers[0].widen[0])) == pytest.approx(0.02, rel=0.3)


def test_the_sample_shows_what_the_record_says_of_its_windows():
    data, record = lens_record.sample(), lens_record.recorded()
    found = lens.measure(list(data.attention), list(data.states))
    heads = record["networks"]["trained"]["heads"]
    for name in ("attended", "concentration", "second_eigenvalue", "positional"):
        # Nine bits of a component; the record has three digits.
        assert found[name].values == pytest.approx(np.array(heads[name], float)[[3, 19]], rel=0.02, abs=0.005), name


def test_means_by_head_are_those_of_windows_and_of_what_controls_keep():
    record = lens_record.recorded()
    windows = lens_record.values(record, "heads", "concentration")
    assert windows.shape == (32, 6, 12)
    assert lens_record.by_head(record, "concentration") == pytest.approx(windows.mean(axis=0))
    control = lens_record.values(record, "heads", "concentration", "fresh")
    assert lens_record.by_head(record, "concentration", "fresh") == pytest.approx(control[0])
    # A network that was never trained attends to all alike.
    assert control[0] == pytest.approx(np.ones((6, 12)), abs=0.05)


@pytest.mark.parametrize("sites", [5, 8])
def test_the_leading_mode_is_that_of_all_tokens_alike_where_others_die_out_as_slowly(sites):
    """A ring, whose eigenvalues are all as long: C is v on the diagonal and a^2 c / N elsewhere."""
    m = np.tile(np.random.default_rng(0).normal(scale=0.3, size=16), (sites, 1))
    law = lens.sink_law(np.roll(np.eye(sites), 1, axis=1), m, beta=1.0)
    a2 = law.linear
    off = a2 * a2 / (1 - a2 * (1 - 1 / sites)) / sites
    expected = math.sqrt(sites - 1) * off / math.sqrt(1 + (sites - 1) * off**2)
    assert law.one_mode == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("size", [1e-300, 1e-170, 1e-90, 1e70])
def test_only_the_direction_counts_for_cosines_however_long_the_vectors(size):
    x = np.random.default_rng(2).normal(size=(5, 3))
    assert lens.token_cosine(size * x) == pytest.approx(lens.token_cosine(x), rel=1e-12)
