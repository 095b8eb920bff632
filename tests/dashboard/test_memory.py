"""Answers are kept while they are used and light enough, and what is made of them as long."""

import gc
import threading
from typing import Any
from weakref import ref

import grpc

from hubbub_dashboard.reading.derived import derived
from hubbub_dashboard.reading.memory import Memory


class Asked:
    """Answers with what it is told to, and counts."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> str:
        self.count += 1
        return "x" * self.count


def make_memory(**settings: Any) -> Memory[str, str]:
    return Memory(**{"most": 10, "max_age": 1.0, "clock": lambda: 0.0, "weigh": len} | settings)


def test_the_least_recently_used_make_room_for_what_is_heavy() -> None:
    memory, asked = make_memory(), {key: Asked() for key in "abc"}
    for key in ("a", "b", "a"):
        memory.read(key, asked[key], bool)
    memory.read("c", lambda: "y" * 9, bool)
    # "b" was used before "a", and with 9 of 10 there is room for one of weight 1.
    memory.read("a", asked["a"], bool)
    assert asked["a"].count == 1
    memory.read("b", asked["b"], bool)
    assert asked["b"].count == 2


def test_one_that_is_too_heavy_is_given_all_the_same() -> None:
    assert make_memory().read("a", lambda: "y" * 99).value == "y" * 99


def test_who_wants_another_answer_does_not_wait() -> None:
    memory, slow, answered = make_memory(), threading.Event(), threading.Event()

    def wait() -> str:
        answered.set()
        assert slow.wait(30)
        return "slow"

    thread = threading.Thread(target=memory.read, args=("slow", wait))
    thread.start()
    assert answered.wait(30)
    assert memory.read("quick", lambda: "quick").value == "quick"
    slow.set()
    thread.join()


def test_after_a_failure_the_last_answer_stays() -> None:
    now = [0.0]
    memory = make_memory(clock=lambda: now[0])

    def fail() -> str:
        raise grpc.RpcError

    assert memory.read("a", fail).value is None
    now[0] = 1.0
    assert memory.read("a", lambda: "good").value == "good"
    now[0] = 2.0
    reading = memory.read("a", fail)
    assert (reading.value, reading.answered, reading.failure) == ("good", 1.0, "RpcError")


def test_whoever_waited_for_a_failure_does_not_call_again() -> None:
    now = [0.0]
    calls: list[float] = []
    begun, end = threading.Event(), threading.Event()
    memory = make_memory(clock=lambda: now[0])

    def time_out() -> str:
        calls.append(now[0])
        begun.set()
        assert end.wait(30)
        now[0] += 3.0
        raise grpc.RpcError

    viewers = [threading.Thread(target=memory.read, args=("a", time_out)) for _ in range(5)]
    for viewer in viewers:
        viewer.start()
    assert begun.wait(30)
    end.set()
    for viewer in viewers:
        viewer.join()
    assert calls == [0.0]


def test_what_is_doubted_is_asked_for_once_more() -> None:
    now, asked = [0.0], Asked()
    memory = make_memory(clock=lambda: now[0])
    memory.read("a", asked, bool)
    memory.doubt()
    # Not at once: whoever came a moment ago has asked.
    memory.read("a", asked, bool)
    assert asked.count == 1
    now[0] = 1.0
    for _ in range(3):
        memory.read("a", asked, bool)
    assert asked.count == 2


def test_a_doubt_outlasts_a_failure() -> None:
    now, asked = [0.0], Asked()
    memory = make_memory(clock=lambda: now[0])

    def fail() -> str:
        raise grpc.RpcError

    memory.read("a", asked, bool)
    memory.doubt()
    now[0] = 1.0
    assert memory.read("a", fail, bool).failure == "RpcError"
    now[0] = 2.0
    reading = memory.read("a", asked, bool)
    assert (reading.value, reading.failure) == ("xx", None)


def test_what_is_doubted_while_it_is_asked_is_asked_for_again() -> None:
    now, asked = [0.0], Asked()
    memory = make_memory(clock=lambda: now[0])

    def doubt_meanwhile() -> str:
        answer = asked()
        memory.doubt()
        return answer

    assert memory.read("a", doubt_meanwhile, bool).value == "x"
    now[0] = 1.0
    assert memory.read("a", asked, bool).value == "xx"
    now[0] = 2.0
    assert memory.read("a", asked, bool).value == "xx"


class Snapshot:
    pass


def test_what_is_derived_is_made_once_and_goes_with_its_snapshot() -> None:
    made: list[str] = []

    @derived
    def described(snapshot: Snapshot, word: str = "", *, loud: bool = False) -> Asked:
        made.append(word)
        return Asked()

    snapshot = Snapshot()
    first = described(snapshot, "a")
    assert described(snapshot, "a") is first
    assert described(snapshot, "a", loud=True) is not first
    assert made == ["a", "a"]
    for number in range(100):
        described(snapshot, str(number))
    # Whoever types looks for many words; the first one is worked out again.
    assert described(snapshot, "a") is not first
    gone = ref(first)
    del snapshot, first
    gc.collect()
    assert gone() is None
