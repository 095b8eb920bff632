"""Made-up snapshots for pure functions."""

from typing import Any

from hubbub_dashboard.reading.answers import Epsilon, Estimates, RoundState, Value


def make_value(label: str, estimate: float, *, error: float = 0.01) -> Value:
    """A value whose intervals are 2 and 3 standard errors wide on each side."""
    return Value(
        label=label,
        count=100,
        estimate=estimate,
        std_error=error,
        low=estimate - 2 * error,
        high=estimate + 2 * error,
        simultaneous_low=estimate - 3 * error,
        simultaneous_high=estimate + 3 * error,
        rank_low=1,
        rank_high=2,
        influence=0.000_43,
        consistent=max(0.0, estimate),
        found=estimate > 3 * error,
    )


def make_estimates(*values: Value, **facts: Any) -> Estimates:
    """An open round's snapshot of 12,345 reports, but for the given facts."""
    defaults: dict[str, Any] = {
        "metric": "health",
        "digest": bytes(range(32)),
        "round": 0,
        "state": RoundState.OPEN,
        "n": 12_345,
        "mechanism": "randomised-response",
        "epsilon": Epsilon("1", "0.999999999999999999"),
        "level": 0.95,
        "as_of": 1_000_000_000.0,
        "publish_step": 100,
        "values": values,
    }
    return Estimates(**(defaults | facts))
