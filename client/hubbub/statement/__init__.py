"""The owner's view: what was asked, what left, what it can reveal at most.

The facts are data first (facts.py), gathered from the ledger; then a page of text, whose every
sentence stands in words.py, to be translated.
"""

from hubbub.statement.gathering import Statement, statement
from hubbub.statement.page import NEWEST
from hubbub.statement.words import ENGLISH, Words

__all__ = ["ENGLISH", "NEWEST", "Statement", "Words", "statement"]
