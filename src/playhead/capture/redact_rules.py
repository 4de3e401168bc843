"""Say what a secret looks like: the shapes of keys.

Besides its pattern, a rule says how to notice quickly, in the encoded bytes of an event, that the pattern cannot match
there; see `Redactor.suspicious`. These hints may be too wide, never too narrow.
"""

from __future__ import annotations

import functools
import re
from base64 import urlsafe_b64decode
from binascii import Error as BadBase64
from collections.abc import Callable
from dataclasses import dataclass

from playhead.errors import ConfigError

RUN_CHARACTERS = 16  # the shortest run of key-like characters that the quick test looks for
_BEFORE = ("(?<![A-Za-z0-9]", r"(?<=\\[nrtbf]", r"(?<=\\u[0-9A-Fa-f]{4}", "(?<=%[0-9A-Fa-f]{2}")
_BEGINNING = re.compile("|".join(f"{way})" for way in _BEFORE).encode())
_RULE_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}\Z")


@dataclass(frozen=True, slots=True)
class Rule:
    """Describe one shape.

    `pattern` is a regular expression over text (ASCII classes; the dot matches newlines); its group `secret`, or the
    whole match when it has none, is replaced. `check` may refuse a match. The rest is for speed, and optional:

    - `needles`: every match holds one of these strings (characters that JSON never escapes).
    - `in_run`: every match holds `RUN_CHARACTERS` or more characters of `A-Z a-z 0-9 _ + / = -` in a row, and the
      needle lies among them.
    - `after`: in place of needles, such a run begins at most 48 characters after one of these words and a space.
    - `behind`: in place of needles, such a run begins right after the first text of one of these pairs, and with the
      second.
    - `encoded`: a pattern that finds something in the JSON text of every string that holds a match.
    - `words`: every match begins with a name and a sign that `QuickTest.names` looks for; its needles are in small
      letters.
    - `leading`: each needle begins its match, as `starting` says.
    """

    name: str
    pattern: str
    needles: tuple[str, ...] = ()
    in_run: bool = False
    after: tuple[str, ...] = ()
    behind: tuple[tuple[str, str], ...] = ()
    encoded: str | None = None
    words: bool = False
    leading: bool = False
    check: Callable[[re.Match[str]], bool] | None = None

    def __post_init__(self) -> None:
        check_name(self.name)
        if self.in_run and not (self.needles or self.after or self.behind):
            raise ConfigError(f"redaction rule {self.name!r} is in_run but names neither needles nor words")
        if self.in_run and any(len(needle) < 2 for needle in self.needles):
            raise ConfigError(f"redaction rule {self.name!r} has a needle of one character: name two or more")

    def possible(self, text: str) -> bool:
        """Say whether a search is worth its time."""
        if self.after:
            lowered = text.lower()
            return any(f"{word} " in lowered for word in self.after)
        if self.behind:
            return any(before + begin in text for before, begin in self.behind)
        if self.words:
            lowered = text.lower()
            return any(needle in lowered for needle in self.needles)
        return not self.needles or any(needle in text for needle in self.needles)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return where the secrets of this shape stand."""
        pattern = compiled(self.pattern)
        group = "secret" if "secret" in pattern.groupindex else 0
        matches = (match for match in pattern.finditer(text) if match.start(group) < match.end(group))
        return [match.span(group) for match in matches if self.check is None or self.check(match)]


def check_name(name: str) -> None:
    """Refuse a name that could not stand in a placeholder."""
    if not _RULE_NAME.match(name):
        raise ConfigError(
            f"not a name for a redaction rule: {name!r}",
            hint="Use lower-case letters, digits and hyphens, a letter first, at most 40.",
        )


@functools.cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Compile at first use: most programs never meet most shapes."""
    return re.compile(pattern, re.ASCII | re.DOTALL)


