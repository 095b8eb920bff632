"""Refusals: why a request was not answered, as a gRPC status that a program can read."""

import logging
import math
import random
from collections.abc import Generator
from contextlib import contextmanager
from functools import lru_cache
from typing import Final, NamedTuple, cast

import grpc
from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status

from hubbub.v1 import report_pb2
from hubbub_aggregator.store import StoreError

_log = logging.getLogger(__name__)

# The domain of every ErrorInfo.
DOMAIN: Final = "hubbub"

# A full disk is seldom freed sooner; a queue is worked off in less. Seconds, at most: callers
# are spread over the second half, so that they do not come back together.
STORE_RETRY: Final = 5
OVERLOAD_RETRY: Final = 2

# How finely moments to come back are told apart, parts of a second.
_PARTS: Final = 32
# The same for gRPC's own clients that are configured to retry.
_RETRY_PUSHBACK: Final = "grpc-retry-pushback-ms"

_CODES: Final = {
    report_pb2.REFUSAL_REASON_UNKNOWN_DIGEST: grpc.StatusCode.NOT_FOUND,
    report_pb2.REFUSAL_REASON_ROUND_NOT_OPEN: grpc.StatusCode.FAILED_PRECONDITION,
    report_pb2.REFUSAL_REASON_ROUND_CLOSED: grpc.StatusCode.FAILED_PRECONDITION,
    report_pb2.REFUSAL_REASON_NO_SUCH_ROUND: grpc.StatusCode.INVALID_ARGUMENT,
    report_pb2.REFUSAL_REASON_UNKNOWN_KEY: grpc.StatusCode.FAILED_PRECONDITION,
    report_pb2.REFUSAL_REASON_WRONG_LENGTH: grpc.StatusCode.INVALID_ARGUMENT,
    report_pb2.REFUSAL_REASON_TOO_MANY_REPORTS: grpc.StatusCode.INVALID_ARGUMENT,
    report_pb2.REFUSAL_REASON_STORE_UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    report_pb2.REFUSAL_REASON_OVERLOADED: grpc.StatusCode.RESOURCE_EXHAUSTED,
    report_pb2.REFUSAL_REASON_PLAIN_NOT_TAKEN: grpc.StatusCode.PERMISSION_DENIED,
    report_pb2.REFUSAL_REASON_MESSAGE_TOO_LARGE: grpc.StatusCode.INVALID_ARGUMENT,
}
_RETRY: Final = {
    report_pb2.REFUSAL_REASON_STORE_UNAVAILABLE: STORE_RETRY,
    report_pb2.REFUSAL_REASON_OVERLOADED: OVERLOAD_RETRY,
}


class Refused(Exception):
    """A request that is refused as a whole."""

    def __init__(self, code: grpc.StatusCode, message: str, *details: Message) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details


class ReportsRefused(Refused):
    """A request to count reports, refused for one of the wire's reasons."""

    def __init__(
        self,
        reason: report_pb2.RefusalReason.ValueType,
        message: str,
        *,
        pushback: float | None = None,
    ) -> None:
        """`pushback`: seconds to wait before it is sent again, if not as usual for the reason."""
        self.reason = reason
        info = ErrorInfo(reason=report_pb2.RefusalReason.Name(reason), domain=DOMAIN)
        if pushback is None and reason in _RETRY:
            pushback = _spread(_RETRY[reason])
        retry = [] if pushback is None else [_retry_info(pushback)]
        super().__init__(_CODES[reason], message, info, *retry)


@contextmanager
def answering(context: grpc.ServicerContext) -> Generator[None]:
    """Turn what a handler raises into the status that its caller gets."""
    try:
        yield
    except Refused as refused:
        abort(context, refused)
    except StoreError as error:
        # The sentence may name paths, and is the operator's: the caller learns only this.
        _log.error("a reader got no answer: %s", error)
        abort(
            context,
            Refused(
                grpc.StatusCode.UNAVAILABLE,
                "the store cannot be read now",
                _retry_info(_spread(STORE_RETRY)),
            ),
        )


def overloaded(pushback: float) -> grpc.Status:
    """What is answered for want of time: to come again in so many seconds, or a little later."""
    return _overloaded(math.ceil(pushback * _PARTS))


# They are wanted most when there is least time to make them.
@lru_cache(maxsize=1 << 14)
def _overloaded(parts: int) -> grpc.Status:
    seconds = parts / _PARTS
    refused = ReportsRefused(
        report_pb2.REFUSAL_REASON_OVERLOADED,
        "more at once than this aggregator takes; send it again later",
        pushback=seconds,
    )
    status = cast(_Answer, _status(refused))
    pushback = (_RETRY_PUSHBACK, str(math.ceil(seconds * 1_000)))
    metadata = (*status.trailing_metadata, pushback)
    return cast(grpc.Status, _Answer(status.code, status.details, metadata))


class _Answer(NamedTuple):
    """What gRPC takes for a grpc.Status, which has no constructor."""

    code: grpc.StatusCode
    details: str
    trailing_metadata: tuple[tuple[str, str | bytes], ...]


def _spread(seconds: float) -> float:
    return random.uniform(seconds / 2, seconds)  # noqa: S311  guards nothing


def _retry_info(seconds: float) -> RetryInfo:
    whole = math.floor(seconds)
    return RetryInfo(retry_delay=Duration(seconds=whole, nanos=int((seconds - whole) * 1e9)))


def abort(context: grpc.ServicerContext, refused: Refused) -> None:
    """Answer a call with a refusal. Raises what ends its handler."""
    context.abort_with_status(_status(refused))


def _status(refused: Refused) -> grpc.Status:
    status = Status(code=refused.code.value[0], message=refused.message)
    for detail in refused.details:
        packed = Any()
        packed.Pack(detail)
        status.details.append(packed)
    answer: grpc.Status = rpc_status.to_status(status)
    return answer
