"""Find secrets by what is written before them: `PASSWORD=…`, `--token …`, `Cookie: …`, `?sig=…`, connection strings.

Prose and code name secrets all the time and rarely hold one: `password = get_password()`, `token: str`. So what follows
a name must look like a secret, the more so the weaker the name and the sign between them.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from playhead.capture.redact_names import ABOUT_A_SECRET, is_plainly_no_secret
from playhead.capture.redact_rules import Rule

_STRONG = (
    r"pass(?:word|wd|phrase)|secret(?:[_ -]?access)?(?:[_ -]?key)?|api[_ -]?key|(?:access|private|account|auth|signing)"
    r"[_ -]?key|(?:encryption|master)[_ -]?key|credential|private_key_id"
)
_WEAK = "token|pwd|_auth|_pass"
# What a quick search may look for: the last letters of every name above, folded.
WORDS = tuple(
    word.encode()
    for word in (
        *("password", "passwd", "passphrase", "secret", "secretkey", "api_key", "apikey", "access_key", "accesskey"),
        *("secret_key", "private_key", "privatekey", "account_key", "accountkey", "auth_key", "authkey", "signing_key"),
        *("signingkey", "encryption_key", "encryptionkey", "master_key", "masterkey", "credential", "private_key_id"),
        *("token", "pwd", "_auth", "_pass", "authorization", "cookie", "signature", "jwt"),
        *(f"{before}{name}" for before in "?&;#" for name in ("key", "sig", "sas")),
        *(f"{before}{name}" for before in ("3f", "26", "23") for name in ("key", "sig", "sas")),
        *("__user", "__proxy_user", "__pass", "subscription_key", "subscriptionkey", "hapikey"),
    )
)

_NO_VALUE = re.compile(
    r"\$|\{|%[({]|<|\*+\Z|[xX]{4,}|\.{3}|\[|#\{|%5[bB]redacted"
    r"|(?:your|my|the|some|an?|example|placeholder|replace|insert|enter|dummy|fake|sample)[_ -]"
    r"|(?:your|example|placeholder|changeme|redacted|string|required|optional)\Z"
    r"|(?:process\.env|os|env|config|settings|self|this|secrets|vars?|data|args|request|params|cls|ctx|module|local)[.:\[]",
    re.IGNORECASE,
)
_IDENTIFIERS = re.compile(r"[A-Za-z_][A-Za-z_0-9]*(?:\.[A-Za-z_][A-Za-z_0-9]*)+\Z", re.ASCII)
_WILD = "[0-9](?=[A-Za-z])|[A-Z](?=[A-Z][a-z])|[A-Z](?=[0-9])|[a-z](?=[0-9])"  # changes that names have few of
_DIGIT, _LETTER, _SIGN = re.compile("[0-9]"), re.compile("[A-Za-z]"), re.compile(r"[!@#$%^*+=~?]")
_CHANGE = re.compile("[0-9](?=[^0-9])|[^0-9](?=[0-9])")  # between digits and others
_CONSTANT = re.compile(r"[A-Z][A-Z_]*\Z")
_BEFORE = re.compile(r"[A-Za-z0-9_.-]*\Z", re.ASCII)
_CONNECTION = re.compile(
    r"(?:^|[;\s\"'])(?:server|data source|host(?:name|addr)?|endpoint|user id|uid|user(?:name)?|database|dbname"
    r"|initial catalog|accountname|defaultendpointsprotocol|sharedaccesskeyname|driver|port)\s*=[^=;\s]",
    re.IGNORECASE,
)
_NO_TICKET = frozenset({  # what a token may be besides: a place in a list, or a piece of text
    "page", "next", "continuation", "sync", "start", "end", "cursor", "pad", "eos", "bos", "unk", "mask", "stop",
    "first", "last", "special", "prev", "previous", "shard", "placement",
})  # fmt: skip
_AROUND_CHARACTERS = 300  # of a connection string, before and after its password
_LINE_CHARACTERS = 500
_SCHEMES = frozenset({
    "bearer", "basic", "token", "apikey", "api-key", "key", "digest", "negotiate", "ntlm", "hmac", "bot", "splunk",
    "sso-key", "snowflake", "genie", "discord", "klaviyo-api-key", "jwt", "oauth", "access-token",
})  # fmt: skip


def is_example(value: str) -> bool:
    """Say whether a text stands for a secret and is none: `${PASSWORD}`, `<token>`, `your-key`, `process.env.KEY`."""
    return _NO_VALUE.match(value) is not None or _CONSTANT.match(value) is not None


def looks_random(value: str) -> bool:
    """Say whether a text is no word and no name of a program: letters and digits that change places, or signs."""
    if not _DIGIT.search(value) or not _LETTER.search(value):
        return False
    if _IDENTIFIERS.match(value):  # `base64.b64encode`, unless a part of it is longer and wilder than any name
        return any(len(part) >= 16 and len(re.findall(_WILD, part)) >= 4 for part in value.split("."))
    if len(_CHANGE.findall(value)) >= 3 or _SIGN.search(value):
        return True
    return len(value) >= 12 and len(_DIGIT.findall(value)) >= 3


def _assigned(match: re.Match[str]) -> bool:
    text, value = match.string, match["secret"]
    before = _BEFORE.search(text, max(0, match.start() - 60), match.start())
    name = (before[0] if before else "") + match["name"]
    strong = match["strong"] is not None
    said = name[: -len(match["name"])].rstrip("_-").lower().replace("-", "_").rpartition("_")[2]
    if (
        said in ABOUT_A_SECRET
        or (not strong and said in _NO_TICKET)
        or is_example(value)
        or is_plainly_no_secret(value)
    ):
        return False
    quoted_name = '"' in match["close"] or "'" in match["close"]
    if match["q"]:
        if " " in value and not quoted_name:
            return False
        return (strong and quoted_name) or looks_random(value) or (strong and _varied(value))
    if text[match.end() : match.end() + 1] in ("(", "[", "{") or value[-1:] in ".:":
        return False
    if quoted_name and match["sign"] == ":":
        return False  # in JSON that is no text, but a number or a word such as null
    if match["sign"] == "=" and name.isupper():  # as in a shell, or a file of variables
        return strong or looks_random(value)
    return looks_random(value)


def _varied(value: str) -> bool:
    """Say whether a text without blanks has letters of both cases inside, or signs."""
    return bool(re.search("[a-z]", value) and re.search("[A-Z]", value[1:])) or bool(re.search(r"[!@#$%^*+=~?]", value))


def _option(match: re.Match[str]) -> bool:
    value = match["secret"]
    if value.startswith("-") or is_example(value) or value.lower() in ("string", "value", "text", "token", "password"):
        return False
    if match["sign"] == "=":
        return True
    return bool(re.search("[0-9]", value)) or _varied(value)


_SECRET_OPTION = re.compile(
    r"--(?:[A-Za-z0-9]{1,20}-){0,3}(?:pass(?:word|wd|phrase)?|pwd|(?:api|access|secret|private|account|auth)-?key|secret"
    r"|token|credential)\Z",
    re.IGNORECASE,
)


def argument_after(option: str, argument: str, web: bool) -> tuple[str, str] | None:
    """Return what an argument becomes that comes after a secret option, and the rule; None if it is not secret.

    `web` says whether the command line is one that asks a server for something, as `speaks_http` finds out.
    """
    if _SECRET_OPTION.match(option):
        told = argument.startswith(("-", "[redacted:")) or (" " in argument and not re.search("[0-9]", argument))
        return None if not argument or told or is_example(argument) else ("[redacted:option]", OPTION.name)
    if web and option in ("-u", "--user", "--proxy-user"):
        user, colon, password = argument.partition(":")
        if password and not password.startswith("[redacted:") and not is_example(password):
            return f"{user}{colon}[redacted:login]", LOGIN.name
    return None


def speaks_http(line: list[str]) -> bool:
    """Say whether a command line asks a server for something."""
    return any("curl" in one or "http" in one for one in line)


def _login(match: re.Match[str]) -> bool:
    start = max(match.string.rfind("\n", 0, match.start()), match.start() - _LINE_CHARACTERS, 0)
    line = (
        match.string[start : match.end() + _LINE_CHARACTERS].partition("\n")[0] if start == 0 else match.string[start:]
    )
    return bool(re.search("curl|https?|wget", line[: 2 * _LINE_CHARACTERS])) and not is_example(match["secret"])


def _header(match: re.Match[str]) -> bool:
    value = match["secret"]
    if match["cookies"] is not None:
        return not is_example(value.partition("=")[2])
    if is_example(value):
        return False
    scheme = (match["scheme"] or "").lower()
    if scheme:
        return scheme in _SCHEMES and (bool(re.search("[0-9]", value)) or _varied(value))
    return looks_random(value) and value.lower() not in _SCHEMES


def _parameter(match: re.Match[str]) -> bool:
    value = match["secret"]
    return not is_example(value) and (bool(re.search("[0-9]", value)) or _varied(value))


def _connection(match: re.Match[str]) -> bool:
    start, end = match.span()
    text = match.string
    if is_example(match["secret"]) or "(" in match["secret"]:
        return False
    before, after = text[max(0, start - _AROUND_CHARACTERS) : start], text[end : end + _AROUND_CHARACTERS]
    if "\n" in before:
        before = before.rpartition("\n")[2]
    after = after.partition("\n")[0]
    return bool(_CONNECTION.search(before) or _CONNECTION.search(after))


def _named_field(match: re.Match[str]) -> bool:
    value = match["secret"]
    before = _BEFORE.search(match.string, max(0, match.start() - 60), match.start())
    said = (before[0] if before else "").rstrip("_-").lower().replace("-", "_").rpartition("_")[2]
    if said in ABOUT_A_SECRET or is_example(value):
        return False
    if match["q"]:
        return True
    if match["close"] and match["sign"] == ":":
        return False  # in JSON that is no text
    # Code gives fields values all the time: a call, a name, a version, a length are no secrets.
    if (
        match["sign"] == "=="
        or match.string[match.end() : match.end() + 1] in ("(", "[", "{")
        or _IDENTIFIERS.match(value)
    ):
        return False
    mixed = len(value) >= 6 and re.search("[0-9]", value) and re.search("[A-Za-z]", value)
    return bool(mixed or re.fullmatch("[0-9]{3,}", value))


_PARTS = ("pass", "secret", "key", "credential", "token", "pwd", "_auth")  # one of them is in every name of `assigned`
_VALUE = r"(?=[^\x00-\x20\"'\\]{3})"
_QUOTE = r"(?P<q>\\{0,7}[\"'])"
_UNQUOTED = r"[^\x00-\x20\"'\\,;&<>`|(){}\[\]]"

CONNECTION = Rule(
    "connection-string",
    rf"(?i:password|pwd|accountkey|sharedaccesskey|sharedaccesssignature) ?= ?{_VALUE}"
    r"(?P<secret>[^;\x00-\x20\"'\\]{3,511}[^;\x00-\x20\"'\\)\]},.])",
    needles=("password", "pwd", "accountkey", "sharedaccess"),
    words=True,
    check=_connection,
)
ASSIGNED = Rule(
    "assigned",
    rf"(?P<name>(?i:(?P<strong>{_STRONG})|{_WEAK}))(?P<close>[\\\"'\]]{{0,12}}) ?(?P<sign>=>|:=|==?|:|%3[dD]|%3[aA]) ?"
    rf"(?:{_QUOTE}|){_VALUE}(?P<secret>(?(q)(?:(?!(?<!\\)(?P=q))[^\r\n]){{6,512}}|{_UNQUOTED}{{6,512}}))",
    needles=_PARTS,
    words=True,
    check=_assigned,
)
OPTION = Rule(
    "option",
    r"(?<![A-Za-z0-9_/=+-])--(?:[A-Za-z0-9]{1,20}-){0,3}(?:pass(?:word|wd|phrase)?|pwd|(?:api|access|secret|private|account|auth)-?key"
    rf"|secret|token|credential)(?P<sign>=| {{1,4}})(?:{_QUOTE}|){_VALUE}"
    rf"(?P<secret>(?(q)(?:(?!(?<!\\)(?P=q))[^\r\n]){{4,512}}|[^\x00-\x20\"'\\`|)]{{4,512}}))",
    needles=("--",),
    words=True,
    check=_option,
)
LOGIN = Rule(
    "login",
    rf"(?<![A-Za-z0-9_/=+-])(?:-u {{1,4}}|--(?:proxy-)?user(?:=| {{1,4}}))(?:{_QUOTE}|)[^\x00-\x20:\"'\\]{{1,64}}:"
    r"(?P<secret>[^\x00-\x20\"'\\]{3,256})",
    needles=("-u ", "user"),
    words=True,
    check=_login,
)
HEADER_LINE = Rule(
    "header-line",
    rf"(?i:authorization[\\\"']{{0,12}} ?[:=] ?(?:{_QUOTE}|){_VALUE}(?:(?P<scheme>[a-z][a-z0-9-]{{2,20}}) {{1,2}}|)"
    rf"|(?P<cookies>cookie)[\\\"']{{0,12}} ?: ?(?:\\{{0,7}}[\"'])?{_VALUE})"
    r"(?P<secret>(?(cookies)[^\x00-\x20=;,\"'\\]{1,80}=[^\x00-\x1f\"'\\]{2,8192}|[^\x00-\x20\"'\\,;<>]{5,4095}[^\x00-\x20\"'\\,;<>)\]}.]))",
    needles=("authorization", "cookie"),
    words=True,
    check=_header,
)
URL_SECRET = Rule(
    "url-secret",
    r"(?:[?&;#]|%3[fF]|%26|%23)(?:amp;)?(?i:key|sig|sas|jwt|signature|hapikey|(?:api|subscription)[_-]?key|apikey|pwd"
    r"|(?:x-amz-|x-goog-)?(?:signature|security-token)|(?:(?:access|id|refresh|auth|session|private|oauth)[_-]?)?token"
    rf"|(?:client[_-]?)?secret|pass(?:word|wd))(?:=|%3[dD]){_VALUE}(?P<secret>(?:(?!%26)[^\x00-\x20\"'\\&<>#`)\]]){{6,4096}})",
    needles=("=", "%3d"),
    words=True,
    check=_parameter,
)

NAMED = (CONNECTION, URL_SECRET, LOGIN, OPTION, HEADER_LINE, ASSIGNED)


def in_text(fields: Collection[str]) -> Rule:
    """Return a rule that finds what follows the name of one of the user's own secret fields in a text."""
    names = "|".join(re.escape(name).replace("_", "[_-]") for name in sorted(fields)) or "(?!)"
    return Rule(
        "named-field",
        rf"(?<![A-Za-z0-9])(?i:{names})(?P<close>[\\\"'\]]{{0,12}}) {{0,8}}(?P<sign>=>|:=|==?|:|%3[dD]|%3[aA]) {{0,8}}"
        rf"(?:{_QUOTE}|){_VALUE}(?P<secret>(?(q)(?:(?!(?<!\\)(?P=q))[^\r\n]){{3,512}}|{_UNQUOTED}{{3,512}}))",
        needles=tuple(sorted(way for name in fields for way in {name, name.replace("_", "-")})) or ("\0no name",),
        words=True,
        check=_named_field,
    )
