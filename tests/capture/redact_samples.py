"""Secrets, things that only look like secrets, and the ways to spell a value."""

from __future__ import annotations

import base64
import html
import json
import quopri
import random
import string
import uuid
from hashlib import sha256
from typing import Any
from urllib.parse import quote

import orjson

from playhead.capture.redact import Redactor

ALNUM = string.ascii_letters + string.digits


def letters(count: int, alphabet: str = ALNUM, seed: int = 1) -> str:
    return "".join(random.Random(seed).choices(alphabet, k=count))


PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEvQ" + letters(58) + "\n" + letters(40) + "\n-----END RSA PRIVATE KEY-----"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0." + letters(43)

# rule, secret; the secret is what must be gone.
SECRETS: list[tuple[str, str]] = [
    ("anthropic-key", "sk-ant-api03-" + letters(80, ALNUM + "_-") + "AA"),
    ("openai-key", "sk-" + letters(48)),
    ("openai-key", "sk-proj-" + letters(120, ALNUM + "_-") + "A9z"),
    ("openai-key", "sk-or-v1-" + letters(64, "0123456789abcdef")),
    ("aws-access-key", "AKIA" + letters(16, string.ascii_uppercase + "234567")),
    ("aws-access-key", "ASIA" + letters(16, string.ascii_uppercase + "234567")),
    *(("github-token", f"gh{kind}_{letters(36)}") for kind in "pousr"),
    ("github-token", "github_pat_" + letters(22) + "_" + letters(59)),
    ("google-key", "AIza" + letters(34, ALNUM + "_-") + "x"),
    *(("slack-token", f"xox{kind}-123456789012-{letters(24)}") for kind in "abeprs"),
    ("slack-token", "xapp-1-A0123-456-" + letters(40, "0123456789abcdef")),
    *(("stripe-key", f"{kind}_{letters(24)}") for kind in ("sk_live", "sk_test", "rk_live", "rk_test")),
    ("stripe-key", "whsec_" + letters(32)),
    ("jwt", JWT),
    ("private-key", PEM),
    ("private-key", PEM.replace("RSA ", "")),
    ("private-key", PEM.replace("RSA PRIVATE KEY", "PGP PRIVATE KEY BLOCK")),
    ("gitlab-token", "glpat-" + letters(20, ALNUM + "_-")),
    ("npm-token", "npm_" + letters(36)),
    ("huggingface", "hf_" + letters(34)),
]
INNOCENT = [
    "",
    "The task-force-of-something met; the risk-adjusted-returns-model was shown.",
    "sk-learn-pipeline-with-random-forest and ask-me-anything-about-it-tomorrow",
    "sk-proj- and sk-ant- are prefixes; so are ghp_, AKIA, AIza, xoxb-, eyJ, npm_, hf_ and glpat-.",
    "AKIA followed by AKIAIOSFODNN7 is too short; AKIAIOSFODNN7EXAMPLEXX is too long.",
    str(uuid.UUID(int=0x1234567890ABCDEF1234567890ABCDEF)),
    sha256(b"x").hexdigest(),
    "commit da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "call_" + letters(24),
    "toolu_01" + letters(22),
    "chatcmpl-" + letters(29),
    "data:image/png;base64," + base64.b64encode(random.Random(3).randbytes(3000)).decode(),
    "run_01hf7yat00abcdefghjkmnpqrs",
    "http://localhost:8080/path?mail=me@example.com",
    "ssh://git@example.com:22/repo and git@example.com:repo.git and https://me@example.com",
    "postgres://user:${DB_PASSWORD}@host/db, https://{user}:{password}@host, ftp://a:***@host",
    "Basic understanding-of-authentication-schemes is needed; Basic internationalization too.",
    "Basic " + base64.b64encode(b"words without the sign").decode(),
    "Basic " + base64.b64encode(b"bytes:\x00\xff\xfe and more").decode(),
    "The bearer of this letter; Bearer authentication-mechanisms; Bearer <token>",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG\n-----END CERTIFICATE-----",
    "max_completion_tokens parallel_tool_calls additionalProperties prompt_tokens_details",
]


def clean(gate: Redactor, value: Any) -> tuple[Any, dict[str, int]]:
    """Redact as a recorder does, and hold the quick test to its promise on the way."""
    counts: dict[str, int] = {}
    out = gate.redact(value, counts)
    assert (out is value) == (not counts)
    if counts:
        assert gate.suspicious(orjson.dumps(value))
    return out, counts


def spellings(value: str) -> list[str]:
    data = value.encode()
    out = [value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]]
    out += [json.dumps(json.dumps(value))[3:-3], json.dumps(json.dumps(json.dumps(value)))[7:-7]]
    out += [quote(value, safe=safe) for safe in ("", "/", "!'()*")]
    out += [quote(value, safe="").replace("%20", "+"), quote(value, safe="").lower() if value.islower() else value]
    out += [data.hex(), data.hex().upper()]
    out += ["".join(f"%{byte:02X}" for byte in data), "".join(f"%{byte:02x}" for byte in data)]
    out += [quote(quote(value, safe=""), safe=""), html.escape(value), html.escape(html.escape(value))]
    out += ["".join(one if one in ALNUM + "-_.~" else f"&#{ord(one)};" for one in value)]
    out += ["".join(one if one in ALNUM + "-_.~" else f"&#x{ord(one):x};" for one in value)]
    out += [quopri.encodestring(data, quotetabs=False).decode()] if len(data) < 20 and "\n" not in value else []
    for before in ("", "u", "us", "user:"):
        for coder in (base64.b64encode, base64.urlsafe_b64encode):
            out.append(coder(before.encode() + data + b"!tail").decode())
            out.append(quote(coder(before.encode() + data).decode(), safe=""))
    return out
