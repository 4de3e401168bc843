"""Keep secrets out of what is recorded of an exchange over HTTP: headers, addresses, forms, pieces, encoded bodies.

Headers are ordered pairs of name and value, as texts or as bytes, as the client had them. What these functions return
passes the gate once more, with the event that it becomes part of; so they only do what the gate cannot know. A header
that is replaced becomes `{"$redacted": "header"}`, a parameter `[redacted:url-secret]`.

`learn_from_request` comes first: the keys of a request are known before anything of its exchange is written.
"""

from __future__ import annotations

import base64
import binascii
import functools
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, unquote, unquote_plus

import orjson

from playhead.capture.redact import Redactor
from playhead.capture.redact_inside import Unopened, opened
from playhead.capture.redact_names import FIELDS, FieldTest, folded

__all__ = [
    "Unopened", "encoded", "form", "learn_from_request", "multipart", "pieces", "request_headers", "response_headers",
    "url",
]  # fmt: skip

Text = str | bytes
Pairs = Iterable[tuple[Text, Text]]

# Of the headers of a request these keep their values: they say what was asked for, by which software, and no more.
REQUEST_HEADERS = frozenset({
    "accept", "accept-charset", "accept-encoding", "accept-language", "amz-sdk-invocation-id", "amz-sdk-request",
    "anthropic-beta", "anthropic-version", "cache-control", "connection", "content-disposition", "content-encoding",
    "content-language", "content-length", "content-type", "date", "expect", "host", "http2-settings", "idempotency-key",
    "if-match", "if-modified-since", "if-none-match", "keep-alive", "openai-beta", "pragma", "prefer", "range",
    "retry-after", "te", "trailer", "traceparent", "tracestate", "transfer-encoding", "upgrade", "user-agent",
    "x-amz-content-sha256", "x-amz-date", "x-amz-target", "x-amzn-trace-id", "x-app", "x-client-request-id",
    "x-goog-api-client", "x-request-id", "x-title",
})  # fmt: skip
REQUEST_HEADER_BEGINNINGS = ("x-stainless-", "mcp-", "x-ms-client-", "sec-websocket-ext", "sec-websocket-ver")

# Of the headers of a response these lose theirs; besides names that `field` calls secret.
RESPONSE_HEADERS = frozenset({
    "authentication-info", "proxy-authentication-info", "set-cookie2", "x-amz-security-token", "x-csrf-token",
    "x-xsrf-token", "x-session-id", "x-session", "x-vault-token", "x-subject-token",
})  # fmt: skip
_HANDSHAKE = re.compile(r"\s*(?:negotiate|ntlm|kerberos)\s+\S", re.IGNORECASE)
_ADDRESSES = frozenset({"location", "content-location", "refresh", "link", "referer", "operation-location"})

# Parameters of an address or a form whose values are secret, by their whole name, or by its last parts too. Not "token"
# as a last part: `page_token` is where the next page begins.
PARAMETERS = frozenset({
    "key", "token", "auth", "sig", "signature", "awsaccesskeyid", "pwd", "pass", "session", "sessionid", "session_id",
    "jsessionid", "phpsessid", "jwt", "otp", "assertion", "sas", "samlresponse", "credential", "hapikey",
})  # fmt: skip
_NAMES = FieldTest(FIELDS | {
    "x_amz_signature", "x_amz_security_token", "x_goog_signature", "private_token", "oauth_token", "oauth_signature",
    "subscription_key", "client_assertion", "saml_response", "device_code", "code_verifier", "passphrase",
})  # fmt: skip
_ONE_TIME_CODE = re.compile(r"(?:^|&)(?:state|grant_type)=")  # beside these, `code` is what a login is finished with

_CREDENTIALS = frozenset({
    "authorization", "proxy-authorization", "x-api-key", "api-key", "apikey", "x-goog-api-key", "x-auth-token",
    "x-amz-security-token", "x-access-token", "x-functions-key", "ocp-apim-subscription-key", "x-vault-token",
    "private-token", "x-gitlab-token", "x-github-token", "x-subscription-token", "xi-api-key", "x-session-token",
    "dd-api-key", "x-honeycomb-team", "helicone-auth", "x-csrf-token", "x-xsrf-token",
})  # fmt: skip
_SIGNATURE = re.compile(r"(?:AWS4-|Digest\b|OAuth\b|Signature\b)", re.IGNORECASE)  # of this one request, not a key
_PAIR = re.compile(r"[^\s=,;]+\s*=\s*\"?([^\",;]+)\"?")
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:)?//([^/?#]*)@")
_FIELD_OF_PART = re.compile(rb"name=\"([^\"]*)\"|name=([^;\s\"]+)", re.IGNORECASE)
BOUNDARY = re.compile(r"boundary=(?:\"([^\"]+)\"|([^;\s]+))", re.IGNORECASE)
_NOTICED_MAX = 4096  # credentials that are remembered as learned; beyond it they are looked at again


