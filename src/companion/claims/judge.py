"""Judges whether a measurement confirms the verdict that a claim declares."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import NormalDist
from typing import Any

from companion.claims.model import UNDECIDED, WIDE, Claim, Value

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

    ``z`` is the distance to the value that is right, or to the nearest end of a range, in uncertainties; beyond an end
    it is negative. ``rival_gap`` is the gap of the rival, and ``rival_bound`` what it has to exceed; ``control_gap``
    that of the control, whose limit is ``control_bound``.
    """

    gap: float | None
    bound: float | None
    holds: bool | None
    reason: str = field(default="")
    rival_gap: float | None = None
    rival_bound: float | None = None
    control_gap: float | None = None
    control_bound: float | None = None
    z: float | None = None


@dataclass(frozen=True)
class _Target:
    """The values that count as right: those from ``low`` to ``high``, the ends included unless ``is_open``."""

    low: float
    high: float
    is_open: bool = False

    @property
    def is_range(self) -> bool:
        """Whether there are ends on whose right side a value lies, and not one value that is right."""
        return self.low < self.high

    def excess(self, value: float) -> float:
        """How far a value is beyond the nearer end; negative inside."""
        return max(self.low - value, value - self.high)

    def gap(self, value: float) -> float:
        """Distance to the nearest right value, 0 for a right one."""
        return max(self.excess(value), 0.0)

    def agrees(self, value: float, allowance: float, spread: float) -> bool:
        """Whether ``value`` with the interval ``spread`` about it is right: near a value, but inside of a range."""
        limit = allowance - spread if self.is_range else allowance + spread
        return self.excess(value) < limit if self.is_open else self.excess(value) <= limit

    def reaches(self, value: float, bound: float) -> bool:
        """Whether a right value lies within ``bound``, so that ``value`` is not surely wrong."""
        return self.excess(value) < bound if self.is_open else self.excess(value) <= bound


def judge(claim: Claim, measurement: Measurement | None) -> Judgement:
    """Whether the measured value is within bound = allowance + k uncertainty, and the rival is not.

    The value is compared with what the claim ``expects``: the printed value, one of our own, or, for a deviation from
    an independent route, zero. The allowance is ``within`` or ``accuracy``; k is ``factor``. ``holds`` says that the
    declared verdict is confirmed.

    - reproduced, and verdicts of the book's own: the value agrees, and the rival misses by more than allowance +
      k sqrt(u^2 + u_r^2). In a range (above, below, between) the value lies inside by k u less the allowance, and the
      rival outside by k u_r and the allowance.
    - corrected: the same, with the printed form as the rival; a printed number needs no measurement.
    - not-reproduced: the value misses, it is what was ``found``, and the control agrees.
    - undecided: the interval of k u about the value has an end of the range inside; or, where one value is right, it
      holds that value and the rival's too.
    - partly, not-attempted, retired: nothing is measured, and ``holds`` is None.
    """
    if not claim.is_measured:
        return Judgement(None, None, None)
    if measurement is None:
        return Judgement(None, None, False, "declared but never measured")
    # A value of the kind that the claim is about, to tell booleans from numbers.
    wanted = expected(claim).get("value", 0.0)
    if isinstance(measurement.value, bool) != isinstance(wanted, bool):
        kinds = f"{type(measurement.value).__name__} measured, {type(wanted).__name__} declared"
        return Judgement(None, None, False, f"a boolean cannot be compared with a number: {kinds}")
    target, allowance, k = _target(claim), allowed(claim), factor(claim)
    value, spread = float(measurement.value), k * measurement.uncertainty
    bound, gap = allowance + spread, target.gap(value)
    z = abs(target.excess(value)) / measurement.uncertainty if measurement.uncertainty else None
    if z is not None and target.is_range and gap:
        z = -z
    reasons = [_too_wide(claim, bound)]
    control_gap = control_bound = rival_gap = rival_bound = None
    if claim.verdict == "not-reproduced":
        control_gap, control_bound = _judge_refuted(claim, measurement, target, allowance, k, reasons)
    else:
        if claim.verdict == UNDECIDED:
            reasons = [_decided(measurement, target, allowance, k)]
        elif not target.reaches(value, bound):
            reasons.append(f"gap {gap:.3g} exceeds the bound {bound:.3g}")
        elif not target.agrees(value, allowance, spread):
            reasons.append(f"undecided: an end of the range is within {spread:.3g} of the value")
        rival_gap, rival_bound, reason = _judge_rival(claim, measurement, target, allowance, k)
        reasons.append(reason)
    said = "; ".join(filter(None, reasons))
    return Judgement(gap, bound, not said, said, rival_gap, rival_bound, control_gap, control_bound, z)


def _decided(measurement: Measurement, target: _Target, allowance: float, k: float) -> str:
    """Why a claim that is declared undecided is decided by its measurement; empty where it is not."""
    value, u = float(measurement.value), measurement.uncertainty
    if not target.reaches(value, allowance + k * u):
        return "declared undecided, but the value misses"
    if target.is_range:
        return "declared undecided, but the value agrees" if target.agrees(value, allowance, k * u) else ""
    rival, u_rival = _pair(measurement.rival) if measurement.rival is not None else (math.nan, 0.0)
    within = abs(value - float(rival)) <= allowance + k * math.hypot(u, u_rival)
    return "" if within else "declared undecided, but the rival is outside of the interval about the value"


