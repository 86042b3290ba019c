"""Code that the book's recorded runs share with the pages that read them: tasks, models, training, theories, judging.

comparison          modules of spins and transformer blocks on the same tasks
kneser_ney          what counts alone predict of a text
vector              mean-field theories of vector spins against sampled spins
entropy_production  training runs that watch or steer entropy production
datasets            what is learned: images and text
encoder             a trained sentence encoder, and lens_record what was measured of it and of a causal network
looped              a trained network that is one block, repeated
records             the reading and the writing of recorded runs

A recorded run is a folder ``records/NAME`` of the repository: its plan, its results, and ``run.py``, which says how
they were made and runs it in a brief form. Modules here import ``spinbook``, never the other way round.
"""

from __future__ import annotations

# A sweep whose code is installed is identified by the version of its package.
from spinbook import __version__ as __version__
