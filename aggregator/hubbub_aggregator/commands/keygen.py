"""`hubbub keygen`: an operator's keys and certificates."""

import time
from pathlib import Path
from typing import Annotated

import typer

from hubbub_aggregator.keys import add_certificates, add_sealing_key, create_keys, read_operator_key


def keygen(
    folder: Annotated[Path, typer.Argument(help="The keys folder; made if it does not exist.")],
    host: Annotated[
        list[str] | None,
        typer.Option(
            help="A host name or address that devices reach the aggregator by; may be repeated. "
            "localhost, 127.0.0.1 and ::1 are always in the certificate."
        ),
    ] = None,
    hybrid: Annotated[
        bool, typer.Option("--hybrid", help="Seal with ML-KEM-768 and X25519 together.")
    ] = False,
    new_sealing_key: Annotated[
        bool,
        typer.Option(
            "--new-sealing-key", help="Only add a sealing key; sign again to have devices use it."
        ),
    ] = False,
    new_certificate: Annotated[
        bool, typer.Option("--new-certificate", help="Only renew the certificates.")
    ] = False,
) -> None:
    """Make the operator's keys, a private CA and its certificates.

    Keep operator.key offline: only `hubbub sign` needs it. Private files get mode 0600, and
    none is ever overwritten.
    """
    now = time.time()
    if new_sealing_key:
        key = add_sealing_key(folder, hybrid=hybrid, now=now)
        print(f"new sealing key {key.key_id.hex()} in {folder}; sign again to have devices use it")
    if new_certificate:
        add_certificates(folder, host or [], now=now)
        print(f"new server and client certificates in {folder}; an aggregator that runs")
        print("shows it to whoever connects from now on")
    if not (new_sealing_key or new_certificate):
        create_keys(folder, host or [], hybrid=hybrid, now=now)
        print(f"keys in {folder}")
    print(f"operator key, for devices to pin: {read_operator_key(folder)}")
