"""A strict reader of protobuf bytes: the one canonical form, and nothing else.

What is signed or hashed must have one meaning only. The usual way, to decode, encode again
and compare, needs the protobuf library at start-up: 4 MB and a third of a device's start.
A canonical message has its fields in ascending order, each number in its shortest form, no
zero or empty scalar, nothing unknown; so it can be read from front to back, field by field,
and whatever is not canonical is left over at the end. tests/client/test_canonical.py holds
this reader against the protobuf library.
"""

from typing import Final

_VARINT: Final = 0
_FIXED64: Final = 1
_LENGTH: Final = 2


class NotCanonical(Exception):
    """The bytes are not a message in its canonical form."""


class Reader:
    """Reads one message. Ask for its fields in ascending order, then call `end`."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def uint(self, number: int) -> int:
        """A uint64 or enum field; 0 if it is absent."""
        if not self._next(number, _VARINT):
            return 0
        value = self._varint()
        if value == 0:
            raise NotCanonical
        return value

    def flag(self, number: int) -> bool:
        """A bool field; False if it is absent."""
        value = self.uint(number)
        if value > 1:
            raise NotCanonical
        return bool(value)

    def fixed64(self, number: int) -> int:
        """A fixed64 field; 0 if it is absent."""
        if not self._next(number, _FIXED64):
            return 0
        value = int.from_bytes(self._take(8), "little")
        if value == 0:
            raise NotCanonical
        return value

    def octets(self, number: int) -> bytes:
        """A bytes field; empty if it is absent."""
        if not self._next(number, _LENGTH):
            return b""
        value = self._take(self._varint())
        if not value:
            raise NotCanonical
        return value

    def text(self, number: int) -> str:
        """A string field; empty if it is absent."""
        return _utf8(self.octets(number))

    def message(self, number: int) -> "Reader | None":
        """A message field; None if it is absent."""
        return Reader(self._take(self._varint())) if self._next(number, _LENGTH) else None

    def each(self, number: int) -> list[bytes]:
        """A repeated bytes or message field."""
        values: list[bytes] = []
        while self._next(number, _LENGTH):
            values.append(self._take(self._varint()))
        return values

    def each_text(self, number: int) -> list[str]:
        """A repeated string field."""
        return [_utf8(value) for value in self.each(number)]

    def end(self) -> None:
        """Raise NotCanonical if anything is left."""
        if self._at != len(self._data):
            raise NotCanonical

    def _next(self, number: int, wire_type: int) -> bool:
        """Step over the field's tag if it comes next. All our tags are one byte or two."""
        tag = number << 3 | wire_type
        written = bytes((tag,)) if tag < 0x80 else bytes((tag & 0x7F | 0x80, tag >> 7))
        if not self._data.startswith(written, self._at):
            return False
        self._at += len(written)
        return True

    def _varint(self) -> int:
        # Ten bytes hold 64 bits. Without an end, a stranger's bytes could keep us for hours.
        value, shift, byte = 0, -7, 0x80
        while byte >= 0x80 and shift < 63:
            shift += 7
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << shift
        # The shortest form has no zero byte at its end.
        if byte >= 0x80 or value >> 64 or (byte == 0 and shift):
            raise NotCanonical
        return value

    def _take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        if len(taken) != size:
            raise NotCanonical
        self._at += size
        return taken


def _utf8(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise NotCanonical from None
