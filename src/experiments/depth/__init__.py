"""Stacks trained on a text until attention pays: spins, other mixers and softmax attention beside counting.

kneser_ney  what counts alone predict
rows        the stacks that are compared, of one width and one number of weights
experiment  learning rates, seeds, and a record that can be interrupted
questions   what was asked before the runs, and how a record answers

The plan is ``book/plan-of-depth``. ``python -m experiments depth --out FOLDER --plan FILE`` makes the record.
"""

from __future__ import annotations

__all__: list[str] = []
