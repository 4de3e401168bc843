"""Say on which terms models are sold: as the user says, else as the package `genai-prices` does.

That package takes longer to load than most commands do, so what it says of a model is kept in the store, as long as it
is the same package. Nothing is fetched from anywhere: only what the package brings along is used. Terms are plain data;
views/prices.py has their form, and works with them.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from playhead import _limits
from playhead import settings as settings_module
from playhead.store import layout
from playhead.store.disk import Disk

Terms = list[dict[str, Any]]

INSTALL = "pip install 'playhead[prices]'"

_PACKAGE = "genai_prices"
_DAY_US = 86_400_000_000
_EPOCH = 719_163  # the ordinal of 1970-01-01

# How gateways write the same name: `openai/gpt-4o`, `models/gemini-2.5-pro`, `us.anthropic.claude-sonnet-4-…-v1:0`.
_BEFORE_NAME = re.compile(r".*/|([a-z]+\.)*anthropic\.")
# A name of the user's goes on with a date or a variant, not with another number: claude-opus-4 is not claude-opus-4-7.
_GOES_ON = re.compile(r"$|[@:]|-(?!\d{1,2}(-|@|:|$))")

# Whose models nobody else may run: where a gateway sells them, their price is what it asks for, about.
_MAKERS = frozenset({"openai", "anthropic", "google", "x-ai"})
# Who sells models of others at prices of its own, which the package does not have.
_SELLERS = frozenset({"alibaba", "deepinfra", "github", "huggingface", "hyperbolic", "nvidia", "ollama", "sambanova"})
# Such tokens are not counted apart, and are sold at quite another price.
_NO_TEXT = ("output_audio_mtok", "output_image_mtok", "output_video_mtok")
_RATES = {
    "input": "input_mtok",
    "cached": "cache_read_mtok",
    "output": "output_mtok",
    "reasoning": "output_reasoning_mtok",
}


class PriceList:
    """What models are sold for. It is a function of the provider and the model; None where nobody knows."""

    def __init__(self, own: Mapping[str, Mapping[str, float]] | None = None, root: Path | None = None) -> None:
        """Take the user's own prices, and the store in which is kept what the package says."""
        self._own = {name: [_own_tariff(item)] for name, item in (own or {}).items()}
        self._root = root
        self._known: dict[tuple[str, str], Terms | None] = {}
        self._package: str | None = None
        self._kept: dict[str, Terms | None] | None = None

    @property
    def is_empty(self) -> bool:
        """Say whether it has no price at all: the package is not installed, and the user says nothing."""
        return not self._own and not self._find_package()

    def knows(self, asked: str) -> bool:
        """Say whether a model has a price, as policies write it: `openai/gpt-5`, or its name alone."""
        provider, slash, model = asked.partition("/")
        return bool(self(provider, model) if slash else self(None, asked))

    @property
    def is_whole(self) -> bool:
        """Say whether the package is installed: else it has what the user says alone."""
        return bool(self._find_package())

    @property
    def to_know_more(self) -> str:
        """Say how a model gets a price that has none."""
        install = "" if self.is_whole else f"`{INSTALL}`, or "
        return f"{install}say what it costs under [prices] in playhead.toml"

    def __call__(self, provider: str | None, model: str) -> Terms | None:
        """Return the terms of a model."""
        asked = provider or "", model
        if asked not in self._known:
            own = self._own_terms(model)
            self._known[asked] = self._listed(*asked) if own is None else own
        return self._known[asked]

    def _own_terms(self, model: str) -> Terms | None:
        if model in self._own:
            return self._own[model]
        name = _BEFORE_NAME.sub("", model.lower())
        fitting = [known for known in self._own if name.startswith(known) and _GOES_ON.match(name, len(known))]
        return self._own[max(fitting, key=len)] if fitting else None

    def _listed(self, provider: str, model: str) -> Terms | None:
        package = self._find_package()
        if not package or not model:
            return None
        if self._kept is None:
            self._kept = {} if self._root is None else _read(layout.prices(self._root), package)
        asked = f"{provider} {model}"
        if asked not in self._kept:
            self._kept[asked] = _terms(provider, model)
            self._keep(package)
        return self._kept[asked]

    def _find_package(self) -> str:
        """Return which package is installed, without loading it; empty where none is."""
        if self._package is None:
            from importlib.util import find_spec

            spec = find_spec(_PACKAGE)
            self._package = ""
            if spec is not None and spec.origin is not None:
                data = Path(spec.origin).with_name("data.py")
                facts = os.stat(data if data.exists() else spec.origin)
                self._package = f"{facts.st_size} {facts.st_mtime_ns}"
        return self._package

    def _keep(self, package: str) -> None:
        if self._root is None or not self._root.is_dir() or len(self._kept or ()) > _limits.PRICED_MODELS_MAX:
            return
        path, disk = layout.prices(self._root), Disk()
        aside = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
        try:
            descriptor = disk.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            try:
                disk.write_all(descriptor, orjson.dumps({"package": package, "models": self._kept}))
            finally:
                os.close(descriptor)
            disk.replace(aside, path)
        except OSError:  # it is asked again the next time
            with contextlib.suppress(OSError):
                os.unlink(aside)


