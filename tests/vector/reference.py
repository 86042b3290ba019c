"""The TAP equation of vector spins as it stands on the page: matrices, and derivatives by JAX. Slow.

``fluctuations.tap_field`` is the same arithmetic with the D x D matrices multiplied out; tests hold both together.
Couplings are (N, N) or, for slices of the components, (H, N, N); magnetizations and fields are (N, D).
"""

import jax
import jax.numpy as jnp

from spinbook import sphere
from spinbook.vector import fluctuations


def untied(gains, squared_magnetizations, dim, beta):
    """The covariances of the senders with their own trace; for ``large_d`` it exceeds R^2 - |m|^2 by 1 / gamma."""
    senders = fluctuations.of_senders(gains, squared_magnetizations, dim, beta)
    trace = dim * senders.transverse - senders.along * squared_magnetizations[None]
    return senders._replace(trace=trace)


def coupling_matrices(couplings, dim):
    """J_ij as D x D matrices: diagonal, with the number J^h_ij at every component of head h."""
    J = couplings[None] if couplings.ndim == 2 else couplings
    diagonal = jnp.repeat(jnp.moveaxis(J, 0, -1), dim // len(J), axis=-1)
    return diagonal[..., None] * jnp.eye(dim, dtype=J.dtype)[None, None]


def covariance(field, beta, response):
    """Var = (1 / beta) dphi/dh, of a spin in the effective field h."""
    return jax.jacfwd(lambda h: response(h, beta))(field) / beta


def second_order_magnetization(effective_fields, magnetizations, couplings, fields, *, beta, response=sphere.exact):
    """d^2 m_i / da^2 = sum_ab phi''_ab(theta_i) E[dh_a dh_b], dh = x_i + sum_j J_ij s_j - theta_i.

    The s_j are independent spins with the means m_j = ``magnetizations``, so that E[dh dh^T] = v v^T + sum_j J_ij Var_j
    J_ij^T with v the mean of dh.
    """
    J = coupling_matrices(couplings, fields.shape[-1])
    Var = jax.vmap(lambda m: covariance(response.inverse(m, beta), beta, response))(magnetizations)

    def change(theta, x, J):
        v = x + jnp.einsum("jab,jb->a", J, magnetizations) - theta
        second_moment = jnp.outer(v, v) + jnp.einsum("jab,jbc,jdc->ad", J, Var, J)
        return jnp.einsum("cab,ab->c", jax.hessian(lambda h: response(h, beta))(theta), second_moment)

    return jax.vmap(change)(effective_fields, fields, J)


def tap_field(effective_fields, magnetizations, couplings, fields, *, beta, response=sphere.exact):
    """theta_i = x_i + sum_j J_ij m_j + (1/2) (beta Var_i)^-1 d^2 m_i / da^2: the right side, at theta = the left one.

    Source: Bal (2023), label ftheta. For ``sphere.exact`` this is what ``mean_field.tap_step`` solves; for
    ``sphere.large_d`` the trace of the covariances is their own, as with ``untied``.
    """
    J, systems = coupling_matrices(couplings, fields.shape[-1]), (effective_fields, magnetizations, couplings, fields)
    change = second_order_magnetization(*systems, beta=beta, response=response)
    Var = jax.vmap(lambda theta: covariance(theta, beta, response))(effective_fields)
    onsager = jnp.linalg.solve(beta * Var, change[..., None])[..., 0] / 2
    return fields + jnp.einsum("ijab,jb->ia", J, magnetizations) + onsager
