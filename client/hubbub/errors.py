"""Everything the SDK raises. Only constructing something raises; recording never does.

Each class has its facts as fields. None can hold a device's value.
"""

from collections.abc import Sequence


class HubbubError(Exception):
    """The base of all of them."""


class InvalidOperatorKey(HubbubError, ValueError):
    """An operator key that is not written as operator.pub has it."""

    def __init__(self, text: str) -> None:
        super().__init__(
            'an operator key is "ed25519:" and 64 hexadecimal digits, the line in operator.pub, '
            f"not {text[:80]!r}"
        )
        self.text = text


class BundleError(HubbubError):
    """A bundle that cannot be trusted or read."""


class MalformedBundle(BundleError):
    """Not a bundle: the bytes do not decode, or not to their one canonical form."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the bundle is malformed: {reason}")
        self.reason = reason


class BadSignature(BundleError):
    """Not signed by any of the operators this program trusts."""

    def __init__(self, operator_keys: Sequence[str]) -> None:
        keys = ", ".join(operator_keys)
        super().__init__(f"the bundle is not signed by the operator key {keys}")
        self.operator_keys = tuple(operator_keys)


class ForeignOperator(BundleError):
    """Signed by another operator than the one this state belongs to."""

    def __init__(self, known: str, offered: str) -> None:
        super().__init__(
            f"the bundle is signed by {offered}, but everything kept here belongs to {known}"
        )
        self.known = known
        self.offered = offered


class LowerRevision(BundleError):
    """Older than a bundle that was in force here, or another one of the same revision."""

    def __init__(self, known: int, offered: int) -> None:
        if known == offered:
            text = f"another bundle of revision {known} has been in force here"
        else:
            text = f"the bundle has revision {offered}, but {known} has been in force here"
        super().__init__(f"{text}; sign again to make a newer one")
        self.known = known
        self.offered = offered


class ChangedContract(BundleError):
    """A metric's name is bound to one contract for ever, and this is another."""

    def __init__(self, metric: str, known_digest: bytes, offered_digest: bytes) -> None:
        super().__init__(
            f"metric {metric!r} is known with digest {known_digest.hex()[:16]}…, but the bundle "
            f"defines it as {offered_digest.hex()[:16]}…; a changed question needs a new name"
        )
        self.metric = metric
        self.known_digest = known_digest
        self.offered_digest = offered_digest


class InvalidContract(BundleError):
    """A metric whose definition breaks a rule."""

    def __init__(self, metric: str, field: str, reason: str) -> None:
        super().__init__(f"metric {metric!r}: {field}: {reason}")
        self.metric = metric
        self.field = field
        self.reason = reason


class PrivacyNotProved(InvalidContract):
    """A metric whose thresholds reveal more than its declared ε, or more than any may."""

    def __init__(self, metric: str, reason: str) -> None:
        super().__init__(metric, "privacy", reason)


class UnknownMetric(HubbubError, KeyError):
    """The bundle defines no metric of this name."""

    def __init__(self, metric: str, known: Sequence[str]) -> None:
        super().__init__(metric)
        self.metric = metric
        self.known = tuple(known)

    def __str__(self) -> str:
        listed = ", ".join(self.known) or "none"
        return f"the bundle has no metric {self.metric!r}; it has {listed}"


class UndeclaredSource(HubbubError):
    """The metric draws on a source for which this program declared no budget."""

    def __init__(self, metric: str, source: str, declared: Sequence[str]) -> None:
        listed = ", ".join(declared) or "none"
        super().__init__(
            f"metric {metric!r} draws on source {source!r}, for which this program declares no "
            f"budget (it declares: {listed}); add one for {source!r}"
        )
        self.metric = metric
        self.source = source
        self.declared = tuple(declared)


class InvalidBudget(HubbubError, ValueError):
    """A budget that is not decimal text, or is above the compiled ceiling."""

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(f"budget of source {source!r}: {reason}")
        self.source = source
        self.reason = reason


class InvalidWords(HubbubError, ValueError):
    """A translation of the statement that does not fit what is to be said."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the translation cannot be used: {reason}")
        self.reason = reason


class StateError(HubbubError):
    """The state directory cannot be used, so nothing can be charged or sent."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class StateUnavailable(StateError):
    """Missing rights, a full disk, a file that another program holds."""


class StateCorrupt(StateError):
    """Damaged or not ours; spending is refused rather than started afresh."""


class StateRolledBack(StateError):
    """An older ledger than was here before, or nothing to tell by; so spending is refused."""
