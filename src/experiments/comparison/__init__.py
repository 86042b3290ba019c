"""Modules of spins and transformer blocks on the same tasks, alone and in stacks, under the same conditions.

tasks         digits from patches, associative recall, MNIST, a text with gaps
blocks        the modules in JAX, torch_blocks those in PyTorch, behind one face; mixers has those of other works
modules       the lists of rows, and their widths under one budget of parameters
training      one run, and what is measured before and after
simplest      what a linear classifier and counting get on the tasks of the stacks
summary       means, errors and tables of the runs of a record
judging       hypotheses about paired runs, and their tests
transient     language models of spins, trained and used with different numbers of updates; transient_questions as above
trained_heads their heads, frozen on a text, against sampled spins
transient_record  what was run of both, as numbers and tables

The recorded runs are in ``records/comparison``, ``records/depths`` and ``records/headline``.

What is the same for every row: examples, batches and their order, the number of updates, Adam, the linear embedding
and the learned positions with their start, the linear readout from standardised vectors, and, as far as the
architecture allows, the number of parameters. What is not: modules of spins scale or standardise their own inputs,
have no values and no feed-forward network unless their chapter gives them one, and are therefore wider. Only the
ablation without normalisation does without the readout's, too. All solvers stop at the same residual.
"""

from __future__ import annotations

__all__: list[str] = []
