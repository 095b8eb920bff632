"""Bit vectors as unary encoding sends them: value i is bit i mod 8 of byte i div 8.

Within a byte the least significant bit comes first; spare bits of the last byte are zero.
While a vector is made it is a string of "0" and "1" that int() reads, so value i stands at
position k − 1 − i.
"""


def size(k: int) -> int:
    """Bytes of a vector of k bits."""
    return (k + 7) // 8


def pack(faces: bytearray, k: int) -> bytes:
    """Pack k characters "0" or "1", value k − 1 first."""
    # A digit more makes all vectors as long.
    digits = size(k)
    number = int(b"1" + faces.rjust(8 * digits, b"0"), 2)
    return number.to_bytes(digits + 1, "little")[:digits]


def unpack(payload: bytes, k: int) -> list[int]:
    """Return the values, ascending, whose bit is set.

    Raises ValueError if the length is wrong or a spare bit is set.
    """
    bits = int.from_bytes(payload, "little")
    if len(payload) != size(k) or bits >> k:
        raise ValueError("not a vector of one bit for each value")
    faces = f"{bits:0{k}b}"
    return [value for value, face in enumerate(reversed(faces)) if face == "1"]
