"""Read configuration: `playhead.toml` or `[tool.playhead]`, then `PLAYHEAD_*`, then arguments; the later wins.

docs/reference/configuration.md lists every setting; a test compares the two.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from playhead import _launched
from playhead.errors import ConfigError

_YES = frozenset({"1", "true", "yes", "on"})
_NO = frozenset({"0", "false", "no", "off", ""})
_REDACTING = ("redact_off", "redact_fields", "redact_patterns")
_ONLY_IN_FILES = ("redact_patterns", "prices", "normalise")
_NORMALISER = {"path": str, "pattern": str, "instead": str, "kinds": list, "names": list}


@dataclass(frozen=True)
class Settings:
    """What a user can set."""

    dir: str = ".playhead"  # the store
    disabled: bool = False  # record nothing at all
    policy: str = "playhead.policy.toml"  # the file with the policy; this one only where it is there
    strict: bool = False  # raise when an event cannot be recorded, besides counting it
    git: bool = True  # note commit, branch and working-tree diff
    cassettes: str = "auto"  # what the pytest plugin does: none, once, new, all; auto is once, and none under CI
    ambient: bool = True  # under `playhead record`: what clocks, random numbers, variables and files said
    redact_off: tuple[str, ...] = ()  # names of redaction rules that are switched off
    redact_fields: tuple[str, ...] = ()  # more names of fields whose values are secret
    redact_patterns: Mapping[str, str] = field(default_factory=dict)  # more rules: name = regular expression
    # US dollars for a million tokens: model = {input, cached, output}
    prices: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    # what is volatile in questions: name = {path, pattern, instead, kinds, names}
    normalise: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def store_root(self, start: Path | None = None) -> Path:
        """Return the absolute path of the store; ConfigError where it is that of a server, which is no folder."""
        if is_address(self.dir):
            raise ConfigError(
                f"the store in force is a server, {without_credentials(self.dir)}, and this needs a folder",
                hint="Name one: `--store DIR`, or PLAYHEAD_DIR. A server's runs are not written from here yet.",
            )
        try:
            return ((start or Path.cwd()) / Path(self.dir).expanduser()).absolute()
        except RuntimeError as problem:
            raise ConfigError(f"dir = {self.dir!r} names no folder: {problem}") from None

    def store_folder(self) -> Path | None:
        """Return the same, or None where the store is that of a server."""
        return None if is_address(self.dir) else self.store_root()


def is_address(text: str) -> bool:
    """Say whether the name of a store is the address of a server."""
    return text[:8].lower().startswith(("http://", "https://"))


def without_credentials(address: str) -> str:
    """Return an address as it may be shown: somebody may have written a password into it."""
    scheme, separator, rest = address.partition("://")
    place, slash, path = rest.partition("/")
    return f"{scheme}{separator}{place.rpartition('@')[2]}{slash}{path}"


_inherited: dict[str, Any] = {}  # of the launcher that this program was started by


def handed_on(settings: Settings) -> str:
    """Write down what a program must know wherever it runs: which values are secret. Empty where nothing was set."""
    told = {name: getattr(settings, name) for name in _REDACTING if getattr(settings, name)}
    import base64
    import json

    return base64.urlsafe_b64encode(json.dumps(told).encode()).decode() if told else ""


def inherit(told: str) -> None:
    """Redact from now on what the launcher redacts as well.

    `told` is what `handed_on` wrote, or after an `@` the name of the file that holds it.
    """
    import base64
    import json

    if told.startswith("@"):
        told = Path(told[1:]).read_text()
    _inherited.update(json.loads(base64.urlsafe_b64decode(told)))


def load(environ: Mapping[str, str] | None = None, folder: Path | None = None) -> Settings:
    """Return the settings in force here."""
    environ = {**_launched.variables, **os.environ} if environ is None else environ
    folder = folder or Path.cwd()
    values: dict[str, Any] = {}
    for source, table in (*_files(folder), ("environment", _from_environment(environ))):
        values.update(_checked(source, table))
    if _inherited:
        _add_inherited(values)
    return Settings(**values)


def _add_inherited(values: dict[str, Any]) -> None:
    """Add what the launcher was told: a secret of either is a secret."""
    off = tuple(_inherited.get("redact_off", ()))
    values["redact_off"] = tuple(name for name in off if name in values.get("redact_off", off))
    values["redact_fields"] = (*values.get("redact_fields", ()), *_inherited.get("redact_fields", ()))
    patterns = values["redact_patterns"] = dict(values.get("redact_patterns", {}))
    for name, pattern in _inherited.get("redact_patterns", {}).items():
        while patterns.get(name, pattern) != pattern:
            name = f"{name[:37]}-2"
        patterns[name] = pattern


def _files(folder: Path) -> list[tuple[str, Mapping[str, Any]]]:
    out: list[tuple[str, Mapping[str, Any]]] = []
    for name, keys in (("pyproject.toml", ("tool", "playhead")), ("playhead.toml", ())):
        path = folder / name
        if not path.is_file():
            continue
        text = path.read_bytes()
        if keys and b"playhead" not in text:
            continue  # spares the parser in the usual case
        import tomllib

        try:
            table: Any = tomllib.loads(text.decode())
        except (ValueError, RecursionError) as problem:  # no TOML, no UTF-8, a number of thousands of digits
            raise ConfigError(f"{path} cannot be read: {problem}") from None
        for key in keys:
            table = table.get(key, {})
        out.append((str(path), _flat(table)))
    return out


def _flat(table: Mapping[str, Any]) -> dict[str, Any]:
    redact = table.get("redact", {})
    out = {key: value for key, value in table.items() if key != "redact"}
    if isinstance(redact, Mapping):
        out.update({f"redact_{key}": value for key, value in redact.items()})
    else:
        out["redact"] = redact
    return out


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for item in fields(Settings):
        text = environ.get(f"PLAYHEAD_{item.name.upper()}")
        if text is None or item.name in _ONLY_IN_FILES:
            continue
        if isinstance(item.default, bool):
            lowered = text.strip().lower()
            if lowered not in _YES | _NO:
                raise ConfigError(f"PLAYHEAD_{item.name.upper()}={text!r} is neither yes nor no")
            out[item.name] = lowered in _YES
        elif isinstance(item.default, tuple):
            out[item.name] = [part.strip() for part in text.split(",") if part.strip()]
        elif text:
            out[item.name] = text
    return out


def _checked(source: str, table: Mapping[str, Any]) -> dict[str, Any]:
    known = {item.name: item for item in fields(Settings)}
    out: dict[str, Any] = {}
    for key, value in table.items():
        if key not in known:
            names = ", ".join(sorted(map(_written, known)))
            raise ConfigError(f"{source}: there is no setting {_written(key)!r}; there are {names}")
        default, name = known[key].default, _written(key)
        if isinstance(default, tuple):
            if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                raise ConfigError(f"{source}: {name} must be a list of strings")
            out[key] = tuple(value)
        elif key == "redact_patterns":
            if not isinstance(value, Mapping) or not all(isinstance(item, str) for item in value.values()):
                raise ConfigError(f"{source}: {name} must be a table of name = regular expression")
            out[key] = dict(value)
        elif key == "prices":
            if not isinstance(value, Mapping) or not all(_is_price(item) for item in value.values()):
                raise ConfigError(
                    f"{source}: prices must be a table of model = {{input = 2.5, cached = 1, output = 10}}"
                )
            out[key] = {model: dict(item) for model, item in value.items()}
        elif key == "normalise":
            if not isinstance(value, Mapping) or not all(_is_normaliser(item) for item in value.values()):
                raise ConfigError(
                    f"{source}: normalise must be a table of name = {{path = '/…', pattern = '…', instead = '…', "
                    "kinds = ['…'], names = ['…']}, each with a path or a pattern"
                )
            out[key] = {rule: dict(item) for rule, item in value.items()}
        elif not isinstance(value, type(default)):
            raise ConfigError(f"{source}: {name} must be a {type(default).__name__}, not {value!r}")
        else:
            out[key] = value
    return out


def _written(key: str) -> str:
    """Return the name of a setting as it stands in a file; what the environment says is of the right form already."""
    return key.replace("redact_", "redact.", 1) if key.startswith("redact_") else key


def _is_price(item: Any) -> bool:
    return (
        isinstance(item, Mapping)
        and {"input", "output"} <= set(item) <= {"input", "cached", "output"}
        and all(type(amount) in (int, float) and amount >= 0 for amount in item.values())
    )


def _is_normaliser(item: Any) -> bool:
    return (
        isinstance(item, Mapping)
        and bool({"path", "pattern"} & set(item))
        and all(isinstance(value, _NORMALISER.get(name, ())) for name, value in item.items())
        and all(isinstance(one, str) for name in ("kinds", "names") for one in item.get(name, ()))
    )