def request_headers(redactor: Redactor, pairs: Pairs, counts: dict[str, int]) -> list[list[Any]]:
    """Return the headers of a request: all names, in order, and the values of those that tell no secret."""
    out: list[list[Any]] = []
    keep_all = "header" not in redactor.rules
    for raw_name, raw_value in pairs:
        name = _text(raw_name)
        if keep_all or _is_allowed(name):
            out.append([name, _text(raw_value)])
        else:
            out.append([name, _hidden(counts)])
    return out


def response_headers(redactor: Redactor, pairs: Pairs, counts: dict[str, int]) -> list[list[Any]]:
    """Return the headers of a response, in order: all values but secret ones, and addresses without theirs."""
    out: list[list[Any]] = []
    keep_all = "header" not in redactor.rules
    for raw_name, raw_value in pairs:
        name, value = _text(raw_name), _text(raw_value)
        kind = _response_kind(name)
        if kind == "address":
            value = url(redactor, value, counts)
        secret = kind == "secret" or redactor.is_secret_field(name) or (kind == "handshake" and _HANDSHAKE.match(value))
        out.append([name, _hidden(counts) if secret and value and not keep_all else value])
    return out


def is_harmless(redactor: Redactor, name: str, asking: bool) -> bool:
    """Say whether the value of this header is kept as it is, but for the secrets that any text may hold."""
    if asking:
        return _is_allowed(name)
    return _response_kind(name) == "other" and not redactor.is_secret_field(name)


def learn_from_request(redactor: Redactor, pairs: Pairs, address: str) -> None:
    """Make the keys that a request carries known, so that they are found wherever else they stand from now on."""
    noticed = redactor.noticed
    for raw_name, raw_value in pairs:
        kind = _credential_kind(raw_name)
        if kind and (raw_name, raw_value) not in noticed:
            _notice(redactor, (raw_name, raw_value))
            value = _text(raw_value)
            for secret in _cookie_values(value) if kind == "cookie" else _credentials(value):
                redactor.learn_value(secret, "header")
    if ("?" in address or "@" in address or "#" in address) and address not in noticed:
        _notice(redactor, address)
        _learn_from_address(redactor, address)


def url(redactor: Redactor, text: str, counts: dict[str, int]) -> str:
    """Return an address without its password, its secret parameters and its signature; the rest byte for byte."""
    out = text
    if "@" in out and "url-password" in redactor.rules and (found := _ADDRESS.match(out)):
        user, colon, password = found[2].partition(":")
        mark = "[redacted:url-password]"
        if password not in ("", mark):
            out = f"{found[1] or ''}//{user}{colon}{mark}@{out[found.end() :]}"
            counts["url-password"] = counts.get("url-password", 0) + 1
    if "url-secret" in redactor.rules:
        out, sharp, fragment = out.partition("#")
        out, question, query = out.partition("?")
        if question:
            query = _parameters(redactor, query, counts)
        if "=" in fragment:
            fragment = _parameters(redactor, fragment, counts)
        out = f"{out}{question}{query}{sharp}{fragment}"
    return redactor.redact_text(out, counts)


def form(redactor: Redactor, body: str, counts: dict[str, int]) -> str:
    """Return the body of a form (application/x-www-form-urlencoded) without its secret fields."""
    out = _parameters(redactor, body, counts) if "url-secret" in redactor.rules else body
    return redactor.redact_text(out, counts)


def multipart(redactor: Redactor, body: bytes, content_type: str, counts: dict[str, int]) -> bytes:
    """Return the body of a form (multipart/form-data) without its secret fields; the same object if there are none."""
    out = body
    found = BOUNDARY.search(content_type)
    if found and "url-secret" in redactor.rules:
        line = b"--" + (found[1] or found[2]).encode()
        parts = body.split(line)
        for at, part in enumerate(parts):
            head, blank, content = part.partition(b"\r\n\r\n")
            name = _FIELD_OF_PART.search(head) if blank else None
            said = (name[1] or name[2] or b"").decode("utf-8", "replace") if name else ""
            end = b"\r\n" if content.endswith(b"\r\n") else b""
            if content.removesuffix(end) not in (b"", _MARK.encode()) and _is_secret_parameter(redactor, said, False):
                parts[at] = head + blank + _MARK.encode() + end
                counts["url-secret"] = counts.get("url-secret", 0) + 1
        out = line.join(parts)
    return redactor.redact_bytes(body if out == body else out, counts)


def pieces(redactor: Redactor, parts: list[bytes], counts: dict[str, int]) -> list[bytes]:
    """Return the pieces of a stream without secrets, also those that lie in several; as many as there were."""
    return redactor.redact_pieces(parts, counts)


