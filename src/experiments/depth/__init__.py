"""Stacks trained until attention pays, on a text and on MNIST: spins, other mixers, softmax attention, simple methods.

kneser_ney  what counts alone predict
rows        the stacks that are compared, of one width and one number of weights
cells       a learning rate for each row, then its seeds: which trainings are made
experiment  the text: sizes, trainings, and a record that can be interrupted
questions   what was asked before the runs, and how a record answers
mnist       images: all of this for scaled pixels

The plans are ``book/plan-of-depth`` and ``book/plan-of-mnist``. ``python -m experiments depth --out FOLDER --plan
FILE`` makes the record of the text, ``python -m experiments mnist`` that of MNIST.
"""

from __future__ import annotations

__all__: list[str] = []
