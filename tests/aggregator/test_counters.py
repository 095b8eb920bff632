"""What happened, counted, and told in words."""

from hubbub.v1 import report_pb2
from hubbub_aggregator.counters import Counters, in_words


def test_what_happened_is_told_in_words() -> None:
    counters = Counters()
    assert in_words(counters.totals()) == "no reports"
    counters.add("REFUSAL_REASON_ROUND_CLOSED", 2)
    assert in_words(counters.totals()) == ("no reports; requests refused 2: their round was closed")
    counters.add("REPORT_STATUS_DUPLICATE")
    counters.add("REPORT_STATUS_COUNTED", 1_000)
    assert in_words(counters.totals()) == (
        "counted 1,000, counted before 1; requests refused 2: their round was closed"
    )


def test_there_are_words_for_whatever_may_happen() -> None:
    names = [*report_pb2.ReportStatus.keys(), *report_pb2.RefusalReason.keys()]
    for name in names:
        if not name.endswith("_UNSPECIFIED"):
            assert in_words({name: 7}).replace("no reports; ", "").count("7") == 1