def custom(name: str, pattern: str) -> Rule:
    """Make a rule of a regular expression that a user wrote."""
    try:
        compiled(pattern)
    except re.error as problem:
        raise ConfigError(
            f"redaction rule {name!r} is not a regular expression: {problem}",
            hint="It is one of Python's. In TOML, write it between single quotes, so that its backslashes stay.",
        ) from None
    if compiled(pattern).match(""):
        raise ConfigError(f"redaction rule {name!r} fits the empty text, so it would fit everywhere")
    return Rule(name, pattern)


def starting(prefix: str) -> str:
    r"""Return a pattern for a prefix of fixed length that begins a token.

    No letter or digit stands before it, save one that ends an escape: `\n`, `\u001b`, `%3D`. The test comes after the
    prefix, since `re` finds a pattern much faster when it begins with plain letters.
    """
    return f"{prefix}(?:{'|'.join(f'{way}{prefix})' for way in _BEFORE)})"


def begins(data: bytes, at: int) -> bool:
    """Say whether a token may begin here, as `starting` says; in JSON text or not."""
    return _BEGINNING.match(data, at) is not None


def _openai(match: re.Match[str]) -> bool:
    # Hyphenated words ("sk-learn-pipeline") have neither one long mixed part nor digits and letters of both cases.
    token = match[0]
    if any(len(part) >= 20 and _mixed(part) for part in re.split("[-_]", token)):
        return True
    return all(re.search(kind, token[3:]) for kind in ("[0-9]", "[A-Z]", "[a-z]"))


def _mixed(token: str) -> bool:
    """Say whether a token has a digit, or capitals after its first letter besides small letters."""
    return bool(re.search("[0-9]", token) or (re.search("[A-Z]", token[1:]) and re.search("[a-z]", token)))


def _has_digit(match: re.Match[str]) -> bool:
    return bool(re.search("[0-9]", match[0]))


def _credentials(match: re.Match[str]) -> bool:
    token = match["secret"]
    if match["scheme"].lower() == "bearer":
        return _mixed(token)
    # Basic: base64 of "user:password"; anything else after the word is prose.
    bare = token.rstrip("=").replace("+", "-").replace("/", "_")
    try:
        pair = urlsafe_b64decode(bare + "=" * (-len(bare) % 4)).decode()
    except (BadBase64, UnicodeDecodeError):
        return False
    return ":" in pair and pair.isprintable()


def _not_a_variable(match: re.Match[str]) -> bool:
    # `${PASSWORD}`, `{password}`, `$PASSWORD`, `***` stand for a password and are none.
    return not re.fullmatch(r"\$?\{+[^{}]*\}+|\$[A-Za-z_]\w*|\*+", match["secret"], re.ASCII)


# `sk-` alone is so short that it comes up by chance in long base64 data; so after it the length has an upper bound, and
# the end must be an end.
_PART = "[A-Za-z0-9_-]"
_END = "(?![A-Za-z0-9_-])"
_RUN = "[A-Za-z0-9_+/=-]"
_PEM = "[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"

_HEX = "0123456789abcdef"

# Services that mark their keys, and how many characters follow the mark at least.
_SERVICES = {
    "nvapi-": 40, "tvly-": 24, "pcsk_": 40, "csk-": 40, "fw_": 20, "jina_": 40, "e2b_": 32, "ntn_": 40, "lin_api_": 32,
    "shpat_": 32, "shpss_": 32, "glsa_": 32, "glc_": 40, "ATATT3": 60, "PMAK-": 40, "figd_": 30, "sntrys_": 40,
    "sntryu_": 40, "sbp_": 40, "secret_": 43, "rnd_": 28, "NRAK-": 24, "hvb_": 60, "vcp_": 40, "nfp_": 36,
}  # fmt: skip

