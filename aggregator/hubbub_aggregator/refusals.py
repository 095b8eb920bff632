"""Refusals: why a request was not answered, as a gRPC status that a program can read."""

import logging
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

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

# A full disk is seldom freed sooner; a queue is worked off in less. Seconds.
STORE_RETRY: Final = 5
OVERLOAD_RETRY: Final = 1

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

    def __init__(self, reason: report_pb2.RefusalReason.ValueType, message: str) -> None:
        self.reason = reason
        info = ErrorInfo(reason=report_pb2.RefusalReason.Name(reason), domain=DOMAIN)
        retry = [_retry_info(_RETRY[reason])] if reason in _RETRY else []
        super().__init__(_CODES[reason], message, info, *retry)


@contextmanager
def answering(context: grpc.ServicerContext) -> Generator[None]:
    """Turn what a handler raises into the status that its caller gets."""
    try:
        yield
    except Refused as refused:
        _abort(context, refused)
    except StoreError as error:
        # The sentence may name paths, and is the operator's: the caller learns only this.
        _log.error("a reader got no answer: %s", error)
        _abort(
            context,
            Refused(
                grpc.StatusCode.UNAVAILABLE,
                "the store cannot be read now",
                _retry_info(STORE_RETRY),
            ),
        )


def _retry_info(seconds: int) -> RetryInfo:
    return RetryInfo(retry_delay=Duration(seconds=seconds))


def _abort(context: grpc.ServicerContext, refused: Refused) -> None:
    status = Status(code=refused.code.value[0], message=refused.message)
    for detail in refused.details:
        packed = Any()
        packed.Pack(detail)
        status.details.append(packed)
    context.abort_with_status(rpc_status.to_status(status))
