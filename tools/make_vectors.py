"""Write the golden vectors of tests/vectors, or with --check compare them.

Run as `python -m tools.make_vectors`. What is expected of payloads and contexts is written
here by hand, from the wire format, and not computed by the code that is tested with it.
"""

import argparse
import base64
import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from hubbub.bundle import Bundle
from hubbub.contract import Metric
from hubbub.exact import Certificate, charge_text
from hubbub.schedule import Once
from tools import (
    bundle_vectors,
    hashing_vectors,
    hostile_bundles,
    payload_vectors,
    series_vectors,
)
from tools.bundle_vectors import FOREIGN, OPERATOR, X25519_KEY, X25519_PRIVATE, operator_key

FOLDER: Final = Path(__file__).resolve().parent.parent / "tests" / "vectors"

# "hubbub/v1/report" and a zero byte, then the version.
_CONTEXT_HEAD: Final = "6875626275622f76312f7265706f727400" + "01"
_DIGEST: Final = hashlib.sha256(b"a metric").hexdigest()
_KEY_ID: Final = X25519_KEY.key_id.hex()

# Made once by hubbub.sealing.seal: a sealed report is different every time.
_SEALED: Final = (
    "461cf999fe2509d13eec1e0dc73a3f351e1b4802bf0f00760931daa708e8804bfda5dc9a3824d29e"
    "528003a81a0c576a91b517c0d124e9958940bed7067489ea91"
)


def sealing() -> Any:
    """Contexts, and a sealed report with the private key that opens it."""
    rounds = {
        0: "0000000000000000",
        1: "0000000000000001",
        258: "0000000000000102",
        (1 << 64) - 1: "ffffffffffffffff",
    }
    return {
        "contexts": [
            {
                "digest": _DIGEST,
                "round": number,
                "key_id": _KEY_ID,
                "context": _CONTEXT_HEAD + _DIGEST + digits + _KEY_ID,
            }
            for number, digits in rounds.items()
        ],
        "sealed": {
            "suite": "X25519, HKDF-SHA256, AES-128-GCM",
            "private_key": X25519_PRIVATE.private_bytes_raw().hex(),
            "context": _CONTEXT_HEAD + _DIGEST + rounds[258] + _KEY_ID,
            "report": bytes(range(16)).hex() + "05",
            "sealed": _SEALED,
        },
    }


def bundles() -> Any:
    """Signed bundles in base64: what the good ones say, and why the bad ones are refused."""
    return {
        "operator_key": operator_key(OPERATOR),
        "foreign_operator_key": operator_key(FOREIGN),
        "good": [_good(name, signed) for name, signed in _good_bundles()],
        "bad": [
            {"name": bad.name, "signed": _base64(bad.signed), "error": bad.error, **bad.facts}
            for bad in hostile_bundles.bad_bundles()
        ],
    }


def _good_bundles() -> Iterator[tuple[str, bytes]]:
    yield from bundle_vectors.good_bundles()
    yield from series_vectors.good_series()


def _good(name: str, signed: bytes) -> Any:
    bundle = Bundle.verify(signed, operator_key=operator_key(OPERATOR))
    return {
        "name": name,
        "signed": _base64(signed),
        "revision": bundle.revision,
        "endpoint": bundle.endpoint,
        "sealing_keys": [key.key_id.hex() for key in bundle.sealing_keys],
        "metrics": [_metric(metric) for metric in bundle.metrics.values()],
    }


def _metric(metric: Metric) -> Any:
    schedule = metric.schedule
    form: dict[str, Any] = (
        {"ends": schedule.ends}
        if isinstance(schedule, Once)
        else {
            "every": schedule.every,
            "rounds": schedule.rounds,
            "grace": schedule.grace,
            "join": schedule.join,
        }
    )
    certificate, *of_memo = metric.certificates
    memoised = metric.memoised
    return {
        "name": metric.name,
        "question": metric.question,
        "source": metric.source,
        "digest": metric.digest.hex(),
        "values": list(metric.domain.labels),
        # As text: many readers of JSON hold no integer above 2^53.
        "other": _text(metric.domain.other),
        "absent": _text(metric.domain.absent),
        "open": metric.domain.open,
        "retain": metric.retain,
        "schedule": {"starts": schedule.starts, **form},
        "mechanism": metric.mechanism.name,
        "parameters": {k: _text(v) for k, v in metric.mechanism.parameters.items()},
        "payload_bytes": metric.mechanism.payload_size,
        "epsilon_declared": metric.epsilon.text,
        "epsilon_charged": metric.epsilon.decimal,
        "epsilon_realised": certificate.realised,
        "ratio": _ratio(certificate),
        "permanent": metric.permanent.text if metric.permanent else None,
        "rows": memoised.rows if memoised else None,
        "ratio_permanent": next(map(_ratio, of_memo), None),
        "epsilon_total": charge_text(metric.total_charge),
    }


def _ratio(certificate: Certificate) -> str:
    return f"{certificate.ratio.numerator}/{certificate.ratio.denominator}"


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


FILES: Final[dict[str, Callable[[], Any]]] = {
    "payloads.json": payload_vectors.payloads,
    "hashing.json": hashing_vectors.hashing,
    "geometry.json": payload_vectors.geometry,
    "sealing.json": sealing,
    "bundles.json": bundles,
}


def texts() -> Iterator[tuple[Path, str]]:
    """Every file and what belongs in it."""
    for name, content in FILES.items():
        text = json.dumps(content(), indent=1)
        yield FOLDER / name, text + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    stale = [
        (path, text)
        for path, text in texts()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    if parser.parse_args().check:
        for path, _ in stale:
            print(f"{path.name} is not what tools/make_vectors.py makes")
        return 1 if stale else 0
    for path, text in stale:
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
