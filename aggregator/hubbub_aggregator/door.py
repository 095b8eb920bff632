"""The door of the public listener: what may come in, before anything is done for it.

What would wait too long is turned away as its call begins, or as its message is there; so is what
is too large. gRPC's own thread does that, so that a refusal costs little more than to notice the
call.

What comes in has a thread of its own, unless its answer waits for others' more than it takes: that
is begun by gRPC's thread, and goes on with whichever thread knows the answer.
"""

from collections.abc import Callable
from concurrent import futures
from functools import partial
from typing import Any, Final, NamedTuple

import grpc

from hubbub.v1 import report_pb2
from hubbub_aggregator.arrivals import KNOWN, Behaviour, Receiver, Refuser, Run
from hubbub_aggregator.backlog import Backlog
from hubbub_aggregator.refusals import ReportsRefused, abort, overloaded

OVERLOADED: Final = report_pb2.REFUSAL_REASON_OVERLOADED
OVERLOADED_NAME: Final = report_pb2.RefusalReason.Name(OVERLOADED)
TOO_LARGE: Final = report_pb2.REFUSAL_REASON_MESSAGE_TOO_LARGE

Handler = Any
"""A grpc.RpcMethodHandler, whose fields no types tell."""

Answer = Callable[[grpc.ServicerContext], Any]
"""What a call is answered, or raises what ends it."""
GoOn = Callable[[Answer], object]
"""Answers a call."""
Begin = Callable[[Any, GoOn], bool]
"""Begins to answer a request, and lets another thread go on; False: it needs one of its own."""


# A message of more bytes is a batch. Batches do not queue with single reports, which take a moment
# beside them: a gateway that sends a few at once must not keep every device away.
_LARGEST_SINGLE: Final = 4 << 10


class Line(NamedTuple):
    """Calls of one kind: those in hand, and the threads that work on them."""

    pool: futures.ThreadPoolExecutor
    backlog: Backlog
    batches: Backlog
    """The same of those with large messages; may be the same."""

    def backlog_of(self, size: int) -> Backlog:
        """Where a call with a message of so many bytes stands."""
        return self.batches if size > _LARGEST_SINGLE else self.backlog


class Door(grpc.ServerInterceptor):
    """Lets calls in, by gRPC's thread."""

    def __init__(self, lines: Callable[[str], Line], largest: int) -> None:
        """`lines`: where calls of a method stand; `largest`: bytes that a message may have."""
        self.receiver: Final = Receiver()
        self.largest: Final = largest
        self.on_refusal: Callable[[str], None] = lambda reason: None
        """Is told the RefusalReason's name for each call that is refused here."""
        self.begin: Final[dict[str, Begin]] = {}
        """How methods begin that need no thread while they wait for something."""
        self.lines: Final = lines
        # What handles a method's calls while they are turned away.
        self._away: dict[str, Handler] = {}

    def intercept_service(
        self, continuation: Callable[[Any], Handler], handler_call_details: Any
    ) -> Handler:
        handler = continuation(handler_call_details)
        if handler is None or handler.request_streaming:
            return handler
        if handler.response_streaming:
            # There is none here that looks at what it is asked: so it need not be waited for.
            return grpc.stream_stream_rpc_method_handler(
                partial(_ask_nothing, handler.unary_stream),
                response_serializer=handler.response_serializer,
            )
        method = handler_call_details.method
        line = self.lines(method)
        # How large its message is nobody knows yet, and most are small.
        if not line.backlog.admits():
            if method not in self._away:
                self._away[method] = self._turns_away(line)
            return self._away[method]
        call = _Call(self, line, handler, self.begin.get(method))
        return grpc.stream_unary_rpc_method_handler(
            call,
            request_deserializer=call.arrive if KNOWN else handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )

    def turn_away(self, backlog: Backlog, context: grpc.ServicerContext) -> None:
        """Answer a call for which there is no time now. Raises what ends it."""
        context.abort_with_status(self._overloaded(backlog))

    def refuse_large(self, size: int, context: grpc.ServicerContext) -> None:
        """Answer a call whose message is too large. Raises what ends it."""
        self.on_refusal(report_pb2.RefusalReason.Name(TOO_LARGE))
        what = f"a message of {size:,} bytes; it may have {self.largest:,}"
        abort(context, ReportsRefused(TOO_LARGE, what))

    def _turns_away(self, line: Line) -> Handler:
        refuser = Refuser(partial(self._overloaded, line.backlog))
        return grpc.stream_unary_rpc_method_handler(Behaviour(refuser.refuse, refuser))

    def _overloaded(self, backlog: Backlog) -> grpc.Status:
        self.on_refusal(OVERLOADED_NAME)
        return overloaded(backlog.pushback())


def _ask_nothing(
    behaviour: Callable[[Any, grpc.ServicerContext], Any], _: Any, context: grpc.ServicerContext
) -> Any:
    return behaviour(None, context)


class _Call:
    """One call, from its beginning to its answer."""

    __slots__ = (
        "_answer",
        "_backlog",
        "_begin",
        "_door",
        "_handler",
        "_line",
        "_request",
        "_size",
        "experimental_thread_pool",
    )

    def __init__(self, door: Door, line: Line, handler: Handler, begin: Begin | None) -> None:
        self.experimental_thread_pool = door.receiver if KNOWN else line.pool
        self._door = door
        self._line = line
        self._backlog = line.backlog
        self._handler = handler
        self._begin = begin
        self._request: Any = None
        self._answer: Answer | None = None
        self._size = 0

    def arrive(self, message: bytes) -> bool:
        """Take the message, as gRPC's thread; what it raises tells that it cannot be parsed."""
        run = self._door.receiver.take(self)
        if run is None:
            # It was given up just now.
            return True
        self._size = len(message)
        self._backlog = self._line.backlog_of(self._size)
        if self._size > self._door.largest or not self._backlog.enter(self._size):
            # Without a request it is refused.
            run()
            return True
        try:
            self._request = self._handler.request_deserializer(message)
            if self._begin is None or not self._begin(self._request, partial(self._go_on, run)):
                self._line.pool.submit(run)
        except BaseException:
            self._backlog.leave(self._size)
            raise
        return True

    def _go_on(self, run: Run, answer: Answer) -> None:
        self._answer = answer
        run()

    def __call__(self, requests: Any, context: grpc.ServicerContext) -> Any:
        """Answer, as a thread of the line or whichever went on with it; refuse, as gRPC's."""
        if not KNOWN:
            return self._wait_and_answer(requests, context)
        if self._request is None:
            if self._size > self._door.largest:
                self._door.refuse_large(self._size, context)
            self._door.turn_away(self._backlog, context)
        try:
            if self._answer is not None:
                return self._answer(context)
            if not context.is_active():
                # It has not waited for us; and what it does not hear of, it sends again.
                context.abort(grpc.StatusCode.CANCELLED, "the caller is gone")
            return self._handler.unary_unary(self._request, context)
        finally:
            self._backlog.leave(self._size)

    def _wait_and_answer(self, requests: Any, context: grpc.ServicerContext) -> Any:
        self._request = next(requests)
        self._size = self._request.ByteSize()
        if self._size > self._door.largest:
            self._door.refuse_large(self._size, context)
        self._backlog = self._line.backlog_of(self._size)
        if not self._backlog.enter(self._size):
            self._door.turn_away(self._backlog, context)
        try:
            return self._handler.unary_unary(self._request, context)
        finally:
            self._backlog.leave(self._size)
