"""Measures what the book would notice: planted faults, errors of one part in a thousand, and other processors.

It runs copies of the book through the other rooms, which do not import it.
"""

from __future__ import annotations
