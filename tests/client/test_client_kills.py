"""SIGKILL at any moment: never a second payload for a metric and round, never a charge too few."""

import os
import secrets
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

import hubbub
from hubbub import Outcome
from hubbub.exact import CHARGE_UNIT
from tests.bundles import Operator, make_metric
from tests.devices import Clock, Device, Opener, Receiver, Submission, entries, spent
from tests.killable import NAMES, ROUNDS
from tests.systems import needs_fork

pytestmark = needs_fork

Question = tuple[bytes, int]
"""A metric's digest and a round."""


def kill(operator: Operator, folder: Path, kills: int) -> hubbub.Bundle:
    """Let that many devices live and die on one state, one after another."""
    metrics = [
        make_metric(name, epsilon="0.003", mechanism=mechanism, periodic=(10, ROUNDS, 10))
        for name, mechanism in zip(
            NAMES, ("randomised-response", "symmetric-unary", "optimised-unary"), strict=True
        )
    ]
    (folder / "metrics.hubbub").write_bytes(operator.sign(metrics))
    (folder / "operator.pub").write_text(operator.key)
    seed = secrets.randbelow(1 << 32)
    subprocess.run(
        [sys.executable, "-m", "tests.killable", str(folder), str(kills), str(seed)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        check=True,
    )
    return hubbub.Bundle.load(folder / "metrics.hubbub", operator_key=operator.key)


def judge(operator: Operator, bundle: hubbub.Bundle, folder: Path) -> None:
    """Compare what was received and what was promised with the ledger."""
    opener = Opener(operator)
    payloads: dict[Question, set[bytes]] = defaultdict(set)
    sealed: dict[Question, set[bytes]] = defaultdict(set)

    def receive(submission: Submission) -> None:
        question = submission.digest, submission.round
        payloads[question].add(opener(submission))
        sealed[question].add(submission.sealed)

    for line in (folder / "received").read_text().splitlines():
        digest, round_number, key_id, content = line.split()
        receive(Submission(_hex(digest), int(round_number), _hex(key_id), _hex(content)))

    # One more start takes what is left, sends what waits, and gives no second answer.
    receiver, clock = Receiver(), Clock()
    state = folder / "state"
    before = entries(state)
    budgets = {"health": "32"}
    with Device(bundle, state, clock=clock, transport=receiver, budgets=budgets) as client:
        for entry in before:
            clock.now = 10 * entry.round
            assert client.metric(entry.metric).record("poor") is Outcome.ALREADY_ANSWERED
        assert client.flush(60)
    for submission in receiver.submissions:
        receive(submission)
    kept = {(entry.digest, entry.round): entry for entry in entries(state)}

    # Never a second payload, nor other bytes for the same one.
    assert {len(different) for different in payloads.values()} == {1}
    assert {len(different) for different in sealed.values()} == {1}
    # Never a charge too few: what was received, or promised, was charged before.
    assert set(payloads) == set(kept)
    assert all(payloads[question] == {entry.report} for question, entry in kept.items())
    assert spent(kept.values()) == len(payloads) * 3 * CHARGE_UNIT // 1_000 <= 32 * CHARGE_UNIT
    promised = [line.split() for line in (folder / "stored").read_text().splitlines()]
    assert len({tuple(line) for line in promised}) == len(promised)
    assert {(bundle.metrics[name].digest, int(number)) for name, number in promised} <= set(kept)
    # So that the comparison is of something, and the kills hit where it hurts.
    assert promised
    assert (folder / "midway").read_text()


def _hex(text: str) -> bytes:
    return bytes.fromhex(text)


def test_fifty_kills(operator: Operator, tmp_path: Path) -> None:
    bundle = kill(operator, tmp_path, 50)
    judge(operator, bundle, tmp_path)


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_a_thousand_kills(operator: Operator, tmp_path: Path) -> None:
    for number in range(20):
        folder = tmp_path / str(number)
        folder.mkdir()
        bundle = kill(operator, folder, 50)
        judge(operator, bundle, folder)
