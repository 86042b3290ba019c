"""Finds by attention from which atom of the reactants an atom of the product comes, as RXNMapper does, and scores it.

Molecules are SMILES without stereochemistry, as in ``records/looped/reactions.csv``. Source: Schwaller et al. (2021).
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from experiments import records
from experiments.looped.network import tokens

_BONDS = "=#-:/\\"


class Graph(NamedTuple):
    """Atoms by their ``places`` among the tokens of a reaction and their ``elements``, ``bonds`` (A, A) with orders,
    ``product``, whether an atom is one of the product, and ``classes``: atoms that no symmetry tells apart share one.
    """

    places: np.ndarray
    elements: np.ndarray
    bonds: np.ndarray
    product: np.ndarray
    classes: np.ndarray


class Reaction(NamedTuple):
    """Its ``name``, its ``smiles``, and for each atom of the product the number of its atom among the reactants."""

    name: str
    smiles: str
    atoms: list[int]


def reactions() -> list[Reaction]:
    """Textbook reactions, of which we mapped the atoms by hand.

    >>> reactions()[0].smiles, reactions()[0].atoms
    ('CC(=O)O.CCO>>CCOC(C)=O', [4, 5, 6, 1, 0, 2])
    """
    with records.place("looped", "reactions.csv").open(encoding="utf-8") as file:
        return [Reaction(r["name"], r["reaction"], [int(k) for k in r["atoms"].split()]) for r in csv.DictReader(file)]


def graph(reaction: str) -> Graph:
    """Atoms and bonds of a reaction; a bond that is not written has order 1, between two aromatic atoms 1.5.

    >>> graph("C=C.O>>CCO").elements.tolist()
    ['C', 'C', 'O', 'C', 'C', 'O']
    """
    places: list[int] = []
    symbols: list[str] = []
    sides: list[bool] = []
    found: list[tuple[int, int, str]] = []
    last: int | None = None
    stack: list[int | None] = []
    rings: dict[str, tuple[int, str]] = {}
    bond, product = "", False
    for place, token in enumerate(tokens(reaction)[1:-1], start=1):
        if token[0].isalpha() or token[0] == "[":
            places.append(place)
            symbols.append(token.strip("[]"))
            sides.append(product)
            if last is not None:
                found.append((last, len(places) - 1, bond))
            last, bond = len(places) - 1, ""
        elif token == "(":
            stack.append(last)
        elif token == ")":
            last = stack.pop()
        elif token in _BONDS:
            bond = token
        elif token in (".", "~", ">>"):
            last, product = None, product or token == ">>"
        elif last is not None:
            if token in rings:
                other, before = rings.pop(token)
                found.append((other, last, bond or before))
            else:
                rings[token] = last, bond
            bond = ""
    bare = ["".join(c for c in symbol if c.isalpha()) for symbol in symbols]
    elements = [s[:-1] if s.endswith("H") and len(s) > 1 else s for s in bare]
    bonds = np.zeros((len(places), len(places)))
    for i, j, kind in found:
        aromatic = elements[i].islower() and elements[j].islower() and not kind
        bonds[i, j] = bonds[j, i] = 1.5 if aromatic else {"=": 2, "#": 3}.get(kind, 1)
    names = [element.capitalize() for element in elements]
    return Graph(np.array(places), np.array(names), bonds, np.array(sides), _classes(names, bonds))


def weights(attention: Float[np.ndarray, "N N"], atoms: Graph) -> Float[np.ndarray, "P R"]:
    """Attention of atoms of the product to those of the reactants and back, added; zero between different elements."""
    new, old = atoms.places[atoms.product], atoms.places[~atoms.product]
    same = atoms.elements[atoms.product][:, None] == atoms.elements[~atoms.product]
    return np.asarray((attention[np.ix_(new, old)] + attention[np.ix_(old, new)].T) * same)


def by_largest(attention: Float[np.ndarray, "N N"], atoms: Graph) -> Int[np.ndarray, " P"]:
    """For each atom of the product the one of the reactants with the largest weight."""
    return np.asarray(weights(attention, atoms).argmax(1))


def by_neighbours(attention: Float[np.ndarray, "N N"], atoms: Graph) -> Int[np.ndarray, " P"]:
    """RXNMapper's procedure: the surest pair first, each atom once, and neighbours of a pair are drawn together.

    What is left without a partner is -1.
    """
    W, bonds = weights(attention, atoms), atoms.bonds > 0
    new, old = bonds[np.ix_(atoms.product, atoms.product)], bonds[np.ix_(~atoms.product, ~atoms.product)]
    factors, chosen = np.ones_like(W), np.full(len(W), -1)
    for _ in range(len(W)):
        drawn = W * factors
        rows = drawn.sum(1, keepdims=True)
        sure = np.divide(drawn, rows, out=np.zeros_like(drawn), where=rows > 0)
        p, r = np.unravel_index(sure.argmax(), sure.shape)
        if sure[p, r] <= 1e-8:
            break
        chosen[p] = r
        factors[np.ix_(new[p], old[r])] *= 90
        factors[p], factors[:, r] = 0, 0
    return chosen


def _classes(elements: Sequence[str], bonds: np.ndarray) -> np.ndarray:
    """Elements, then elements with those of neighbours, again and again: what is never told apart shares a number."""
    labels, numbers = list(elements), [0] * len(elements)
    for _ in range(len(elements)):
        names = sorted(set(labels))
        numbers = [names.index(label) for label in labels]
        around = [sorted((row[j], numbers[j]) for j in np.flatnonzero(row)) for row in bonds]
        labels = [f"{n} {a}" for n, a in zip(numbers, around, strict=True)]
    return np.array(numbers)


def share_right(chosen: Sequence[int] | np.ndarray, truth: Sequence[int], atoms: Graph) -> float:
    """The share of the product's atoms that come from the right atom of the reactants, up to symmetry of molecules.

    Within a class of equivalent atoms of the product, right are as many as classes of their partners agree.
    """
    new, old = atoms.classes[atoms.product], atoms.classes[~atoms.product]
    found = Counter((new[p], old[r]) for p, r in enumerate(chosen) if r >= 0)
    return sum((found & Counter((new[p], old[r]) for p, r in enumerate(truth))).values()) / len(truth)
