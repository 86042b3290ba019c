"""Mean-field theories of vector spins against sampled spins: how far they can be trusted. With the records."""

from __future__ import annotations

__all__: list[str] = []
