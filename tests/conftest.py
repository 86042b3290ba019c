"""What all tests share: JAX in double precision, and no silent mixing of dtypes."""

import jax


def pytest_configure() -> None:
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_numpy_dtype_promotion", "strict")
