"""Modules of spins and transformer blocks on the same tasks, alone and in stacks, under the same conditions.

tasks         digits from patches, associative recall, MNIST, a text with gaps
blocks        the modules in JAX, torch_blocks those in PyTorch, behind one face; mixers has those of other works
modules       the lists of rows, and their widths under one budget of parameters
training      one run, and what is measured before and after
summary       means, errors and tables of the runs of a record
judging       tests of paired runs
transient     small language models, of spins and of attention, and their training
transient_record  what was recorded of them and of their heads, as numbers and tables

The recorded runs are folders of ``records``.

What is the same for every row: examples, batches and their order, the number of updates, Adam, the linear embedding
and the learned positions with their start, the linear readout from standardised vectors, and, as far as the
architecture allows, the number of parameters. What is not: modules of spins scale or standardise their own inputs,
have no values and no feed-forward network unless their chapter gives them one, and are therefore wider. Only the
ablation without normalisation does without the readout's, too. All solvers stop at the same residual.
"""
