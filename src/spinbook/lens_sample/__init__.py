"""Measurements of two trained networks, and three heads of one of them, so that a page about them needs no weights."""

from __future__ import annotations

from importlib import resources

import numpy as np
import pandas as pd
import xarray as xr

__all__ = ["repeated_block", "sample"]

_DIMENSIONS = {
    "tokens": ("token",),
    "attention": ("chosen", "token", "heard"),
    "value": ("chosen", "token", "component"),
    "by_head": ("measure", "layer", "head"),
    "error": ("system", "beta"),
    "predicted": ("law", "system", "beta"),
    "sigma": ("origin", "system", "beta"),
    "response": ("weights", "after", "direction"),
    "response_error": ("weights", "after", "direction"),
    "coefficient": ("weights", "after"),
    "coefficient_error": ("weights", "after"),
    "echo_size": ("weights", "after"),
    "sentence": ("change",),
}
_COORDINATES = ("chosen", "measure", "beta", "law", "origin", "weights", "after", "direction", "change")


def sample() -> xr.Dataset:
    """Three heads of all-MiniLM-L6-v2 on 64 tokens of *Moby-Dick*, and what the book measured of this network.

    ``tokens`` (64,); ``attention`` (3, 64, 64) and ``value`` (3, 64, 32) of the heads "layer.head" of ``chosen``.
    ``by_head`` has measures of all 72 heads, means over 32 windows. Every head of this network and of a causal one, in
    all 96, is a system of vector spins: ``error`` is the relative error of naive delayed correlations against sampled
    spins at each ``beta``, ``predicted`` the same by each ``law``, ``sigma`` the irreversibility as sampled and by
    theories. ``response`` says what feed-forward networks do to vectors in the direction of an echo and in others, and
    ``coefficient`` is that of the echo in a regression. In single or half precision. The programs are in
    ``records`` of the book's repository.

    >>> dict(sample().sizes)["system"]
    96
    """
    with resources.as_file(resources.files("spinbook.lens_sample") / "minilm.npz") as path, np.load(path) as data:
        arrays = {name: data[name] for name in data.files}
    plain = {name: a.astype(float) if a.dtype == np.float16 else a for name, a in arrays.items()}
    coordinates = {name: plain[name] for name in _COORDINATES} | {"network": ("system", plain["network"])}
    head = np.arange(1, plain["by_head"].shape[2] + 1)
    return xr.Dataset(
        {name: (dims, plain[name]) for name, dims in _DIMENSIONS.items()},
        coordinates | {"layer": np.arange(1, plain["by_head"].shape[1] + 1), "head": head},
    )


def repeated_block() -> pd.DataFrame:
    """One trained block, applied again and again to chemical reactions: a row is a pass, with means over 46 reactions.

    ``change``: by what part of its length the state moves in the pass. ``atoms``: the share of the atoms of the product
    that are mapped right from the attention of its sixth head. Both also for the block with its weights shuffled.
    ``tokens``: the share of masked tokens that are filled in right. From ``records/looped`` of the book's repository.

    >>> repeated_block().loc[12, ["change", "atoms"]].round(2).tolist()  # exact
    [0.28, 0.99]
    """
    with (resources.files("spinbook.lens_sample") / "repeated-block.csv").open(encoding="utf-8") as lines:
        return pd.read_csv(lines, comment="#", index_col="pass")
