"""The echo asked of the layer that could answer it, and attention as a slope in the best diagonal metric.

``reaction.json.gz`` and ``metric.json.gz`` were made before, and can be remade at, the tag ``before-2.0``: ``git
checkout before-2.0``, then ``python -m experiments.lens_record --network reaction --out FOLDER --plan
book/plan-of-the-lens.md``, and the same with ``--network metric``, in a few minutes each, with the weights as
``records/lens/plan.md`` says. This script measures a small untrained encoder and its controls.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np

from experiments import encoder, records
from experiments.lens_record import echoes, metric, networks, reaction
from experiments.lens_record.reaction import DIRECTIONS

NETWORKS = ("trained", "shuffled", "fresh")
WINDOWS, TOKENS = 4, 24


def sentence(network, tokens, removed):
    """The direction of the sentence when ``removed`` is taken out of what layers 2 to L hand to their networks."""
    x = encoder.embed(jnp.asarray(tokens), network)
    for layer, out in zip(network.layers, [0 * removed[0], *removed], strict=True):
        middle = encoder.block(x, layer).middle - out
        x = encoder.normalised(middle + encoder.feed_forward(middle, layer), layer.second_norm)
    mean = np.asarray(x, float)[1:].mean(0)
    return mean / np.linalg.norm(mean)


def of_window(network, number):
    """All parts of each layer (L, N, D), the responses along ``DIRECTIONS``, and how far a sentence is turned."""
    tokens = np.random.default_rng(number).integers(40, size=TOKENS)
    traces = encoder.run(tokens, network)
    parts = [reaction.parts(network, traces, k) for k in range(len(traces) - 1)]
    response = []
    for k, part in enumerate(parts):
        noise = jax.random.normal(jax.random.key(100 * number + k), part["input"].shape)
        vectors = [noise if name == "random" else part[name] for name in DIRECTIONS]
        response.append([reaction.along(part["input"], network.layers[k + 1], u) for u in vectors])
    slope, step = np.moveaxis(np.array(response, float), -1, 0)
    whole, turned = sentence(network, tokens, [0 * p["echo"] for p in parts]), []
    for name in DIRECTIONS[:4]:
        scaled = [p[name] * np.linalg.norm(p["echo"]) / np.linalg.norm(p[name]) for p in parts]
        turned.append(whole @ sentence(network, tokens, scaled))
    return parts, {"response": slope, "ablation": step[:, :4], "sentence": np.array(turned)}


def regression(windows):
    """Of each layer: the last coefficient with each of the parts, its error, and what the part adds to the share."""
    rows, group = {"coefficients": [], "errors": [], "adds": [], "sizes": []}, np.repeat(np.arange(WINDOWS), TOKENS)
    names = list(windows[0][0])
    for k in range(len(windows[0])):
        x = {name: np.concatenate([window[k][name] for window in windows]).astype(float) for name in names}
        line = []
        for last in (*DIRECTIONS[:4], "raw echo"):
            columns = [x["input"], x["raw induced" if last == "raw echo" else "induced"], x[last]]
            found = echoes.explained(x["output"], columns, group < WINDOWS // 2)
            left = [echoes.explained(x["output"], columns, group != g).coefficients[-1] for g in range(WINDOWS)]
            error = np.sqrt((WINDOWS - 1) * np.var(left))
            line.append((found.coefficients[-1], error, found.share - found.without[-1]))
        for name, values in zip(("coefficients", "errors", "adds"), zip(*line, strict=True), strict=True):
            rows[name].append(values)
        rows["sizes"].append([np.sqrt(np.mean(vectors**2)) for vectors in x.values()])
    return {name: records.numbers(value, 4) for name, value in rows.items()} | {"parts": names}


def shares(network):
    """Antisymmetric shares of what attention adds to eight tokens, plain and at the least, and those of controls."""
    rows, rng = (
        {name: [] for name in ("plain", "least", "control_plain", "control_least", "random")},
        np.random.default_rng(0),
    )
    for t, layer in zip(encoder.run(np.arange(8), network), network.layers, strict=True):
        J = np.asarray(jax.jacobian(lambda x, layer=layer: encoder.block(x, layer).attended)(t.inputs), float)
        J = J.reshape(t.inputs.size, -1)
        # A symmetric matrix whose rows are as long, in a metric of spread one.
        lengths = np.sum(J**2, axis=1) ** 0.25
        H = rng.normal(size=J.shape)
        H = np.exp(rng.normal(size=len(J)))[:, None] * (H + H.T) * np.outer(lengths, lengths)
        random = rng.normal(size=J.shape) * lengths[:, None] ** 2
        values = (
            metric.share(J),
            metric.least_share(J),
            metric.share(H),
            metric.least_share(H),
            metric.least_share(random),
        )
        for name, value in zip(rows, values, strict=True):
            rows[name].append(value)
    return {name: records.numbers(values, 4) for name, values in rows.items()}


if __name__ == "__main__":
    given, begin, body = records.arguments(__doc__), time.perf_counter(), {}
    trained = networks.small()
    with jax.numpy_dtype_promotion("standard"):
        for name in NETWORKS:
            windows = [of_window(networks.control(name, trained), number) for number in range(WINDOWS)]
            stacked = {key: np.stack([found[key] for _, found in windows]) for key in windows[0][1]}
            body[name] = {key: records.numbers(value, 4) for key, value in stacked.items()}
            body[name]["regression"] = regression([parts for parts, _ in windows])
        least = shares(trained)
    known = {"format": 1, "plan": None, "complete": False} | records.circumstances(begin)
    records.write(given.out / "reaction.json.gz", known | {"networks": body})
    records.write(given.out / "metric.json.gz", known | {"tokens": 8, "layers": least})
