"""Double or single precision in JAX within a block, under whatever name the installed version has for the switch."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import jax

__all__ = ["enable_x64"]

if hasattr(jax, "enable_x64"):
    enable_x64: Callable[[bool], AbstractContextManager[None]] = jax.enable_x64  # noqa: TID251
else:
    # Before JAX 0.8.
    import jax.experimental

    enable_x64 = jax.experimental.enable_x64  # type: ignore[attr-defined]
