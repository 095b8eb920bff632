"""The archive: reports of closed rounds as Parquet files, and counting them again.

Needs the extra `archive`, which the aggregator itself does without.
"""

from hubbub_aggregator.archive.errors import ArchiveError

__all__ = ["ArchiveError"]
