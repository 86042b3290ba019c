"""Writes the file of ``spinbook.lens.sample``, from the records of the lens and three heads of the encoder."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from experiments import encoder, lens_record
from experiments.lens_record import reaction, runs, spins
from spinbook.precision import enable_x64

__all__ = ["CHOSEN", "MEASURES", "write"]

CHOSEN = ((3, 5), (1, 3), (6, 12))
"""Layer and head, counted from one: a star, a head that looks at the token before, and one of the last layer."""
MEASURES = [
    "concentration",
    "first_token",
    "first_own",
    "first_value",
    "first_share",
    "attended",
    "positional",
    "irreversibility",
]


def _coarse(a: np.ndarray) -> np.ndarray:
    """Half precision rounded to seven bits after the leading one, a part in 250: notebooks carry the file."""
    return (a.view(np.uint16) + 4 & 0xFFF8).view(np.float16)


def write(file: str | Path, *, path: str | None = None, text: str | None = None) -> None:
    """The file, on the window of the spins; ``path`` and ``text`` as in ``runs.collect``."""
    lens, other, back = (lens_record.recorded(name) for name in ("lens", "spins", "reaction"))
    tokens = runs._windows(path, text, runs.FULL.windows)[spins.WINDOW]
    with enable_x64(False), np.errstate(under="ignore"):
        traces = encoder.run(tokens, encoder.load(path))
    words = encoder.tokenizer(path)
    by_head = [lens_record.by_head(lens, name) for name in MEASURES]
    by_head.append(lens_record.values(lens, "sentence", "alone_concentration").mean(0))
    parts = [other["networks"][name] for name in ("encoder", "causal")]

    def systems(name: str) -> np.ndarray:
        """(system, beta, ...) of a part of both networks, whose arrays are (beta, layer, head, ...)."""
        arrays = [np.array(part[name], float) for part in parts]
        return np.concatenate([np.moveaxis(a.reshape(len(a), -1, *a.shape[3:]), 0, 1) for a in arrays])

    networks = back["networks"]
    response = [np.array(networks[name]["response"], float) for name in reaction.NETWORKS]
    regression = [networks[name]["regression"] for name in reaction.NETWORKS]
    sizes = np.array([each["sizes"] for each in regression], float)
    names = regression[0]["parts"]
    arrays = {
        "tokens": np.array([words.id_to_token(int(t)) for t in tokens]),
        "chosen": np.array([f"{layer}.{head}" for layer, head in CHOSEN]),
        "attention": np.array([traces[layer - 1].attention[head - 1] for layer, head in CHOSEN]),
        "value": np.array([traces[layer - 1].values[head - 1] for layer, head in CHOSEN]),
        "measure": np.array([*MEASURES, "concentration without [CLS]"]),
        "by_head": np.array(by_head),
        "network": np.repeat(["encoder", "causal"], [72, 24]),
        "beta": np.array(spins.BETAS),
        "error": np.sqrt(np.maximum(systems("delayed")[..., 0], 0)),
        "law": np.array(spins.LAWS),
        "predicted": np.moveaxis(systems("predicted"), -1, 0),
        "origin": np.array(["sampled", "standard error", "closure", "naive"]),
        "sigma": np.stack([*np.moveaxis(systems("sigma"), -1, 0), systems("sigma_closure"), systems("sigma_naive")]),
        "weights": np.array(reaction.NETWORKS),
        "after": np.arange(2, 7),
        "direction": np.array(reaction.DIRECTIONS),
        "response": np.array([r.mean(0) for r in response]),
        "response_error": np.array([r.std(0, ddof=1) / np.sqrt(len(r)) for r in response]),
        "coefficient": np.array([each["coefficients"] for each in regression], float)[..., 0],
        "coefficient_error": np.array([each["errors"] for each in regression], float)[..., 0],
        "echo_size": sizes[..., names.index("echo")] / sizes[..., names.index("output")],
        "change": np.array(["without [CLS]", "value of [CLS] zero"]),
        "sentence": lens_record.values(lens, "sentence", "sentence").mean(0)[:2],
    }
    exact = ("beta", "after")

    def small(name: str, a: np.ndarray) -> np.ndarray:
        if a.dtype.kind != "f" or name in exact:
            return a
        return _coarse(a.astype(np.float16)) if name in ("attention", "value") else a.astype(np.float16)

    # Packed notebooks compress all that they carry together, better than each file alone.
    np.savez(file, **{name: small(name, a) for name, a in arrays.items()})  # type: ignore[arg-type]
