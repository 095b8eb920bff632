"""`hubbub certify`: what each metric's integers prove about its privacy."""

import json
import textwrap
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from hubbub.bundle import Bundle
from hubbub.contract import Metric, require_proof
from hubbub.errors import PrivacyNotProved
from hubbub.exact import Certificate, charge_text, upper_text
from hubbub.exposure import resemblance
from hubbub.schedule import Periodic
from hubbub.statement.figures import percent
from hubbub_aggregator.ceilings import early_ends
from hubbub_aggregator.commands import CommandError
from hubbub_aggregator.commands.bundle_file import read_metrics
from hubbub_aggregator.text_table import text_table

_LOSS: Final = (
    "loss: how far, at most, ε realised stays below ε declared, since thresholds are integers"
)


_WIDTH: Final = 100


class CertificateFormat(StrEnum):
    """How the proofs are written."""

    TABLE = "table"
    JSON = "json"


def certify(
    bundle: Annotated[Path, typer.Argument(help="A signed bundle.")],
    operator_key: Annotated[
        str | None,
        typer.Option(help="Also check that this operator signed it: the line in operator.pub."),
    ] = None,
    output: Annotated[
        CertificateFormat, typer.Option("--format", help="table or json.")
    ] = CertificateFormat.TABLE,
) -> None:
    """Prove each metric's ε from its thresholds, in exact arithmetic.

    Exits with status 1 if any metric reveals more than it declares, or more than any may.
    """
    data = bundle.read_bytes()
    metrics = read_metrics(bundle, data)
    refusals = [refusal for metric in metrics if (refusal := _refusal(metric)) is not None]
    # A metric whose thresholds prove nothing at all has no figures to show.
    proofs = [proof for metric in metrics if (proof := _proof(metric)) is not None]
    if output is CertificateFormat.JSON:
        print(json.dumps({"metrics": proofs}, indent=2))
    else:
        paragraphs = [*map(_protected, filter(_is_memoised, proofs)), *early_ends(metrics)]
        print("\n\n".join([_table(proofs), *(textwrap.fill(text, _WIDTH) for text in paragraphs)]))
    if refusals:
        raise CommandError("; ".join(str(refusal) for refusal in refusals))
    if operator_key is not None:
        Bundle.verify(data, operator_key=operator_key)


def _refusal(metric: Metric) -> PrivacyNotProved | None:
    try:
        require_proof(metric)
    except PrivacyNotProved as refusal:
        return refusal
    return None


def _proof(metric: Metric) -> dict[str, Any] | None:
    try:
        certificate, *of_memo = metric.certificates
    except ValueError:
        return None
    schedule = metric.schedule
    proof = {
        "name": metric.name,
        "digest": metric.digest.hex(),
        "mechanism": metric.mechanism.name,
        "epsilon_declared": metric.epsilon.decimal,
        "epsilon_realised": certificate.realised,
        "ratio": _ratio(certificate),
        "loss": upper_text(certificate.loss),
        "rounds": schedule.rounds,
        "join": (schedule.join or None) if isinstance(schedule, Periodic) else None,
        "epsilon_total": charge_text(metric.total_charge),
    }
    for permanent in of_memo:
        proof |= _memo(metric, permanent)
    return proof


def _memo(metric: Metric, permanent: Certificate) -> dict[str, Any]:
    """What is added for a metric that is answered from a memo."""
    memoised = metric.memoised
    if memoised is None:
        return {}
    alike = resemblance(memoised, metric.schedule.rounds)
    return {
        "epsilon_permanent": {
            "declared": permanent.declared.decimal,
            "realised": permanent.realised,
        },
        "ratio_permanent": _ratio(permanent),
        "rows": memoised.rows,
        "identifying_bits": alike.identifying_bits,
        "change_noticed": {
            "rounds": alike.rounds,
            "chance": alike.change_noticed,
            "ever": alike.change_noticed_ever,
        },
        "linked": {"reports": alike.run, "chance": alike.linked},
    }


def _ratio(certificate: Certificate) -> str:
    return f"{certificate.ratio.numerator}/{certificate.ratio.denominator}"


def _table(proofs: list[dict[str, Any]]) -> str:
    if not proofs:
        return "the bundle has no metric whose privacy can be proved"
    header = ("metric", "mechanism", "ε declared", "ε realised", "loss ≤", "rounds", "ε in all")
    keys = ("name", "mechanism", "epsilon_declared", "epsilon_realised", "loss")
    rows = [
        [*(proof[key] for key in keys), _rounds(proof), proof["epsilon_total"]] for proof in proofs
    ]
    ratios = [f"  {proof['name']}: {proof['ratio']}" for proof in proofs]
    ratios += [
        f"  {proof['name']}, of a row: {proof['ratio_permanent']}"
        for proof in filter(_is_memoised, proofs)
    ]
    table = text_table(header, rows, left=2)
    return "\n".join([table, _LOSS, "", "worst ratio of probabilities, exactly:", *ratios])


def _rounds(proof: dict[str, Any]) -> str:
    rounds, join = proof["rounds"], proof["join"]
    return str(rounds) if join is None else f"{join} of {rounds}"


def _is_memoised(proof: dict[str, Any]) -> bool:
    return "epsilon_permanent" in proof


def _protected(proof: dict[str, Any]) -> str:
    """What exactly the proof of a memoised metric is about, and what it is not: a paragraph."""
    row, change, linked = proof["epsilon_permanent"], proof["change_noticed"], proof["linked"]
    hashed = (
        f" Values are hashed into the rows, and those that share one look alike: it is rows that "
        f"have to change, and come back, in the same rounds. Every report names the device's hash, "
        f"and so which values share a row: {proof['identifying_bits']:.1f} bits that mark it."
        if proof["identifying_bits"]
        else ""
    )
    return (
        f"{proof['name']} is answered from a memo of {proof['rows']:,} rows, each of which reveals "
        f"at most ε∞ = {row['declared']} (realised {row['realised']}). Protected is what the "
        f"values were: two histories that change, and come back to an earlier row, in the same "
        f"rounds are told apart by a factor of at most e^(d × {row['declared']}), where d is how "
        f"many rows were met. Not protected is that a value changed, when, whether it came back, "
        f"and what can be told from that. Whoever compares the first half of {change['rounds']} "
        f"reports with the second is right {percent(change['chance'])} % of the time about whether "
        f"it changed between them, where guessing is right 50 %; with any number of reports, at "
        f"most {percent(change['ever'])} %; of several changes more is noticed. Runs of "
        f"{linked['reports']} reports of one device look more alike than runs of two devices "
        f"{percent(linked['chance'])} % of the time; at 50 % nothing would show.{hashed}"
    )
