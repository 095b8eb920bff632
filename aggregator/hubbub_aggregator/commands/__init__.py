"""One file for each `hubbub` command."""


class CommandError(Exception):
    """What a person did or met; its one sentence says what to do about it."""
