"""Hubbub's device SDK: randomise a value here, send the noisy report, keep account of ε.

    import hubbub

    client = hubbub.Client("metrics.hubbub", operator_key="ed25519:…",
                           state_dir="/var/lib/app/hubbub", budgets={"health": "8"})
    client.metric("health.self_rated").record("good")

Importing this costs next to nothing: a name's module is loaded when the name is first used.
"""

import importlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from hubbub.client import Client, MetricHandle, WaitingReport
    from hubbub.contract import Bundle
    from hubbub.errors import (
        BadSignature,
        BundleError,
        ChangedContract,
        ForeignOperator,
        HubbubError,
        InvalidBudget,
        InvalidContract,
        InvalidOperatorKey,
        LowerRevision,
        MalformedBundle,
        PrivacyNotProved,
        StateCorrupt,
        StateError,
        StateUnavailable,
        UndeclaredSource,
        UnknownMetric,
    )
    from hubbub.outcome import Outcome
    from hubbub.transport import GrpcTransport, Transport

__all__ = [
    "BadSignature",
    "Bundle",
    "BundleError",
    "ChangedContract",
    "Client",
    "ForeignOperator",
    "GrpcTransport",
    "HubbubError",
    "InvalidBudget",
    "InvalidContract",
    "InvalidOperatorKey",
    "LowerRevision",
    "MalformedBundle",
    "MetricHandle",
    "Outcome",
    "PrivacyNotProved",
    "StateCorrupt",
    "StateError",
    "StateUnavailable",
    "Transport",
    "UndeclaredSource",
    "UnknownMetric",
    "WaitingReport",
]

# Where the names above live, but for the errors, which are all in one module.
_HOMES: Final = {
    "Bundle": "contract",
    "Client": "client",
    "GrpcTransport": "transport",
    "MetricHandle": "client",
    "Outcome": "outcome",
    "Transport": "transport",
    "WaitingReport": "client",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'hubbub' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"hubbub.{_HOMES.get(name, 'errors')}"), name)
    globals()[name] = value
    return value
