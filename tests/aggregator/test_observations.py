"""How work goes, in figures: quantiles that are true bounds, rates, and what fails."""

from math import inf

import pytest

from hubbub_aggregator.observations import BUCKETS, Histogram, Observations


class TestQuantiles:
    def test_without_any(self) -> None:
        timings = Histogram().timings()
        assert (timings.count, timings.seconds, timings.quantile(0.5)) == (0, 0.0, None)

    @pytest.mark.parametrize("seconds", [1e-6, *BUCKETS, 0.0033, 1.0, 62.9])
    def test_are_upper_bounds_within_sixty_percent(self, seconds: float) -> None:
        histogram = Histogram()
        histogram.add(seconds)
        bound = histogram.timings().quantile(0.5)
        assert bound is not None
        assert seconds <= bound <= max(BUCKETS[0], 1.61 * seconds)

    def test_count_from_the_fastest(self) -> None:
        histogram = Histogram()
        for seconds in [0.001] * 98 + [0.9, 100.0]:
            histogram.add(seconds)
        timings = histogram.timings()
        assert [timings.quantile(q) for q in (0.5, 0.98, 0.99, 1.0)] == [0.001, 0.001, 1.0, inf]
        assert timings.seconds == pytest.approx(100.998)


class TestCommits:
    @pytest.fixture
    def now(self) -> list[float]:
        return [100.0]

    @pytest.fixture
    def seen(self, now: list[float]) -> Observations:
        return Observations(lambda: now[0])

    def test_fail_since_the_first_of_the_latest(self, seen: Observations, now: list[float]) -> None:
        seen.committed()
        assert (seen.failing_since, seen.last_commit) == (None, 100.0)
        for now[0] in (200.0, 300.0):
            seen.failed()
        assert (seen.failing_since, seen.last_commit) == (200.0, 100.0)
        now[0] = 400.0
        seen.committed()
        assert (seen.failing_since, seen.last_commit) == (None, 400.0)

    def test_requests_wait(self, seen: Observations) -> None:
        seen.begin_waiting()
        seen.begin_waiting()
        seen.end_waiting()
        assert seen.requests_waiting == 1


def test_a_rate_is_over_the_last_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    seen = Observations(lambda: 0.0)
    assert seen.rate() == (0.0, 0.0)
    counted = 0
    for second in range(1, 200):
        now[0] = 1_000.0 + second
        counted += 10 if second > 100 else 1
        seen.sample(counted)
    assert seen.rate() == (10.0, 60.0)