def _judge_rival(
    claim: Claim, measurement: Measurement, target: _Target, allowance: float, k: float
) -> tuple[float | None, float | None, str]:
    """Gap of the rival, what it has to exceed, and why it does not show anything, if it does not."""
    rival = measurement.rival
    if rival is None and claim.verdict == "corrected":
        rival = claim.expects.get("printed")
    if rival is None:
        return None, None, "no rival was measured"
    value, uncertainty = _pair(rival)
    if isinstance(value, bool) != isinstance(measurement.value, bool) and math.isfinite(float(value)):
        return None, None, "the rival is a boolean and the value is not, or the other way round"
    # The ends of a range are known; elsewhere both numbers scatter about the right one.
    bound = allowance + k * (uncertainty if target.is_range else math.hypot(measurement.uncertainty, uncertainty))
    if not math.isfinite(float(value)):
        return None, bound, ""
    if _is_multiple(measurement, float(value), uncertainty):
        return None, bound, "the rival is a multiple of the value, so that it shows nothing"
    gap, word = target.gap(float(value)), "printed form" if claim.verdict == "corrected" else "rival"
    passes = not math.isfinite(uncertainty) or target.reaches(float(value), bound)
    if passes and claim.verdict != UNDECIDED:
        return gap, bound, f"the {word} passes too: gap {gap:.3g}, bound {bound:.3g}"
    return gap, bound, ""


def _is_multiple(measurement: Measurement, rival: float, uncertainty: float) -> bool:
    """Whether the rival is the measured number, with its error, times a simple fraction."""
    value, own = float(measurement.value), measurement.uncertainty
    if not (value and rival and own and uncertainty and math.isfinite(uncertainty)):
        return False
    ratio = rival / value
    fraction = float(Fraction(ratio).limit_denominator(12))
    return math.isclose(uncertainty / own, abs(ratio), rel_tol=1e-12) and math.isclose(ratio, fraction, rel_tol=1e-12)


def _judge_refuted(
    claim: Claim, measurement: Measurement, target: _Target, allowance: float, k: float, reasons: list[str]
) -> tuple[float | None, float | None]:
    """Gap and bound of the control; what is wrong goes into ``reasons``."""
    bound = allowance + k * measurement.uncertainty
    value = float(measurement.value)
    if target.reaches(value, bound):
        reasons.append(f"declared not reproduced, but the gap {target.gap(value):.3g} is within the bound {bound:.3g}")
    distance, limit = abs(value - float(claim.found["value"])), float(claim.found.get("within", 0.0))
    if distance > limit:
        reasons.append(f"distance {distance:.3g} to the value declared as found exceeds its bound {limit:.3g}")
    control = measurement.control if measurement.control is not None else measurement.rival
    if control is None:
        reasons.append("no control was measured")
        return None, None
    shown, uncertainty = _pair(control)
    limit = allowance + k * uncertainty
    gap = target.gap(float(shown)) if math.isfinite(float(shown)) else None
    if gap is None or not target.agrees(float(shown), allowance, k * uncertainty):
        far = "diverges" if gap is None else f"misses, gap {gap:.3g}, bound {limit:.3g}"
        reasons.append(f"the control, where the statement is true, {far}")
    return gap, limit


def _too_wide(claim: Claim, bound: float) -> str:
    printed = claim.expects.get("printed")
    if claim.because or printed is None or isinstance(printed, bool) or printed == 0:
        return ""
    if bound <= WIDE * abs(printed) * (1 + 1e-12):
        return ""
    return f"the bound {bound:.3g} is over {WIDE:.0%} of the printed value, and no because is given with it"


def factor(claim: Claim) -> float:
    """k: 3 for numerical errors, 4 for sampled ones.

    With few ``samples`` (groups, seeds) the quantile of Student's t at the probability of 4 standard errors; for the
    largest of many ``comparisons`` that probability is divided by their number.
    """
    if not claim.sampled:
        return NUMERICAL
    given = claim.sampled if isinstance(claim.sampled, Mapping) else {}
    samples, comparisons = given.get("samples"), given.get("comparisons")
    chance = 2.0 * NormalDist().cdf(-SAMPLED) / (comparisons or 1)
    if samples is None:
        return SAMPLED if comparisons is None else -NormalDist().inv_cdf(chance / 2.0)
    # Importing it takes time that a reader of a claim's words should not wait for.
    from scipy.special import stdtrit

    return float(-stdtrit(samples - 1, chance / 2.0))


def allowed(claim: Claim) -> float:
    """The part of the bound that no measurement changes."""
    return float(claim.expects.get("within", claim.expects.get("accuracy", 0.0)))


def expected(claim: Claim) -> Mapping[str, Any]:
    """What the measured value should be: one of value, above, below, between."""
    for name in ("value", "above", "below", "between"):
        if name in claim.expects:
            return {name: claim.expects[name]}
    return {"value": claim.expects.get("printed", 0.0)}


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
