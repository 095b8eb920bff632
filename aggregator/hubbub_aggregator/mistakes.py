"""The base of every error whose message is meant for the person at the terminal."""


class Mistake(Exception):
    """What a person did or met; its one sentence says what to do about it."""
