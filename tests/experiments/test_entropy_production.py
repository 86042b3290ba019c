"""Training runs climb what they are told to climb, repeat exactly, and send gradients where the objective says."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments import entropy_production as ex

WORLD = ex.World(num_sites=3, num_symbols=2, dim=4, hidden_dim=4, batch_size=4, steps=3)
TASK = ex.RecallTask(num_sites=3, num_symbols=2, dim=8, hidden_dim=8, batch_size=8, steps=2, depth=2, lag=1)


@pytest.fixture(scope="module")
def sculptures():
    conditions = ex.Conditions([1.0, -1.0, 0.0], [0.5] * 3, [1.0] * 3, [1.0] * 3)

    def run():
        return ex.sculpt(jax.random.key(0), conditions, WORLD, num_seeds=2, num_updates=40, num_records=2)

    return run(), run()


@pytest.mark.slow
def test_each_direction_moves_the_entropy_production_its_way(sculptures):
    sigma = sculptures[0].entropy_production
    up, down, still = sigma[-1] - sigma[0]
    assert (up > 0).all()
    assert (down < 0).all()
    np.testing.assert_array_equal(still, 0)


@pytest.mark.slow
def test_a_run_is_repeated_exactly_and_seeds_differ(sculptures):
    for one, two in zip(*sculptures, strict=True):
        np.testing.assert_array_equal(one, two)
    start = sculptures[0].entropy_production[0]
    # All conditions start from the same module of a seed.
    np.testing.assert_array_equal(start, np.broadcast_to(start[0], start.shape))
    assert start[0, 0] != start[0, 1]


@pytest.mark.slow
def test_measures_stay_within_their_ranges(sculptures):
    run = sculptures[0]
    for name in ("row_entropy", "diagonal", "length", "alignment", "clustering"):
        values = getattr(run, name)
        assert np.all((values >= 0) & (values <= 1 + 1e-6)), name
    # sigma = beta^2 x asymmetry x freedom x D / 4 defines the freedom, with sigma and asymmetry per site.
    np.testing.assert_allclose(run.entropy_production, run.asymmetry * run.freedom, rtol=1e-5)


@pytest.mark.slow
def test_recall_is_learned_from_the_task_and_not_without():
    goals = ex.Objectives(task=[1.0, 0.0], layer_task=[0.0, 0.0], through=[1.0, 0.0], production=[0.0, 0.0])
    options = {"num_seeds": 2, "num_updates": 200, "num_records": 2, "learning_rate": 1e-2}
    run = ex.learn_recall(jax.random.key(1), goals, TASK, **options)
    trained, untrained = run.final_accuracy
    assert (trained > 0.95).all()
    assert (trained > untrained).all()
    # Modules that nothing reaches keep their entropy production, up to other sequences.
    assert abs(run.entropy_production[1, 1] - run.entropy_production[0, 1]).max() < 0.05


def test_a_reader_counts_production_per_site_and_layer():
    with jax.numpy_dtype_promotion("standard"):
        net = ex._reader(jax.random.key(2), TASK, 1.0)
        symbols = jnp.array([0, 1, 1])
        found = ex._read(net, TASK, symbols, jnp.float32(1))[1]
        states = [module.start(3) for module in net.stack.modules]
        for _ in range(TASK.steps):
            x, totals = net.embedding[symbols] + net.place, []
            for k, module in enumerate(net.stack.modules):
                out = module.step(x, states[k], jnp.tril(jnp.ones((3, 3), bool)))
                x, states[k] = out.magnetizations, out.state
                totals.append(float(out.entropy_production))
    assert min(totals) > 1e-3
    assert float(found) == pytest.approx(sum(totals) / 2 / 3, rel=1e-5)


def test_the_share_of_the_signal_is_unbiased_at_zero_and_at_one_half():
    # Few worlds, many repetitions: sums around the sample mean would be off by 1 / (2 B - 1) = 0.14 at zero.
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(2, 400, 4, 30))
    world = rng.normal(size=(400, 4, 30))
    for size, share in ((0.0, 0.0), (1.0, 0.5)):
        first, second = jnp.asarray(size * world + noise)
        values = np.array([float(ex.signal_share(a, b)) for a, b in zip(first, second, strict=True)])
        error = values.std(ddof=1) / 20
        # A quotient of two unbiased sums of 90 terms and more: its own bias is below 2 / 90.
        assert abs(values.mean() - share) < 4 * error + 2 / 90


ONE = ex.Conditions([1.0], [1.0], [1.0], [1.0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"conditions": ONE._replace(noise=[1.0, 0.0])}, "conditions: expected"),
        ({"conditions": ONE._replace(direction=[np.nan])}, "conditions: expected fin"),
        ({"beta": 0.0}, "beta: expected"),
        ({"num_updates": 5, "num_records": 2}, "num_updates: expected a multiple"),
    ],
)
def test_bad_input_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        ex.sculpt(jax.random.key(0), **({"conditions": ONE} | options))


def test_a_lag_beyond_the_sites_is_refused():
    goals = ex.Objectives([1.0], [0.0], [1.0], [0.0])
    with pytest.raises(ValueError, match="lag: expected"):
        ex.learn_recall(jax.random.key(0), goals, TASK._replace(lag=3))
