"""The budgets that an app declares: how much ε each source may ever give away."""

from collections.abc import Mapping

from hubbub.contract import is_name
from hubbub.errors import InvalidBudget
from hubbub.exact import Epsilon
from hubbub.limits import MAX_CHARGE_PER_SOURCE


def read_budgets(budgets: Mapping[str, str]) -> dict[str, int]:
    """Each source's budget in units of 10^-12 of ε, from decimal text. Raises InvalidBudget."""
    return {source: _read(source, text) for source, text in budgets.items()}


def _read(source: str, text: str) -> int:
    if not is_name(source):
        raise InvalidBudget(source, "a source is named by 1 to 64 of a-z, 0-9, '.', '_', '-'")
    try:
        charge = Epsilon.parse(text).charge
    except TypeError:
        kind = type(text).__name__
        raise InvalidBudget(source, f'must be decimal text such as "4", not {kind}') from None
    except ValueError as error:
        raise InvalidBudget(source, str(error)) from None
    if charge > MAX_CHARGE_PER_SOURCE:
        raise InvalidBudget(source, f"{text} is above 32, the most a source may ever give away")
    return charge
