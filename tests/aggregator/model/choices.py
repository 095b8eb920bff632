"""What the rules of the machine choose from, and what makes a rule."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, rule

from tests.aggregator.model.ground import Fate
from tests.aggregator.model.metrics import metrics
from tests.aggregator.model.stacks import Fault

# Requests of before, whatever became of them.
SENDINGS = Bundle("sendings")

# All sizes, and often such as are opened one after the other, or by themselves.
SIZES = st.one_of(st.integers(1, 3), st.integers(1, 40))
SEEDS = st.integers(0, 2**32 - 1)
NAMES = st.sampled_from(list(metrics()))
# Of a bundle: most of them, since there is little to say about what no bundle lists.
LISTED = st.sets(NAMES, max_size=3).map(lambda left_out: metrics().keys() - left_out)
NUMBERS = st.integers(0, 4)
DEVICES = st.integers(0, 1)
MEMBERS = st.integers(0, 7)
FATES = st.one_of(st.just(Fate.ANSWERED), st.sampled_from(Fate))
FAULTS = st.one_of(st.none(), st.sampled_from(Fault))


def step(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """A rule; until what must hold was found to hold, there is nothing to be said at the end."""

    def decorate(does: Callable[..., Any]) -> Any:
        @wraps(does)
        def run(machine: Any, **given: Any) -> Any:
            machine._sound = False
            return does(machine, **given)

        return rule(**options)(run)

    return decorate
