"""Many independent tasks on one machine or a cluster, each result kept on disk.

A sweep that is interrupted, by an exception, by the user or by a machine, loses only the tasks that were running:
called again with the same folder it loads what is there and computes the rest. A task is an argument, the work a plain
function of it that returns arrays by name.

engine              the loop over an executor, and what happens to tasks that fail
identity            which sweep a folder belongs to
processes           worker processes that may die
storage             the folder and its sealed files

``python -m experiments`` lists the sweeps of the book and runs them.
"""

from __future__ import annotations

from spinbook.sweep.engine import FailedTasks, iterate, run
from spinbook.sweep.identity import code_version, fingerprint
from spinbook.sweep.processes import Processes

__all__ = ["FailedTasks", "Processes", "code_version", "fingerprint", "iterate", "run"]