# First, so that no other rule takes a piece out of the block. A block without an end goes on to the end of the text.
PRIVATE_KEY = Rule(
    "private-key",
    rf"-----BEGIN {_PEM}.*?(?:-----END {_PEM}|\Z)",
    needles=("PRIVATE KEY",),
)
PUTTY_KEY = Rule(
    "putty-key",
    r"PuTTY-User-Key-File-[0-9]: .*?(?:Private-MAC: [0-9a-f]{16,}+|\Z)",
    needles=("PuTTY-User-Key-File-",),
    in_run=True,
)

# Each needle of these begins its match, as `starting` says.
TOKENS: tuple[Rule, ...] = (
    Rule("anthropic-key", rf"{starting('sk-ant-')}{_PART}{{16,}}+", ("sk-ant-",), in_run=True),
    Rule(
        "openai-key",
        rf"{starting('sk-')}(?!ant-|lf-)(?:(?:proj|svcacct|admin|or-v1)-{_PART}{{20,}}+|{_PART}{{20,250}}{_END})",
        ("sk-",),
        in_run=True,
        check=_openai,
    ),
    Rule("aws-access-key", rf"{starting('A[KS]IA')}[A-Z0-9]{{16}}(?![A-Za-z0-9])", ("AKIA", "ASIA"), in_run=True),
    Rule(
        "github-token",
        rf"{starting('gh[pousr]_')}[A-Za-z0-9_]{{36,}}+|{starting('github_pat_')}[A-Za-z0-9_]{{22,}}+",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        in_run=True,
    ),
    Rule("google-key", rf"{starting('AIza')}{_PART}{{35}}{_END}", ("AIza",), in_run=True),
    Rule(
        "slack-token",
        rf"{starting('(?:xox[abeprs]|xapp)-')}[A-Za-z0-9-]{{16,}}+",
        ("xoxa-", "xoxb-", "xoxe-", "xoxp-", "xoxr-", "xoxs-", "xapp-"),
        in_run=True,
        check=_has_digit,
    ),
    Rule(
        "stripe-key",
        rf"{starting('[sr]k_(?:live|test)_')}[A-Za-z0-9]{{10,}}+|{starting('whsec_')}[A-Za-z0-9+/=]{{16,}}+",
        ("sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"),
        in_run=True,
    ),
    Rule("jwt", rf"{starting('eyJ')}{_PART}{{13,}}+\.{_PART}*+\.{_PART}{{8,}}+(?:\.{_PART}++)*", ("eyJ",), in_run=True),
    Rule(
        "gitlab-token",
        rf"{starting('glpat-')}{_PART}{{20,}}+(?:\.[A-Za-z0-9]{{2,12}}(?![A-Za-z0-9])){{0,2}}",
        ("glpat-",),
        in_run=True,
    ),
    Rule("npm-token", rf"{starting('npm_')}[A-Za-z0-9]{{36,}}+", ("npm_",), in_run=True),
    Rule("huggingface", rf"{starting('hf_')}[A-Za-z0-9]{{30,}}+", ("hf_",), in_run=True),
    Rule("langfuse-key", rf"{starting('sk-lf-')}{_PART}{{20,}}+", ("sk-lf-",), in_run=True),
    Rule("langsmith-key", rf"{starting('lsv2_')}[A-Za-z0-9_]{{24,}}+", ("lsv2_",), in_run=True),
    Rule("groq-key", rf"{starting('gsk_')}[A-Za-z0-9]{{32,}}+", ("gsk_",), in_run=True),
    Rule("xai-key", rf"{starting('xai-')}[A-Za-z0-9]{{40,}}+", ("xai-",), in_run=True),
    Rule("perplexity-key", rf"{starting('pplx-')}[A-Za-z0-9]{{32,}}+", ("pplx-",), in_run=True),
    Rule("replicate-key", rf"{starting('r8_')}[A-Za-z0-9]{{30,}}+", ("r8_",), in_run=True),
    Rule(
        "google-oauth",
        rf"{starting('GOCSPX-')}{_PART}{{20,}}+|{starting('1//0')}{_PART}{{30,}}+",
        ("GOCSPX-", "1//0"),
        in_run=True,
    ),
    Rule("pypi-token", rf"{starting('pypi-')}{_PART}{{32,}}+", ("pypi-",), in_run=True, check=_has_digit),
    Rule("digitalocean", rf"{starting('do[opr]_v1_')}[a-f0-9]{{32,}}+", ("dop_v1_", "doo_v1_", "dor_v1_"), in_run=True),
    Rule(
        "databricks",
        rf"{starting('dapi')}[0-9a-f]{{32}}(?:-[0-9])?(?![A-Za-z0-9])",
        tuple(f"dapi{digit}" for digit in _HEX),
        in_run=True,
    ),
    Rule(
        "twilio-key",
        rf"{starting('SK')}[0-9a-f]{{32}}(?![A-Za-z0-9])",
        tuple(f"SK{digit}" for digit in _HEX),
        in_run=True,
    ),
    Rule(
        "mailgun-key", rf"{starting('key-')}[0-9a-f]{{32}}(?![A-Za-z0-9])", tuple(f"key-{x}" for x in _HEX), in_run=True
    ),
    Rule("age-key", rf"{starting('AGE-SECRET-KEY-1')}[A-Z0-9]{{40,}}+", ("AGE-SECRET-KEY-1",), in_run=True),
    Rule(
        "service-key",
        "|".join(f"{starting(prefix)}{_PART}{{{count},}}+" for prefix, count in _SERVICES.items()),
        tuple(_SERVICES),
        in_run=True,
        check=_has_digit,
    ),
)

