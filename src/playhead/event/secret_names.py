"""Say which variables of the environment hold a secret, by their names."""

from __future__ import annotations

import re

# Parts of a variable's name that say "secret", and last parts that say it is only about one.
_SECRET_PARTS = frozenset({"KEY", "KEYS", "AUTH", "PRIVATE", "PASS"})
_SECRET_ENDINGS = (
    "TOKEN", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS",
    "APIKEY", "ACCESSKEY", "SECRETKEY", "PRIVATEKEY",
)  # fmt: skip
_ABOUT = frozenset({
    "FILE", "PATH", "DIR", "SOCK", "TYPE", "MODE", "NAME", "USER", "USERNAME", "HOST", "PORT", "ALGORITHM",
})  # fmt: skip


def is_secret_name(name: str) -> bool:
    """Say whether a variable's name says that its value is secret."""
    parts = [part for part in re.split(r"[^A-Z0-9]+", name.upper()) if part]
    if not parts or parts[-1] in _ABOUT:
        return False
    return any(part in _SECRET_PARTS or part.endswith(_SECRET_ENDINGS) for part in parts)
