"""Messages on their way in, without a thread for each.

gRPC gives a call a thread as it begins, and the thread waits for the message: whoever begins calls
and sends nothing more would hold all of them. Here gRPC's own thread takes the messages as they
come, and a call gets one of ours when its message is there. One that takes too long is given up.

A call that is refused as it begins gets none at all, and nothing is made for it but its status.

This asks of grpc/_server.py what it promises nobody: how it starts a call, how it begins to
receive, how it tells that a call is over, and how it ends one early. Where it does so in another
way than is known here, threads wait as they always did.
"""

import inspect
import logging
import threading
import time
from collections.abc import Callable
from concurrent import futures
from functools import partial
from operator import attrgetter
from typing import Any, Final, NamedTuple

import grpc
from grpc import _server

# How long a message may take to come once its call has begun, and when nothing new will come;
# seconds. A device gives up a call after ten.
PATIENCE: Final = 10.0
_LAST_PATIENCE: Final = 1.0
# Messages that are under way at once. One more, and the oldest is given up: whoever is not slow
# has sent the message with the beginning of its call.
MOST_UNDER_WAY: Final = 512
# How often it is looked whether one takes too long, seconds.
_LOOK: Final = 0.5

# Begins to receive a message, and does not wait for it; ends a call with what its state says.
_RECEIVE: Final = "_raise_or_start_receive_message"
_END: Final = "_abort"
# What each takes, as it is given it here, or gives it to us.
_WAYS: Final = {
    "_RequestIterator." + _RECEIVE: "self",
    _END: "state call code details",
    # Calls what is in the state's `callbacks`.
    "_possibly_finish_call": "state token",
    "_unary_response_in_pool": (
        "rpc_event state behavior argument_thunk request_deserializer response_serializer"
    ),
}


def _known(ways: object) -> bool:
    for name, takes in _WAYS.items():
        try:
            signature = inspect.signature(attrgetter(name)(ways))
        except (AttributeError, TypeError, ValueError):
            return False
        if " ".join(signature.parameters) != takes:
            return False
    return True


KNOWN: Final = _known(_server)
"""Whether this version of gRPC is one whose ways are known."""

_log = logging.getLogger(__name__)

Run = Callable[[], object]
"""Goes on with a call."""


class _Awaited(NamedTuple):
    """A call whose message is under way."""

    since: float
    run: Run
    """When the message is there."""
    give_up: Run


class Receiver(futures.ThreadPoolExecutor):
    """What gRPC takes for a pool of threads: it hands in calls that begin."""

    def __init__(self, patience: float = PATIENCE, most: int = MOST_UNDER_WAY) -> None:
        """`patience`: seconds for a message to come; `most`: messages under way at once."""
        super().__init__(1)
        self._patience = patience
        self._most = most
        self._lock = threading.Lock()
        # By what gRPC takes for the call's behaviour, from the oldest to the newest. Nothing else
        # keeps them: whoever cancels a hundred calls before their messages are there could begin
        # no other on the connection until they are gone.
        self._under_way: dict[object, _Awaited] = {}
        self._closing = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="door", daemon=True)

    @property
    def under_way(self) -> int:
        """Messages that are awaited."""
        return len(self._under_way)

    def start(self) -> None:
        """Give up what takes too long, from now on."""
        self._watcher.start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> futures.Future[Any]:
        # gRPC's thread, which holds the call's lock, and ends with whatever is raised here.
        _, event, state, arrival, requests, *_ = args
        try:
            # If it is over before its message is there.
            state.callbacks.append(partial(self.take, arrival))
            run = partial(fn, *args, **kwargs)
            self._note(arrival, _Awaited(time.monotonic(), run, event.call.cancel))
            getattr(requests(), _RECEIVE)()
        except Exception:
            _log.exception("a call could not be received")
            event.call.cancel()
        return _DONE

    def take(self, arrival: object) -> Run | None:
        """Its message is there: what goes on with the call; None: it was given up."""
        with self._lock:
            awaited = self._under_way.pop(arrival, None)
        return None if awaited is None else awaited.run

    def hurry(self) -> None:
        """Wait no longer than a moment: nothing new will come."""
        self._patience = min(self._patience, _LAST_PATIENCE)

    def close(self) -> None:
        self._closing.set()
        if self._watcher.is_alive():
            self._watcher.join()

    def _note(self, arrival: object, awaited: _Awaited) -> None:
        oldest = None
        with self._lock:
            if len(self._under_way) >= self._most:
                oldest = self._under_way.pop(next(iter(self._under_way)))
            self._under_way[arrival] = awaited
        if oldest is not None:
            oldest.give_up()

    def _watch(self) -> None:
        while not self._closing.wait(_LOOK):
            latest = time.monotonic() - self._patience
            with self._lock:
                late = [one for one, awaited in self._under_way.items() if awaited.since <= latest]
                given_up = [self._under_way.pop(one) for one in late]
            for awaited in given_up:
                awaited.give_up()


class Refuser(futures.ThreadPoolExecutor):
    """What gRPC takes for a pool of threads: it hands in calls that are to be refused.

    Its own thread refuses them, as more of them come than anything else when there is least time.
    """

    def __init__(self, status: Callable[[], grpc.Status]) -> None:
        """`status`: what the next call is answered."""
        super().__init__(1)
        self._status = status

    def refuse(self, _: Any, context: grpc.ServicerContext) -> None:
        """Refuse a call whose handler this is. Raises what ends it."""
        context.abort_with_status(self._status())

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> futures.Future[Any]:
        if KNOWN:
            # What `fn` comes to in the end; but nearly half of a refusal's time it takes to come
            # there.
            _, event, state, *_ = args
            status = self._status()
            state.trailing_metadata = status.trailing_metadata
            state.code, state.details = status.code, status.details.encode()
            state.aborted = True
            getattr(_server, _END)(state, event.call, None, state.details)
        else:
            fn(*args, **kwargs)
        return _DONE


class Behaviour:
    """A function that gRPC lets a pool of threads of its own work on."""

    def __init__(
        self,
        function: Callable[[Any, grpc.ServicerContext], Any],
        pool: futures.ThreadPoolExecutor,
    ) -> None:
        self._function = function
        self.experimental_thread_pool = pool

    def __call__(self, requests: Any, context: grpc.ServicerContext) -> Any:
        return self._function(requests, context)


# All that gRPC does with a future is to wait for its end, to count the calls that run.
_DONE: Final[futures.Future[Any]] = futures.Future()
_DONE.set_result(None)
