"""Arithmetic that takes as long for every number, as far as that can be had in Python.

CPython divides 0 by a way of its own, and keeps integers up to 256 ready-made where it has to
make all others. Either takes some nanoseconds, which a patient observer of a device sees. So
before a remainder is taken, a multiple of the modulus is added that leads past both.
"""

from typing import Final

# How many times the modulus.
EVEN: Final = 257
