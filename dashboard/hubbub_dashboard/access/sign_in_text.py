"""What is said to those who may not read the page, or not yet. Pure."""

from hubbub_dashboard.access import visitors
from hubbub_dashboard.access.visitors import Standing, Visitor
from hubbub_dashboard.states import Status, Tone


def status(visitor: Visitor) -> Status:
    """The badge and sentence of somebody who sees nothing else."""
    match visitor.standing:
        case Standing.ENDED:
            return Status(
                Tone.WAITING,
                "Sign in again",
                f"This sign-in has ended: each lasts {visitors.HOURS} hours, or until somebody "
                f"signs out.",
            )
        case Standing.UNVERIFIED:
            return Status(
                Tone.PROBLEM,
                "No access",
                f"{_signed_in(visitor)}, but the service that signed you in does not say that it "
                f"has checked this address. Whoever runs this page can help.",
            )
        case Standing.STRANGER:
            return Status(
                Tone.PROBLEM,
                "No access",
                f"{_signed_in(visitor)}, who is not among the readers of this page. Ask whoever "
                f"runs it to add you, or sign out and use another account.",
            )
        case _:
            return Status(
                Tone.WAITING,
                "Sign in to read",
                "Only its readers may see this page.",
            )


def _signed_in(visitor: Visitor) -> str:
    if not visitor.address:
        return "You are signed in without an e-mail address"
    return f"You are signed in as `{visitor.address.replace('`', chr(39))}`"
