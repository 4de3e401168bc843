"""Put the neighbours in a stream together that only go on with one text, before they are parsed.

Hundreds of documents that differ in a few letters become one that says the same. What is not surely such a neighbour is
left as it is.
"""

from __future__ import annotations

import re

# Neither this nor what it is in matches in a second way. Possessive ones would say so, and fail before Python 3.11.5.
_LETTERS = rb'[^"\\]*(?:\\.[^"\\]*)*'
# A delta with one text in it, of the kinds that grow, where such a delta stands in a chunk of OpenAI's or an event of
# Anthropic's; around it nothing that grows as well, and nothing with parts of its own.
_MEMBERS = rb'(?:"\w+":(?:null|true|false|-?[0-9.]+|"LETTERS"),)*'
_DELTA = re.compile(
    rb"""
    (\{ MEMBERS (?:"choices":\[\{ MEMBERS )?"delta":\{
        (?:(?:"role":"assistant",)?"content"|"type":"text_delta","text"|"type":"thinking_delta","thinking"
        |"type":"input_json_delta","partial_json"):")
    (LETTERS)
    ("(?:,"\w+":null)*\}(?:,"(?!text")\w+":(?:null|-?[0-9.]+|"[^"\\]*")|[\]}])*?)
    (?:,"obfuscation":"\w*")?\}    # only there to make chunks equally long
    """.replace(b"MEMBERS", _MEMBERS).replace(b"LETTERS", _LETTERS),
    re.VERBOSE,
)
_TEXT = re.compile(_LETTERS)
_END = re.compile(rb'(?:,"obfuscation":"\w*")?\}')
_GROWS = re.compile(rb'"(?:text|logprobs)":[^n]')  # not null


def put_together(parts: list[bytes]) -> list[bytes]:
    """Return the documents of a stream, fewer of them where neighbours go on with the same text."""
    out: list[bytes] = []
    texts: list[bytes] = []
    head = after = whole_end = b""
    for part in parts:
        if texts and part.startswith(head):
            ends_alike = part.endswith(whole_end)
            end = len(part) - len(whole_end) if ends_alike else part.rfind(after)
            text = part[len(head) : end]
            if (
                end >= len(head)
                and (ends_alike or _END.fullmatch(part, end + len(after)))
                and ((b'"' not in text and text[-1:] != b"\\") or _TEXT.fullmatch(text))
            ):
                texts.append(text)
                continue
        if texts:
            out.append(b"%b%b%b" % (head, b"".join(texts), whole_end))
            texts = []
        begun = _DELTA.fullmatch(part)
        if begun is None or _GROWS.search(begun[1].rpartition(b'"delta":')[0]):
            out.append(part)
        else:
            head, text, after = begun.groups()
            whole_end = after + b"}"
            texts.append(text)
    if texts:
        out.append(b"%b%b%b" % (head, b"".join(texts), whole_end))
    return out
