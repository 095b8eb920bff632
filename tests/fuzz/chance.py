"""Chance for mutators: the same for the same seed, with what all of them do to bytes and text."""

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

# Where integers of the wire and of the machine end.
_EDGES = [0, 1, 2, 3, *(1 << bits for bits in (7, 8, 16, 31, 32, 53, 61, 62, 63))]
_LARGEST = (1 << 64) - 1


class Chance(random.Random):
    """`mutate_bytes`: the fuzzer's own mutator, which knows what was compared with what."""

    def __init__(self, seed: int, mutate_bytes: Callable[[bytes], bytes] | None = None) -> None:
        super().__init__(seed)
        self._mutate_bytes = mutate_bytes

    def happens(self, probability: float) -> bool:
        return self.random() < probability

    def pick(self, choices: Sequence[T]) -> T:
        return choices[int(self.random() * len(choices))]

    def number(self, number: int) -> int:
        """Another uint64."""
        match self.randrange(5):
            case 0:
                number = self.pick(_EDGES) + self.randint(-1, 1)
            case 1:
                number += self.pick((-1, 1))
            case 2:
                number += self.randint(-(number // 16) - 2, number // 16 + 2)
            case 3:
                number ^= 1 << self.randrange(64)
            case _:
                number = self.getrandbits(self.randint(1, 64))
        return min(max(number, 0), _LARGEST)

    def octets(self, data: bytes) -> bytes:
        """Other bytes."""
        if self._mutate_bytes is not None and self.happens(0.2):
            return self._mutate_bytes(data)
        changed = bytearray(data)
        for _ in range(self.randint(1, 3)):
            at = self.randint(0, len(changed))
            end = min(len(changed), at + self.randint(0, 16))
            match self.randrange(5):
                case 0 if changed:
                    changed[min(at, len(changed) - 1)] ^= 1 << self.randrange(8)
                case 1:
                    changed[at:at] = self.randbytes(self.randint(1, 8))
                case 2:
                    del changed[at:end]
                case 3:
                    changed[at:at] = changed[at:end]
                case _:
                    changed[at:end] = self.randbytes(end - at)
        return bytes(changed)

    def text(self, text: str, tokens: Sequence[str]) -> str:
        """Other text, in which some of the tokens may be."""
        at = self.randint(0, len(text))
        end = min(len(text), at + self.randint(0, 12))
        match self.randrange(5):
            case 0:
                return self.pick(tokens)
            case 1:
                return text[:at] + self.pick(tokens) + text[at:]
            case 2:
                return text[:at] + text[end:]
            case 3:
                return text[:at] + text[at:end] * self.randint(2, 40) + text[end:]
            case _:
                return text[:at] + chr(self.pick((0, 10, 32, 0x200B, 0xE9, 0x1F600))) + text[end:]