def price_list_at(root: object) -> PriceList:
    """Return the price list in force; what it learns is kept in the store, where that is a folder."""
    return PriceList(settings_module.load().prices, root if isinstance(root, Path) else None)


def price_list_of(store: Any) -> PriceList:
    """Return the price list for runs of a store; what it learns is kept in the one in force, where that is none."""
    from playhead.store.files import FileStore  # here: a list of runs does not need it

    settings = settings_module.load()
    return PriceList(settings.prices, store.root if type(store) is FileStore else settings.store_folder())


def _own_tariff(item: Mapping[str, float]) -> dict[str, Any]:
    return {name: [[0, amount]] for name, amount in item.items()}


def _read(path: Path, package: str) -> dict[str, Terms | None]:
    """Return what was kept, if it is from this package and of the right form."""
    try:
        kept = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return {}
    models = kept.get("models") if type(kept) is dict and kept.get("package") == package else None
    if type(models) is not dict:
        return {}
    return {asked: terms for asked, terms in models.items() if terms is None or _are_terms(terms)}


def _are_terms(terms: Any) -> bool:
    return type(terms) is list and bool(terms) and all(type(tariff) is dict and _is_tariff(tariff) for tariff in terms)


def _is_tariff(tariff: dict[str, Any]) -> bool:
    daily_us = tariff.get("daily_us", [0, 0])
    return (
        type(tariff.get("since_us", 0)) is int
        and type(daily_us) is list
        and [type(at) for at in daily_us] == [int, int]
        and type(tariff.get("request", 0.0)) is float
        and all(_is_rate(tariff[name]) for name in _RATES if name in tariff)
    )


def _is_rate(rate: Any) -> bool:
    return type(rate) is list and bool(rate) and all(
        type(step) is list and [type(part) for part in step] == [int, float] for step in rate
    )  # fmt: skip


def _terms(provider: str, model: str) -> Terms | None:
    """Ask the package."""
    from genai_prices import Usage, calc_price

    for seller, name in _ways(provider, model):
        try:
            found = calc_price(Usage(input_tokens=1), name, provider_id=seller)
        except LookupError:
            continue
        if provider and seller != provider and found.provider.id not in _MAKERS:
            continue  # anybody may run such a model, at any price
        return _tariffs(found.model.prices)
    return None


def _ways(provider: str, model: str) -> Iterator[tuple[str | None, str]]:
    """Yield whom to look for, and by which name: as it was asked, then as the maker of the model sells it."""
    maker, slash, rest = model.partition("/")
    names = [model, model.rpartition("/")[2]] if slash else [model]
    for name in names if provider else ():
        yield provider, name
    if provider in _SELLERS:
        return
    if maker and rest:
        yield maker, rest
    for name in names:
        yield None, name


def _tariffs(prices: Any) -> Terms | None:
    """Return the terms of a model of the package; None where it is not sold by tokens of text."""
    out = []
    every: list[tuple[Any, Any]] = [(None, prices)]
    if isinstance(prices, list):
        every = [(one.constraint, one.prices) for one in prices]
    for constraint, price in every:
        if price.input_mtok is None and price.output_mtok is None:
            return None
        if any(getattr(price, name) is not None for name in _NO_TEXT):
            return None
        tariff: dict[str, Any] = {
            name: _rate(amount) for name, field in _RATES.items() if (amount := getattr(price, field)) is not None
        }
        if (per_thousand := price.requests_kcount) is not None:
            tariff["request"] = float(getattr(per_thousand, "base", per_thousand)) / 1000
        if hasattr(constraint, "start_date"):
            tariff["since_us"] = (constraint.start_date.toordinal() - _EPOCH) * _DAY_US
        elif hasattr(constraint, "start_time"):
            tariff["daily_us"] = [_time_us(constraint.start_time), _time_us(constraint.end_time)]
        out.append(tariff)
    return out


def _rate(price: Any) -> list[list[float]]:
    steps = getattr(price, "tiers", ())
    return [[0, float(getattr(price, "base", price))], *([step.start, float(step.price)] for step in steps)]


def _time_us(time: Any) -> int:
    """Return a time of day, in microseconds since midnight, UTC."""
    offset = time.utcoffset()
    past_us: int = ((time.hour * 60 + time.minute) * 60 + time.second) * 1_000_000 + time.microsecond
    return (past_us - (0 if offset is None else int(offset.total_seconds()) * 1_000_000)) % _DAY_US