def encoded(redactor: Redactor, data: bytes, encoding: str, counts: dict[str, int]) -> bytes | None:
    """Look inside bytes that came with this `content-encoding`.

    None says that they are clean and may be kept as they are. Otherwise they are returned decoded and redacted. Raises
    `Unopened` where they cannot be looked into, with the reason: then keep a digest and not the bytes.
    """
    decoded = opened(data, encoding)
    clean = redactor.redact_bytes(decoded, counts)
    if clean[:1] in (b"{", b"["):
        clean = _without_fields(redactor, clean, counts)
    return None if clean is decoded else clean


def _without_fields(redactor: Redactor, data: bytes, counts: dict[str, int]) -> bytes:
    """Redact the secret fields of JSON, of which `redact_bytes` sees only the text."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return data
    clean = redactor.redact(value, counts)
    return data if clean is value else orjson.dumps(clean)


_MARK = "[redacted:url-secret]"


def _parameters(redactor: Redactor, query: str, counts: dict[str, int]) -> str:
    login = _ONE_TIME_CODE.search(query) is not None
    out = []
    for part in query.split("&"):
        name, equals, value = part.partition("=")
        if value and value != _MARK and _is_secret_parameter(redactor, name, login):
            counts["url-secret"] = counts.get("url-secret", 0) + 1
            part = f"{name}={_MARK}"
        elif "%" in value and ("%3D" in value or "%3d" in value or "%40" in value):
            inner = unquote(value)
            clean = url(redactor, inner, counts)
            if clean != inner:
                part = f"{name}{equals}{quote(clean, safe='')}"
        out.append(part)
    return "&".join(out)


def _is_secret_parameter(redactor: Redactor, name: str, login: bool) -> bool:
    name = unquote_plus(name) if "%" in name or "+" in name else name
    return (
        folded(name) in PARAMETERS
        or _NAMES.matches(name)
        or redactor.is_secret_field(name)
        or (login and name == "code")
    )


def _learn_from_address(redactor: Redactor, address: str) -> None:
    if found := _ADDRESS.match(address):
        user, _, password = found[2].partition(":")
        redactor.learn_value(unquote(password or user), "url-password")
    rest, _, fragment = address.partition("#")
    for part in f"{rest.partition('?')[2]}&{fragment}".split("&"):
        name, _, value = part.partition("=")
        # What changes with every request is no key: signatures, codes. It is redacted where it stands, and not learned.
        said = folded(unquote_plus(name))
        if value and not said.endswith(("sig", "signature")) and _is_secret_parameter(redactor, name, login=False):
            redactor.learn_value(unquote_plus(value), "url-secret")


def _credentials(value: str) -> list[str]:
    """Return what is secret in a header such as `Authorization`."""
    if _SIGNATURE.match(value):
        return []
    scheme, _, rest = value.strip().partition(" ")
    rest = rest.strip()
    if not rest:
        return [scheme]
    if scheme.lower() == "basic":
        try:
            pair = base64.b64decode(rest).decode()
        except (binascii.Error, UnicodeDecodeError):
            return [rest]
        return [rest, pair, pair.partition(":")[2]]
    if "=" in rest.rstrip("=") and (named := _PAIR.findall(rest)):
        return list(named)
    return [rest]


def _cookie_values(value: str) -> list[str]:
    """Return the values of cookies that may be tickets: long, and not just words."""
    values = [part.partition("=")[2].strip().strip('"') for part in value.split(";")]
    return [one for one in values if len(one) >= 16 and re.search("[0-9]", one) and re.search("[A-Za-z]", one)]


def _notice(redactor: Redactor, what: Any) -> None:
    if len(redactor.noticed) >= _NOTICED_MAX:
        redactor.noticed.clear()
    redactor.noticed.add(what)


def _hidden(counts: dict[str, int]) -> dict[str, str]:
    counts["header"] = counts.get("header", 0) + 1
    return {"$redacted": "header"}


def _text(value: Text) -> str:
    return value if isinstance(value, str) else value.decode("latin-1")


@functools.lru_cache(maxsize=1024)
def _is_allowed(name: str) -> bool:
    lowered = name.lower()
    return lowered in REQUEST_HEADERS or lowered.startswith(REQUEST_HEADER_BEGINNINGS)


@functools.lru_cache(maxsize=1024)
def _response_kind(name: str) -> str:
    lowered = name.lower()
    if lowered in RESPONSE_HEADERS or _NAMES.matches(lowered):
        return "secret"
    if lowered in _ADDRESSES:
        return "address"
    return "handshake" if lowered.endswith("-authenticate") else "other"


@functools.lru_cache(maxsize=1024)
def _credential_kind(name: Text) -> str:
    """Say whether a header carries credentials."""
    lowered = _text(name).lower()
    if lowered in ("cookie", "cookie2"):
        return "cookie"
    return "key" if lowered in _CREDENTIALS or _NAMES.matches(lowered) else ""
