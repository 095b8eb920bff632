"""The keys folder: what is in it, who may read it, and that nothing is overwritten."""

import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from hubbub.sealing import context, overhead, seal
from hubbub_aggregator.keys import (
    KeysError,
    add_certificates,
    add_sealing_key,
    create_keys,
    load_opening_keys,
    load_signing_key,
    read_certificate,
    read_operator_key,
)

NOW = 1_800_000_000.0


@pytest.fixture(params=[False, True], ids=["x25519", "hybrid"])
def keys(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    folder = tmp_path / "keys"
    create_keys(folder, ["collect.example.com", "192.0.2.7"], hybrid=request.param, now=NOW)
    return folder


def test_private_files_are_private(keys: Path) -> None:
    assert stat.S_IMODE(keys.stat().st_mode) == 0o700
    private = sorted(keys.glob("*.key"))
    assert len(private) == 5
    assert {stat.S_IMODE(path.stat().st_mode) for path in private} == {0o600}


def test_the_operator_key_is_one_line_and_belongs_to_the_signing_key(keys: Path) -> None:
    text = (keys / "operator.pub").read_text()
    assert text == read_operator_key(keys) + "\n"
    public = load_signing_key(keys).public_key().public_bytes_raw()
    assert text.strip() == f"ed25519:{public.hex()}"


def test_sealed_reports_open_only_with_their_key_and_context(keys: Path) -> None:
    (key,) = load_opening_keys(keys).values()
    digest, report = b"d" * 32, b"i" * 16 + b"payload"
    sealed = seal(key.sealing_key, digest, 3, report)
    assert len(sealed) == len(report) + overhead(key.suite)
    info = context(digest, 3, key.key_id)
    assert key.open(info, sealed) == report
    assert key.open(context(digest, 4, key.key_id), sealed) is None
    assert key.open(context(b"e" * 32, 3, key.key_id), sealed) is None
    for place in (0, len(sealed) // 2, len(sealed) - 1):
        altered = bytearray(sealed)
        altered[place] ^= 1
        assert key.open(info, bytes(altered)) is None
    for nonsense in (b"", b"\0", bytes(len(sealed)), b"\xff" * len(sealed), sealed[:-1]):
        assert key.open(info, nonsense) is None


def test_the_newest_sealing_key_comes_first(keys: Path) -> None:
    (first,) = load_opening_keys(keys)
    second = add_sealing_key(keys, hybrid=False, now=NOW + 1).key_id
    third = add_sealing_key(keys, hybrid=True, now=NOW + 2).key_id
    assert list(load_opening_keys(keys)) == [third, second, first]


def test_the_certificate_names_the_hosts_and_this_machine(keys: Path) -> None:
    certificate = read_certificate(keys / "server.crt")
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["collect.example.com", "localhost"]
    addresses = [str(address) for address in names.get_values_for_type(x509.IPAddress)]
    assert addresses == ["192.0.2.7", "127.0.0.1", "::1"]
    certificate.verify_directly_issued_by(read_certificate(keys / "ca.crt"))


def test_a_new_certificate_replaces_the_old_and_keeps_the_authority(keys: Path) -> None:
    before, authority = (keys / "server.crt").read_bytes(), (keys / "ca.crt").read_bytes()
    add_certificates(keys, ["new.example.com"], now=NOW + 1)
    assert (keys / "server.crt").read_bytes() != before
    assert (keys / "ca.crt").read_bytes() == authority


def test_an_operators_keys_are_never_overwritten(keys: Path) -> None:
    before = {path.name: path.read_bytes() for path in keys.iterdir()}
    with pytest.raises(KeysError, match="already holds an operator's keys"):
        create_keys(keys, [], hybrid=False, now=NOW)
    assert {path.name: path.read_bytes() for path in keys.iterdir()} == before


def test_a_key_never_shows_in_its_repr(keys: Path) -> None:
    (key,) = load_opening_keys(keys).values()
    assert "private" not in repr(key)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "under score!",
        "ü" * 70,
        "a..b",
        ".a",
        "a.",
        "-a",
        "a-.b",
        "*",
        "a" * 64,
        "a." * 127 + "b",
    ],
)
def test_a_host_that_no_certificate_can_name_is_refused(tmp_path: Path, host: str) -> None:
    with pytest.raises(KeysError, match="neither a host name nor an IP address"):
        create_keys(tmp_path / "keys", [host], hybrid=False, now=NOW)
    assert not (tmp_path / "keys").exists()


def test_strict_readers_take_the_certificates(keys: Path) -> None:
    """As Python 3.13's `ssl` is, and web browsers."""
    store = Store([read_certificate(keys / "ca.crt")])
    builder = PolicyBuilder().store(store).time(datetime.fromtimestamp(NOW, UTC))
    server = builder.build_server_verifier(x509.DNSName("collect.example.com"))
    assert len(server.verify(read_certificate(keys / "server.crt"), [])) == 2
    with pytest.raises(VerificationError):
        server.verify(read_certificate(keys / "client.crt"), [])


@pytest.mark.parametrize("name", ["operator.pub", "operator.key", "server.crt", "ca.key"])
def test_a_missing_or_damaged_file_is_named(keys: Path, name: str) -> None:
    def read_everything() -> None:
        read_operator_key(keys)
        load_signing_key(keys)
        read_certificate(keys / "server.crt")
        add_certificates(keys, [], now=NOW)

    (keys / name).write_text("nonsense")
    with pytest.raises(KeysError, match=name):
        read_everything()
    (keys / name).unlink()
    with pytest.raises(KeysError, match=name):
        read_everything()


def test_a_folder_without_sealing_keys_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(KeysError, match="hubbub keygen"):
        load_opening_keys(tmp_path)
    with pytest.raises(KeysError, match="hubbub keygen"):
        load_opening_keys(tmp_path / "nowhere")
