"""`hubbub certify`: what each metric's integers prove about its privacy."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from hubbub.contract import Bundle, Metric, require_proof
from hubbub.errors import PrivacyNotProved
from hubbub.exact import charge_text, upper_text
from hubbub_aggregator.ceilings import early_end
from hubbub_aggregator.commands import CommandError
from hubbub_aggregator.commands.bundle_file import read_metrics
from hubbub_aggregator.text_table import text_table

_LOSS: Final = (
    "loss: how far, at most, ε realised stays below ε declared, since thresholds are integers"
)


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
        print("\n\n".join([_table(proofs), *filter(None, map(early_end, metrics))]))
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
        certificate = metric.certificate
    except ValueError:
        return None
    return {
        "name": metric.name,
        "digest": metric.digest.hex(),
        "mechanism": metric.mechanism.name,
        "epsilon_declared": metric.epsilon.decimal,
        "epsilon_realised": certificate.realised,
        "ratio": f"{certificate.ratio.numerator}/{certificate.ratio.denominator}",
        "loss": upper_text(certificate.loss),
        "rounds": metric.schedule.rounds,
        "epsilon_total": charge_text(metric.epsilon.charge * metric.schedule.rounds),
    }


def _table(proofs: list[dict[str, Any]]) -> str:
    if not proofs:
        return "the bundle has no metric whose privacy can be proved"
    header = ("metric", "mechanism", "ε declared", "ε realised", "loss ≤", "rounds", "ε in all")
    keys = ("name", "mechanism", "epsilon_declared", "epsilon_realised", "loss", "rounds")
    rows = [[*(str(proof[key]) for key in keys), proof["epsilon_total"]] for proof in proofs]
    ratios = "\n".join(f"  {proof['name']}: {proof['ratio']}" for proof in proofs)
    table = text_table(header, rows, left=2)
    return f"{table}\n{_LOSS}\n\nworst ratio of probabilities, exactly:\n{ratios}"