# In these the needle does not begin the secret, or the secret is no single run.
ELSEWHERE: tuple[Rule, ...] = (
    Rule("google-access", rf"{starting('ya29')}[.]{_PART}{{20,}}+", in_run=True, behind=(("ya29.", ""),)),
    Rule(
        "sendgrid-key",
        rf"{starting('SG')}[.]{_PART}{{16,32}}[.]{_PART}{{32,64}}{_END}",
        in_run=True,
        behind=(("SG.", ""),),
    ),
    Rule(
        "telegram-token",
        rf"(?<![0-9])[0-9]{{6,12}}:(?P<secret>AA{_PART}{{32,34}}){_END}",
        in_run=True,
        behind=((":", "AA"),),
    ),
    Rule(
        "slack-webhook",
        r"hooks[.]slack[.]com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9+/=_-]{16,}+)",
        ("com/services/", "com/workflows/", "com/triggers/"),
        in_run=True,
    ),
    Rule(
        "discord-webhook",
        rf"/api/webhooks/[0-9]{{10,24}}/(?P<secret>{_PART}{{32,}}+)",
        ("/api/webhooks/",),
        in_run=True,
    ),
)

URL_PASSWORD = Rule(
    "url-password",
    r"(?<=[A-Za-z0-9+.-])://[^\x00-\x20\x7f:/?#@\"'<>\\]{0,256}:"
    r"(?P<secret>[^\x00-\x20\x7f/?#\"'<>\\]{1,512})@(?=[^\x00-\x20\x7f/?#@\"'<>\\])",
    needles=("@",),
    encoded=r"://[^\x00-\x20:/?#\"]*:[^\x00-\x20/?#\"]+@",
    check=_not_a_variable,
)

# Last, so that a token of a known shape is named by its shape.
BEARER = Rule(
    "bearer",
    rf"(?P<scheme>{starting('[Bb][Ee][Aa][Rr][Ee][Rr]')}|{starting('[Bb][Aa][Ss][Ii][Cc]')}) "
    rf"(?P<secret>(?:{_RUN}{{0,15}}[.~]){{0,3}}{_RUN}{{16,}}+(?:[.~]++{_RUN}++)*)",
    in_run=True,
    after=("bearer", "basic"),
    check=_credentials,
)
