"""Judges whether what was measured confirms what was declared. It reads and writes no files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

from companion.declaring.declaration import WIDE, Claim, Value

__all__ = ["NUMERICAL", "SAMPLED", "Judgement", "Measurement", "Valued", "allowed", "expected", "factor", "judge"]

NUMERICAL = 3.0
"""k for a bound on a numerical error, which is a margin and no probability."""
SAMPLED = 4.0
"""k for a standard error: a right claim then misses its bound once in 16,000."""

Valued = Value | tuple[Value, float]
"""A value, or a value with its uncertainty."""


@dataclass(frozen=True)
class Measurement:
    """What a chapter found: ``value`` with one standard error (or one bound on the numerical error) ``uncertainty``.

    ``rival`` is what the declared rival gives through the same code, and ``control`` what the declared control gives,
    as a value or a value with its uncertainty; a ``rival`` that diverges is nan or infinite. Where a claim has a
    control in place of a rival, ``rival`` may hold it too.
    """

    value: Value
    uncertainty: float = 0.0
    rival: Valued | None = None
    control: Valued | None = None


@dataclass(frozen=True)
class Judgement:
    """The comparison: the ``gap`` to what should be, the ``bound`` on it, and whether the declared verdict ``holds``.

    ``rival_gap`` is the same distance for the rival, and ``rival_bound`` what it has to exceed; ``control_gap`` that of
    the control, whose limit is ``control_bound``.
    """

    gap: float | None
    bound: float | None
    holds: bool | None
    reason: str = field(default="")
    rival_gap: float | None = None
    rival_bound: float | None = None
    control_gap: float | None = None
    control_bound: float | None = None


@dataclass(frozen=True)
class _Target:
    """The values that count as right: those from ``low`` to ``high``, the ends included unless ``is_open``."""

    low: float
    high: float
    is_open: bool = False

    def gap(self, value: float) -> float:
        """Distance to the nearest right value, 0 for a right one."""
        return max(self.low - value, value - self.high, 0.0)

    def passes(self, value: float, bound: float) -> bool:
        """Whether a right value lies within ``bound``."""
        excess = max(self.low - value, value - self.high)
        return excess < bound if self.is_open else excess <= bound


def judge(claim: Claim, measurement: Measurement | None) -> Judgement:
    """Whether the measured value is within bound = allowance + k uncertainty, and the rival is not.

    The value is compared with ``published``, with ``corrected`` for that verdict, or with what the claim ``expects``; a
    deviation from an independent route with zero. The allowance is ``reading_error``, ``accuracy`` or ``bound``; k is
    ``factor``. ``holds`` says that the declared verdict is confirmed.

    - reproduced, established: the value passes, and the rival misses by more than allowance + k sqrt(u^2 + u_r^2).
    - corrected: the same, with the printed form as the rival; a printed number needs no measurement.
    - not-reproduced: the value misses, it is what was ``found``, and the control passes.
    - partly, not-attempted, retired: nothing is measured, and ``holds`` is None.
    """
    if not claim.is_measured:
        return Judgement(None, None, None)
    if measurement is None:
        return Judgement(None, None, False, "declared but never measured")
    wanted = _sample(claim)
    if isinstance(measurement.value, bool) != isinstance(wanted, bool):
        kinds = f"{type(measurement.value).__name__} measured, {type(wanted).__name__} declared"
        return Judgement(None, None, False, f"a boolean cannot be compared with a number: {kinds}")
    target, allowance, k = _target(claim), allowed(claim), factor(claim)
    bound = allowance + k * measurement.uncertainty
    value = float(measurement.value)
    gap = target.gap(value)
    reasons = [_too_wide(claim, bound)]
    if claim.verdict == "not-reproduced":
        return _judge_refuted(claim, measurement, target, allowance, k, reasons)
    if not target.passes(value, bound):
        reasons.append(f"gap {gap:.3g} exceeds the bound {bound:.3g}")
    rival_gap, rival_bound, reason = _judge_rival(claim, measurement, target, allowance, k)
    reasons.append(reason)
    said = "; ".join(filter(None, reasons))
    return Judgement(gap, bound, not said, said, rival_gap, rival_bound)


def _judge_rival(
    claim: Claim, measurement: Measurement, target: _Target, allowance: float, k: float
) -> tuple[float | None, float | None, str]:
    """Gap of the rival, what it has to exceed, and why it does not show anything, if it does not."""
    rival = measurement.rival
    if rival is None and claim.verdict == "corrected" and claim.published is not None:
        rival = claim.published
    if rival is None:
        return None, None, "no rival was measured"
    value, uncertainty = _pair(rival)
    if isinstance(value, bool) != isinstance(measurement.value, bool) and math.isfinite(float(value)):
        return None, None, "the rival is a boolean and the value is not, or the other way round"
    bound = allowance + k * math.hypot(measurement.uncertainty, uncertainty)
    if not math.isfinite(float(value)):
        return None, bound, ""
    gap, word = target.gap(float(value)), "printed form" if claim.verdict == "corrected" else "rival"
    if not math.isfinite(uncertainty) or target.passes(float(value), bound):
        return gap, bound, f"the {word} passes too: gap {gap:.3g}, bound {bound:.3g}"
    return gap, bound, ""


def _judge_refuted(
    claim: Claim, measurement: Measurement, target: _Target, allowance: float, k: float, reasons: list[str]
) -> Judgement:
    bound = allowance + k * measurement.uncertainty
    value = float(measurement.value)
    gap = target.gap(value)
    if target.passes(value, bound):
        reasons.append(f"declared not reproduced, but the gap {gap:.3g} is within the bound {bound:.3g}")
    assert claim.found is not None
    distance, limit = abs(value - float(claim.found["value"])), float(claim.found.get("bound") or 0.0)
    if distance > limit:
        reasons.append(f"distance {distance:.3g} to the value declared as found exceeds its bound {limit:.3g}")
    control = measurement.control if measurement.control is not None else measurement.rival
    control_gap = control_bound = None
    if control is None:
        reasons.append("no control was measured")
    else:
        shown, uncertainty = _pair(control)
        control_bound = allowance + k * uncertainty
        control_gap = target.gap(float(shown)) if math.isfinite(float(shown)) else None
        if control_gap is None or not target.passes(float(shown), control_bound):
            far = "diverges" if control_gap is None else f"misses, gap {control_gap:.3g}, bound {control_bound:.3g}"
            reasons.append(f"the control, where the statement is true, {far}")
    said = "; ".join(filter(None, reasons))
    return Judgement(gap, bound, not said, said, control_gap=control_gap, control_bound=control_bound)


def _too_wide(claim: Claim, bound: float) -> str:
    published = claim.published
    if claim.bound is not None or published is None or isinstance(published, bool) or published == 0:
        return ""
    if bound <= WIDE * abs(published) * (1 + 1e-12):
        return ""
    return f"the bound {bound:.3g} is over {WIDE:.0%} of the published value, and no why is given with it"


def factor(claim: Claim) -> float:
    """k: 3 for numerical errors, 4 for sampled ones.

    With few ``samples`` (groups, seeds) the quantile of Student's t at the probability of 4 standard errors; for the
    largest of many ``comparisons`` that probability is divided by their number.
    """
    if not claim.is_sampled:
        return NUMERICAL
    chance = 2.0 * NormalDist().cdf(-SAMPLED) / (claim.comparisons or 1)
    if claim.samples is None:
        return SAMPLED if claim.comparisons is None else -NormalDist().inv_cdf(chance / 2.0)
    # Importing it takes time that a reader of a claim's words should not wait for.
    from scipy.special import stdtrit

    return float(-stdtrit(claim.samples - 1, chance / 2.0))


def allowed(claim: Claim) -> float:
    """The part of the bound that no measurement changes."""
    if claim.bound is None:
        return claim.reading_error if claim.accuracy is None else claim.accuracy
    if "absolute" in claim.bound:
        return float(claim.bound["absolute"])
    expected = (claim.expects or {}).get("value")
    scale = next((value for value in (claim.published, claim.corrected, expected) if value is not None), 0.0)
    return float(claim.bound["relative"]) * abs(float(scale))


def expected(claim: Claim) -> Mapping[str, Any]:
    """What the measured value should be: one of value, above, below, between."""
    if claim.verdict == "corrected" and claim.corrected is not None:
        return {"value": claim.corrected}
    if claim.expects is not None:
        return {name: value for name, value in claim.expects.items() if name != "why"}
    if claim.published is not None and claim.verdict != "corrected":
        return {"value": claim.published}
    return {"value": 0.0}


def _sample(claim: Claim) -> Any:
    """A value of the kind that the claim is about, to tell booleans from numbers."""
    return expected(claim).get("value", 0.0)


def _target(claim: Claim) -> _Target:
    wanted = expected(claim)
    if "above" in wanted:
        return _Target(float(wanted["above"]), math.inf, is_open=True)
    if "below" in wanted:
        return _Target(-math.inf, float(wanted["below"]), is_open=True)
    if "between" in wanted:
        low, high = wanted["between"]
        return _Target(float(low), float(high))
    return _Target(float(wanted["value"]), float(wanted["value"]))


def _pair(given: Valued) -> tuple[Value, float]:
    return (given[0], float(given[1])) if isinstance(given, tuple | list) else (given, 0.0)
