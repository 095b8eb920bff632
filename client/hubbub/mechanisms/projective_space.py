"""Points of a projective space over the integers modulo a prime q: vectors up to a factor.

With t coordinates there are (q^t − 1)/(q − 1). Each is written as its one vector whose first
coordinate that is not 0 is 1, and numbered in the order of those vectors read as numbers to the
base q: 0…01, 0…010, 0…011, …. Vectors are lists here, their last coordinate first.
"""


def points(field: int, dimensions: int) -> int:
    """How many points a projective space has: (q^t − 1)/(q − 1)."""
    return int(field**dimensions - 1) // (field - 1)


def coordinates(index: int, field: int, dimensions: int) -> tuple[list[int], int]:
    """A point's vector, and the place of its leading 1."""
    # Counted rather than looked for, so that it takes as long for every point.
    leading = sum(index >= points(field, place) for place in range(1, dimensions))
    number = field**leading + index - points(field, leading)
    return digits(number, field, dimensions), leading


def digits(number: int, field: int, places: int) -> list[int]:
    """A number to the base q as a vector."""
    return [number // field**place % field for place in range(places)]


def product(one: list[int], other: list[int], field: int) -> int:
    """The product of two vectors, in [0, q)."""
    return sum(map(int.__mul__, one, other)) % field


def index(vector: list[int], field: int) -> int:
    """The number of the point on which a vector, not the origin, lies."""
    leading = max(place for place, digit in enumerate(vector) if digit)
    # By Fermat's little theorem, which takes as long for every number; Euclid's way does not.
    inverse = pow(vector[leading], field - 2, field)
    number = 0
    for digit in reversed(vector):
        number = number * field + digit * inverse % field
    return number - int(field**leading) + points(field, leading)
