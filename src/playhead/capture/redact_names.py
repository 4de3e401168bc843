"""Say which names belong to secrets: fields of objects, and variables of the environment."""

from __future__ import annotations

import functools
import itertools
import os
import re
from collections.abc import Mapping
from operator import itemgetter

from playhead import _limits
from playhead.errors import ConfigError
from playhead.event.secret_names import is_secret_name

# "token" alone is not among them: models answer with {"token": "the"} when asked for probabilities.
FIELDS = frozenset({
    "password", "passwd", "secret", "client_secret", "clientsecret", "secret_key", "secretkey",
    "secret_access_key", "secretaccesskey", "aws_secret_access_key",
    "api_key", "apikey", "x_api_key", "x_goog_api_key", "private_key", "privatekey",
    "private_key_id", "passphrase", "api_token", "account_key", "shared_access_key",
    "access_token", "accesstoken", "refresh_token", "refreshtoken", "id_token", "idtoken", "auth_token", "authtoken",
    "x_auth_token", "session_token", "aws_session_token", "bearer_token",
    "authorization", "proxy_authorization", "cookie", "set_cookie",
})  # fmt: skip
# `reset_password` and `has_secret` are about a secret and do not hold one.
ABOUT_A_SECRET = frozenset({
    "is", "has", "no", "with", "without", "forgot", "reset", "change", "update", "require", "requires", "needs",
    "accept", "use", "show", "hide", "check", "verify", "validate", "trade",
})  # fmt: skip
_FIELD_NAME = re.compile(r"[A-Za-z0-9_.-]{2,}\Z", re.ASCII)
_ENDING_LETTERS_MAX = 6


def folded(name: str) -> str:
    """Return a field's name as the set of secret ones spells it; only ASCII letters fold."""
    return name.lower().replace("-", "_") if name.isascii() else name


class FieldTest:
    """Know the names of secret fields, and notice one in encoded JSON."""

    def __init__(self, names: frozenset[str]) -> None:
        if bad := sorted(name for name in names if not _FIELD_NAME.match(name)):
            raise ConfigError(
                f"not a name of a field that can be redacted: {bad[0]!r}",
                hint="Use letters, digits, '_', '-' and '.'; at least two of them.",
            )
        self.names = names
        letters = min(_ENDING_LETTERS_MAX, *(len(name) for name in names))
        self._ending = itemgetter(slice(-letters - 1, None))
        self._endings = _endings(names, letters)

    def matches(self, key: str) -> bool:
        """Say whether a key is such a name, or ends in one after `_` or `-`: `db_password`."""
        name = folded(key)
        if name in self.names:
            return True
        at = name.find("_")
        while at >= 0:
            if name[at + 1 :] in self.names:
                return name[:at].rpartition("_")[2] not in ABOUT_A_SECRET
            at = name.find("_", at + 1)
        return False

    def within(self, encoded: bytes) -> bool:
        """Say whether compact JSON may hold such a field with a text, or a mark in place of one.

        A key is followed by a colon, so it ends one of the pieces between colons. Cutting at single bytes and looking
        up the ends is several times faster than searching for the names.
        """
        if b'"$dict"' in encoded:
            return True  # its keys are followed by commas
        if self._endings.isdisjoint(map(self._ending, encoded.split(b":"))):
            return False
        return self._pattern.search(encoded) is not None

    @functools.cached_property
    def _pattern(self) -> re.Pattern[bytes]:
        names = "|".join(re.escape(name).replace("_", "[_-]") for name in sorted(self.names))
        return re.compile(rf'"(?:[^"]*[_-])?(?:{names})":(?:"(?!")|\{{"\$)'.encode(), re.IGNORECASE)


@functools.cache
def _endings(names: frozenset[str], letters: int) -> frozenset[bytes]:
    """Return the last letters of every name with the quote after it, in every case."""
    found: set[bytes] = set()
    for ending in {name[-letters:] for name in names}:
        ways = ["_-" if letter == "_" else {letter, letter.upper()} for letter in ending]
        found.update("".join(way).encode() + b'"' for way in itertools.product(*ways))
    return frozenset(found)


# Values that are none, whatever the variable is called.
_NOT_SECRET = frozenset({
    "true", "false", "none", "null", "undefined", "enabled", "disabled", "default", "required", "optional",
    "anonymous", "unknown", "password", "passwd", "passw0rd", "changeme", "postgres", "localhost",
    "development", "production",
})  # fmt: skip
_PLAIN_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^@?#]*\Z")
_SHORT_NUMBER = re.compile(r"[0-9.,:-]{1,11}\Z", re.ASCII)


def secrets_of(environ: Mapping[str, str]) -> list[str]:
    """Return the values of variables whose name looks secret, in order of name."""
    found = (value.strip() for name, value in sorted(environ.items()) if is_secret_name(name))
    return [value for value in found if not is_plainly_no_secret(value)]


def is_plainly_no_secret(value: str) -> bool:
    """Say whether a value cannot be a secret, whatever its name says."""
    if len(value) < _limits.SECRET_CHARACTERS_MIN or value.lower() in _NOT_SECRET:
        return True
    if _SHORT_NUMBER.match(value) or _PLAIN_ADDRESS.match(value):
        return True
    return value.startswith(("/", "./", "../", "~/")) and os.path.exists(os.path.expanduser(value))
