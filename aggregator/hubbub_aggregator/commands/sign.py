"""`hubbub sign`: from metrics.toml to the signed bundle."""

import time
from pathlib import Path
from typing import Annotated

import typer

from hubbub.bundle import Bundle
from hubbub.contract import Metric
from hubbub.errors import BundleError, InvalidContract, MalformedBundle
from hubbub_aggregator.ceilings import early_ends, price
from hubbub_aggregator.commands import CommandError
from hubbub_aggregator.definitions import MetricDefinition, read_definitions
from hubbub_aggregator.drafting import AUTO, reason
from hubbub_aggregator.keys import load_opening_keys, load_signing_key, read_operator_key
from hubbub_aggregator.planning.choice import size_of
from hubbub_aggregator.signing import ChangedDefinition, sign_definitions
from hubbub_aggregator.whole_file import write_whole


def sign(
    definitions: Annotated[Path, typer.Argument(help="The metrics, as TOML.")],
    keys: Annotated[Path, typer.Option(help="The keys folder, with operator.key.")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="The bundle; an older one there is the one replaced."),
    ] = Path("metrics.hubbub"),
) -> None:
    """Sign metrics.toml into a bundle for devices and the aggregator.

    The revision is the old bundle's + 1. Metrics that it knows keep their very bytes, and a
    changed definition under a known name is refused.
    """
    operator_key = read_operator_key(keys)
    previous = _previous(output, operator_key)
    authority = keys / "ca.crt"
    try:
        asked = read_definitions(definitions)
        signed = sign_definitions(
            asked,
            operator=load_signing_key(keys),
            sealing_keys=[key.sealing_key for key in load_opening_keys(keys).values()],
            certificate_authority=authority.read_bytes() if authority.exists() else b"",
            previous=previous,
            now=int(time.time()),
        )
        # The same check that devices make: nothing is written that they would refuse.
        bundle = Bundle.verify(signed, operator_key=operator_key)
    except (InvalidContract, ChangedDefinition) as error:
        raise CommandError(f"{definitions}: {error}") from None
    except MalformedBundle as error:
        raise CommandError(f"{definitions} makes no valid bundle: {error.reason}") from None
    write_whole(output, signed)
    count = len(bundle.metrics)
    print(f"{output}: revision {bundle.revision}, {count} metric{'s' if count > 1 else ''}")
    for definition, metric in zip(asked.metric, bundle.metrics.values(), strict=True):
        new = previous is None or metric.name not in previous.metrics
        print(
            f"  {metric.name}  ε = {metric.epsilon.text}  {metric.mechanism.name}  "
            f"digest {metric.digest.hex()[:16]}  {'new' if new else 'unchanged'}"
        )
        if new:
            _explain(definition, metric)
    for remark in early_ends(bundle.metrics.values()):
        print(remark)


def _explain(definition: MetricDefinition, metric: Metric) -> None:
    """What signing a new metric decided, and what that comes to."""
    if definition.mechanism == AUTO:
        print(f"    auto picks {reason(definition)}")
    kept = "; reports are kept" if metric.retain else ""
    print(f"    {size_of(metric.mechanism)} a report{kept}")
    in_all = price(metric)
    if in_all is not None:
        print(f"    {in_all}")


def _previous(path: Path, operator_key: str) -> Bundle | None:
    if not path.exists():
        return None
    try:
        return Bundle.load(path, operator_key=operator_key)
    except BundleError as error:
        raise CommandError(
            f"{path} exists, but is no bundle to go on from: {error}; move it away or name "
            f"another output with -o"
        ) from None
