"""Bytes as a stranger might send them: good messages with a few things done to them."""

from collections.abc import Sequence

from hypothesis import strategies as st


@st.composite
def mutated(draw: st.DrawFn, seeds: Sequence[bytes]) -> bytes:
    """One of the seeds after one to four random edits."""
    data = bytearray(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        end = draw(st.integers(at, min(len(data), at + 16)))
        match draw(st.sampled_from(["flip", "insert", "delete", "repeat", "splice"])):
            case "flip":
                data[at:end] = bytes(byte ^ draw(st.integers(0, 255)) for byte in data[at:end])
            case "insert":
                data[at:at] = draw(st.binary(max_size=12))
            case "delete":
                del data[at:end]
            case "repeat":
                data[at:at] = data[at:end]
            case _:
                other = draw(st.sampled_from(seeds))
                start = draw(st.integers(0, len(other)))
                data[at:end] = other[start : start + 16]
    return bytes(data)
