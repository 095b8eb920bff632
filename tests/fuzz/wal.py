"""A write-ahead log whose checksums are good again, whatever was done to it.

See sqlite.org/fileformat2.html: a header of 32 bytes, then frames of 24 bytes and a page. Sums
are over 32-bit words, and each frame's go on from those of the one before.
"""

import struct

_HEADER, _FRAME_HEADER = 32, 24


def with_checksums(log: bytes) -> bytes:
    if len(log) < _HEADER:
        return log
    order = ">" if log[3] & 1 else "<"
    page = int.from_bytes(log[8:12], "big")
    salts, sums = log[16:24], (0, 0)
    sums = _added(sums, log[:24], order)
    mended = [log[:24], struct.pack(">II", *sums)]
    size = _FRAME_HEADER + page
    for start in range(_HEADER, len(log) - size + 1, size):
        head, content = log[start : start + 8], log[start + _FRAME_HEADER : start + size]
        if log[start + 8 : start + 16] != salts:
            # Left from before the log was last begun.
            mended.append(log[start:])
            break
        sums = _added(_added(sums, head, order), content, order)
        mended += [head, salts, struct.pack(">II", *sums), content]
    whole = b"".join(mended)
    return whole + log[len(whole) :]


def _added(sums: tuple[int, int], data: bytes, order: str) -> tuple[int, int]:
    data = data[: len(data) // 8 * 8]
    first, second = sums
    for x, y in struct.iter_unpack(f"{order}II", data):
        first = (first + x + second) & 0xFFFFFFFF
        second = (second + y + first) & 0xFFFFFFFF
    return first, second
