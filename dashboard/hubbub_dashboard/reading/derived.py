"""What is worked out from a snapshot is kept as long as the snapshot is, for all viewers."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, Final, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

S = TypeVar("S")
P = ParamSpec("P")
T = TypeVar("T")

# Orders, toggles and words searched for; of one snapshot.
_MOST: Final = 16


def derived(function: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Keep what a pure function returns with its first argument; the others are hashed.

    The first is known by identity, and must not be held by what is returned: a number of newest
    results, as `functools.lru_cache` keeps, would be snapshots that nobody shows any more.
    """
    kept: WeakKeyDictionary[S, OrderedDict[object, T]] = WeakKeyDictionary()
    lock = threading.Lock()

    @wraps(function)
    def keeping(snapshot: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        asked = args, frozenset(kwargs.items())
        with lock:
            results = kept.setdefault(snapshot, OrderedDict())
            if asked in results:
                results.move_to_end(asked)
                return results[asked]
        result = function(snapshot, *args, **kwargs)
        with lock:
            results[asked] = result
            if len(results) > _MOST:
                results.popitem(last=False)
        return result

    return keeping
