"""A metric of every mechanism and every form of payload, the same in every run."""

from hubbub.v1 import contract_pb2
from tests.bundles import make_metric
from tests.fuzz import keys

START, EVERY, ROUNDS, GRACE = 1_000_000, 1_000, 5, 500
_PERIODIC = (EVERY, ROUNDS, GRACE)

# The number of values decides about spare bits and leading bytes.
_ONE_TIME = (
    ("randomised-response", 2),
    ("randomised-response", 256),
    ("randomised-response", 257),
    ("symmetric-unary", 8),
    ("symmetric-unary", 9),
    ("optimised-unary", 17),
    ("subset-selection", 10),  # sent as a rank
    ("subset-selection", 100),  # sent as a vector
    ("projective-geometry", 50),
    ("local-hashing", 20),
)
_MEMOISED = (
    ("memoised-symmetric-unary", 4),
    ("memoised-optimised-unary", 9),
    ("memoised-randomised-response", 5),
    ("memoised-local-hashing", 12),
)


def contracts() -> list[bytes]:
    """Their bytes; each is asked in five rounds, but for the one of open answers."""
    metrics = [
        make_metric(
            f"{name}.{k}",
            values=values(k),
            mechanism=name,
            starts=START,
            periodic=_PERIODIC,
            retain=k == 9,
        )
        for name, k in _ONE_TIME
    ]
    metrics += [
        make_metric(
            f"{name}.{k}",
            values=values(k),
            mechanism=name,
            epsilon="0.5",
            permanent="1",
            starts=START,
            periodic=_PERIODIC,
        )
        for name, k in _MEMOISED
    ]
    metrics.append(
        make_metric(
            "sampled",
            epsilon="ln 3",
            mechanism="randomised-response",
            other="another",
            absent="nothing",
            starts=START,
            periodic=_PERIODIC,
            join=2,
        )
    )
    metrics.append(
        make_metric("open", open=True, absent="nothing", mechanism="local-hashing", starts=START)
    )
    return metrics


def values(k: int) -> list[str]:
    return [str(number) for number in range(k)]


def bundle(contracts: list[bytes]) -> contract_pb2.Bundle:
    """A bundle of these."""
    return contract_pb2.Bundle(
        revision=1,
        endpoint="localhost:7443",
        sealing_keys=keys.sealing_keys(),
        metrics=contracts,
    )
