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
    from hubbub.bundle import Bundle
    from hubbub.client import Client, MetricHandle
    from hubbub.errors import (
        BadSignature,
        BundleError,
        ChangedContract,
        ForeignOperator,
        HubbubError,
        InvalidBudget,
        InvalidContract,
        InvalidOperatorKey,
        InvalidWords,
        LowerRevision,
        MalformedBundle,
        PrivacyNotProved,
        StateCorrupt,
        StateError,
        StateRolledBack,
        StateUnavailable,
        UndeclaredSource,
        UnknownMetric,
    )
    from hubbub.outcome import Outcome
    from hubbub.preview import WaitingReport
    from hubbub.rows import Switch
    from hubbub.statement import Statement
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
    "InvalidWords",
    "LowerRevision",
    "MalformedBundle",
    "MetricHandle",
    "Outcome",
    "PrivacyNotProved",
    "StateCorrupt",
    "StateError",
    "StateRolledBack",
    "StateUnavailable",
    "Statement",
    "Switch",
    "Transport",
    "UndeclaredSource",
    "UnknownMetric",
    "WaitingReport",
]

# Where the names above live, but for the errors, which are all in one module.
_HOMES: Final = {
    "Bundle": "bundle",
    "Client": "client",
    "GrpcTransport": "transport",
    "MetricHandle": "client",
    "Outcome": "outcome",
    "Statement": "statement",
    "Switch": "rows",
    "Transport": "transport",
    "WaitingReport": "preview",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'hubbub' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"hubbub.{_HOMES.get(name, 'errors')}"), name)
    globals()[name] = value
    return value
