"""The keys folder: who may read what, and the certificate."""

import os
import stat
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from hubbub.bundle import Bundle
from hubbub_aggregator.doctor.findings import About, Finding
from hubbub_aggregator.keys import load_opening_keys, read_certificate, read_operator_key
from hubbub_aggregator.tls import ServerPair
from hubbub_aggregator.troubles import WARNING_DAYS

_READ: Final = ("operator.pub", "server.key", "server.crt", "ca.crt")

_FOREIGN: Final = stat.S_IRWXG | stat.S_IRWXO

_keys, _certificate = About("keys"), About("certificate")


def look_at_keys(folder: Path) -> Iterator[Finding]:
    """Files and their modes; what cannot be read by whoever looks is told."""
    yield from _keys.looking(lambda: _files(folder))


def _files(folder: Path) -> Iterator[Finding]:
    # What it reads; ca.key and operator.key are not among it.
    read = [*folder.glob("sealing-*.key"), *map(folder.joinpath, _READ)]
    looked_at = [folder] if folder.is_dir() and not _may_read(folder) else sorted(read)
    kept_from = [path for path in looked_at if os.path.lexists(path) and not _may_read(path)]
    if kept_from:
        yield _keys.problem(
            f"this user may not read {', '.join(map(str, kept_from))}; let them belong to the user "
            f"that the aggregator runs as: chown -R USER {folder}"
        )
        return
    keys = load_opening_keys(folder)
    read_operator_key(folder)
    yield _keys.ok(f"{folder}: operator.pub and {len(keys)} sealing key(s) can be read")
    if os.geteuid() == 0:
        yield _keys.warning(
            "root may read everything, so this does not say whether the aggregator may; run the "
            "doctor as the user that it runs as"
        )
    if (folder / "operator.key").exists():
        yield _keys.warning(
            f"{folder}/operator.key is here, which only `hubbub sign` needs: move it to a machine "
            f"that is offline, so that a thief of this one cannot sign bundles"
        )
    for whose, bits, told in (
        ("everybody", stat.S_IRWXO, _keys.problem),
        ("their group", stat.S_IRWXG, _keys.warning),
    ):
        names = [path.name for path in sorted(folder.glob("*.key")) if _mode(path) & bits]
        if names:
            yield told(f"{whose} may use {', '.join(names)}; chmod 600 {folder}/*.key")
            return
    if _mode(folder) & _FOREIGN:
        yield _keys.warning(f"others may list {folder}; chmod 700 {folder}")


def _may_read(path: Path) -> bool:
    return os.access(path, os.R_OK | os.X_OK if path.is_dir() else os.R_OK)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def look_at_certificate(
    folder: Path, bundle: Bundle | None, clock: Callable[[], float]
) -> Iterator[Finding]:
    """Whether devices of `bundle` will believe it, and for how long."""
    yield from _certificate.looking(lambda: _validity(folder, clock()))
    yield from _certificate.looking(lambda: _names(folder, bundle))


def _validity(folder: Path, now: float) -> Iterator[Finding]:
    pair = ServerPair.read(folder)
    days = int((pair.expires - now) // 86_400)
    until = f"{datetime.fromtimestamp(pair.expires, UTC):%Y-%m-%d}"
    renew = f"hubbub keygen {folder} --new-certificate, with every --host again"
    if pair.expires <= now:
        yield _certificate.problem(f"it expired on {until}, and devices refuse it; {renew}")
    elif days < WARNING_DAYS:
        yield _certificate.warning(f"it expires on {until}, in {days} days; {renew}")
    else:
        yield _certificate.ok(f"until {until} ({days} days)")


def _names(folder: Path, bundle: Bundle | None) -> Iterator[Finding]:
    certificate = read_certificate(folder / "server.crt")
    authority = read_certificate(folder / "ca.crt")
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        yield _certificate.problem(
            f"{folder}/server.crt was not issued by {folder}/ca.crt, which devices trust; "
            f"hubbub keygen {folder} --new-certificate"
        )
    hosts = _hosts(certificate)
    if bundle is None:
        yield _certificate.ok(f"for {', '.join(hosts)}")
        return
    host = bundle.endpoint.rpartition(":")[0].strip("[]")
    if any(_covers(name, host) for name in hosts):
        yield _certificate.ok(f"for {', '.join(hosts)}, of which devices use {host}")
    else:
        yield _certificate.problem(
            f"devices connect to {host}, and it is for {', '.join(hosts)}; "
            f"hubbub keygen {folder} --new-certificate --host {host}"
        )
    known = bundle.certificate_authority
    if known and x509.load_pem_x509_certificate(known) != authority:
        yield _certificate.problem(
            f"the bundle makes devices trust another authority than {folder}/ca.crt; "
            f"sign the bundle again with this folder's, or put back the other"
        )


def _hosts(certificate: x509.Certificate) -> list[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return [
        *names.get_values_for_type(x509.DNSName),
        *map(str, names.get_values_for_type(x509.IPAddress)),
    ]


def _covers(name: str, host: str) -> bool:
    """As TLS clients compare: addresses as such, and a star for one label."""
    try:
        return ip_address(name) == ip_address(host)
    except ValueError:
        pass
    name, host = name.lower(), host.lower()
    return name == host or (name.startswith("*.") and host.partition(".")[2] == name[2:])
