"""Keep the places where a text was cut into pieces, while parts of it are replaced."""

from __future__ import annotations

import codecs
from collections.abc import Sequence

Span = tuple[int, int]


class Cuts:
    """Hold the bytes of a stream as one text, and where its pieces end.

    A cut is a character and how many of its bytes come before the cut: a stream may be cut inside a character.
    """

    def __init__(self, pieces: Sequence[bytes]) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")  # lossless, whatever the bytes are
        texts: list[str] = []
        self.places: list[tuple[int, int]] = []
        at = 0
        for piece in pieces:
            text = decoder.decode(piece)
            texts.append(text)
            at += len(text)
            self.places.append((at, len(decoder.getstate()[0])))
        texts.append(decoder.decode(b"", final=True))
        self.text = "".join(texts)

    def move(self, spans: Sequence[Span], length: int) -> None:
        """Follow a replacement of these parts, in order and apart, by something of this many characters.

        What is put in place of a part belongs to the piece in which the part began.
        """
        moved: list[tuple[int, int]] = []
        done = shift = 0
        for at, inside in self.places:
            while done < len(spans) and spans[done][1] <= at:
                shift += length - (spans[done][1] - spans[done][0])
                done += 1
            start = spans[done][0] if done < len(spans) else at + 1
            if at > start or (at == start and inside):
                moved.append((start + shift + length, 0))
            else:
                moved.append((at + shift, inside))
        self.places = moved

    def pieces(self, text: str) -> list[bytes]:
        """Cut the text, as it is after all replacements, into as many pieces as there were."""
        data = text.encode("utf-8", "surrogateescape")
        out, character, before, last = [], 0, 0, 0
        for at, inside in self.places:
            before += len(text[character:at].encode("utf-8", "surrogateescape"))
            character = at
            out.append(data[last : before + inside])
            last = before + inside
        if out:
            out[-1] += data[last:]
        return out


def replaced(text: str, spans: Sequence[Span], by: str) -> str:
    """Return the text with these parts, in order and apart, replaced."""
    out: list[str] = []
    last = 0
    for start, end in spans:
        out += (text[last:start], by)
        last = end
    out.append(text[last:])
    return "".join(out)
