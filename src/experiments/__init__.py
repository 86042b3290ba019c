"""The experiments behind the book's records: tasks, training, comparisons, and runs that take minutes to hours.

comparison          modules of spins and transformer blocks on the same tasks
kneser_ney          what counts alone predict of a text
vector              mean-field theories of vector spins against sampled spins
entropy_production  training runs that watch or steer entropy production
datasets            what is learned: images and text
encoder             a trained sentence encoder, and lens_record what was measured of it and of a causal network
records             files of numbers with a checksum, small enough to be committed
published           the sweeps of the book by name, which ``python -m experiments`` lists and runs

A record is a file beside the module that makes it and reads it. Modules here import ``spinbook``, never the other way
round.
"""

from __future__ import annotations

# A sweep whose code is installed is identified by the version of its package.
from spinbook import __version__ as __version__

__all__: list[str] = []
