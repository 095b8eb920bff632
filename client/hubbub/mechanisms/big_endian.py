"""Numbers as payloads: one of `count`, big-endian, in as few bytes as hold them all."""


def size(count: int) -> int:
    """Bytes of every number in [0, count)."""
    return ((count - 1).bit_length() + 7) // 8


def pack(number: int, count: int) -> bytes:
    """Write a number in [0, count)."""
    # A digit more makes all numbers as long.
    digits = size(count)
    return ((1 << 8 * digits) + number).to_bytes(1 + digits, "big")[1:]


def unpack(payload: bytes, count: int) -> int:
    """Read a number. Raises ValueError if the length is wrong, or it is none in [0, count)."""
    number = int.from_bytes(payload, "big")
    if len(payload) != size(count) or number >= count:
        raise ValueError(f"not one of {count:,} numbers")
    return number
