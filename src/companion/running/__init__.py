"""Runs the pages and knows which of them are stale: keys, kernels, files that are whole or absent, and verdicts.

It reads what is declared, and imports only that room.
"""

from __future__ import annotations
