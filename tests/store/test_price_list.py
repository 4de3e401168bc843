from __future__ import annotations

import os
import random
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from genai_prices import Usage, calc_price, data_snapshot, update_prices

from playhead import _limits
from playhead.store import layout, price_list
from playhead.store.price_list import PriceList
from playhead.views.prices import Used, cost


def test_costs_are_those_of_the_package_for_every_model_size_and_moment() -> None:
    chance, compared = random.Random(7), 0
    for provider in data_snapshot.get_snapshot().providers:
        for model in provider.models[::9]:
            terms = price_list._terms(provider.id, model.id)
            if terms is None:
                continue
            size, out = chance.choice((10, 150_000, 250_000, 600_000)), chance.randrange(5000)
            usage = Usage(
                input_tokens=size, output_tokens=out, cache_read_tokens=size // 3, output_reasoning_tokens=out // 2
            )
            at_s = chance.randrange(1_700_000_000, 1_810_000_000)
            moment = datetime.fromtimestamp(at_s, UTC)
            said = calc_price(usage, model.id, provider_id=provider.id, genai_request_timestamp=moment).total_price
            mine = cost(terms, Used(size, out, size // 3, out // 2), at_s * 1_000_000)
            assert mine == pytest.approx(float(said)), (provider.id, model.id)
            compared += 1
    assert compared > 100


def test_times_of_day_and_dates_are_those_of_the_package() -> None:
    terms = price_list._terms("deepseek", "deepseek-reasoner")
    assert terms is not None
    for hour in range(24):
        moment = datetime(2025, 5, 1, hour, 45, tzinfo=UTC)
        said = calc_price(
            Usage(input_tokens=1000), "deepseek-reasoner", provider_id="deepseek", genai_request_timestamp=moment
        )
        assert cost(terms, Used(1000), int(moment.timestamp()) * 1_000_000) == pytest.approx(float(said.total_price))


@pytest.mark.parametrize(
    ("provider", "model", "like"),
    [
        ("openai", "gpt-5-2025-08-07", ("openai", "gpt-5")),
        ("openai", "GPT-5", ("openai", "gpt-5")),
        ("openai", "claude-sonnet-4-5", ("anthropic", "claude-sonnet-4-5")),  # a gateway that speaks like OpenAI
        ("openai", "anthropic/claude-sonnet-4-5", ("anthropic", "claude-sonnet-4-5")),
        ("", "gpt-5", ("openai", "gpt-5")),
        ("my-gateway", "openai/gpt-5", ("openai", "gpt-5")),
        ("google", "models/gemini-2.5-pro", ("google", "gemini-2.5-pro")),
        ("vertex", "publishers/google/models/gemini-2.5-pro", ("google", "gemini-2.5-pro")),
        ("vertex", "claude-sonnet-4-5@20250929", ("google", "claude-sonnet-4-5")),
        ("bedrock", "us.anthropic.claude-sonnet-4-20250514-v1:0", ("aws", "us.anthropic.claude-sonnet-4-20250514-v1:0")),
        ("azure", "gpt-4o-2024-08-06", ("azure", "gpt-4o")),
        ("xai", "grok-4", ("x-ai", "grok-4")),
    ],
)  # fmt: skip
def test_a_model_is_found_as_its_provider_and_gateways_name_it(
    provider: str, model: str, like: tuple[str, str]
) -> None:
    found = price_list._terms(provider, model)
    assert found == price_list._terms(*like) is not None


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("openai", "llama3"), ("openai", "ft:gpt-4o:me"), ("openai", ""), ("", ""),
        ("azure", "my-deployment"),  # nobody knows what that is
        ("ollama", "gpt-oss-20b"), ("github", "gpt-4o"),  # sold at prices that the package does not have
        ("my-gateway", "deepseek-chat"),  # anybody may run it, at any price
        ("openai", "gpt-4o-realtime-preview"), ("google", "gemini-2.5-flash-image"),  # sold by more than text
        ("openai", "whisper-1"),  # not by tokens
    ],
)  # fmt: skip
def test_what_nobody_knows_is_unknown(provider: str, model: str) -> None:
    assert PriceList()(provider, model) is None


def test_what_the_user_says_comes_before_the_package() -> None:
    mine = PriceList({"gpt-4o": {"input": 1, "output": 2}, "my-llama": {"input": 0, "cached": 0, "output": 0}})
    assert mine("openai", "gpt-4o-2024-08-06") == [{"input": [[0, 1]], "output": [[0, 2]]}]
    assert mine("ollama", "my-llama-70b") == [{"input": [[0, 0]], "cached": [[0, 0]], "output": [[0, 0]]}]
    assert mine("openai", "gpt-4o-mini") == mine("", "us.openai/gpt-4o-mini") == mine("openai", "gpt-4o")
    assert mine("openai", "gpt-5") == PriceList()("openai", "gpt-5") is not None


def test_the_beginning_of_a_name_is_no_name() -> None:
    mine = PriceList({"claude-opus-4": {"input": 1, "output": 2}})
    assert mine("anthropic", "claude-opus-4-20250514") == mine("anthropic", "claude-opus-4@x") is not None
    assert mine("anthropic", "claude-opus-4-7") != mine("anthropic", "claude-opus-4")


def test_what_the_package_said_is_kept_in_the_store_until_there_is_another_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terms = PriceList(root=tmp_path)("openai", "gpt-5")
    assert PriceList(root=tmp_path)("openai", "no-such-model") is None
    assert layout.prices(tmp_path).stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["prices.json"]
    monkeypatch.setattr(price_list, "_terms", lambda provider, model: pytest.fail("the package was asked"))
    again = PriceList(root=tmp_path)
    assert (again("openai", "gpt-5"), again("openai", "no-such-model")) == (terms, None)
    monkeypatch.setattr(PriceList, "_find_package", lambda self: "another")
    monkeypatch.setattr(price_list, "_terms", lambda provider, model: [{"input": [[0, 1.0]]}])
    assert PriceList(root=tmp_path)("openai", "gpt-5") == [{"input": [[0, 1.0]]}]


@pytest.mark.parametrize(
    "kept",
    [
        b"", b"{", b"[]", b'{"package": 5}', b'{"package": "P", "models": []}',
        *(b'{"package": "P", "models": {"openai gpt-5": %s}}' % terms for terms in (
            b"5", b"[]", b"[5]", b'[{"input": 1}]', b'[{"input": [[0]]}]', b'[{"input": [["a", 1.0]]}]',
            b'[{"since_us": "x"}]', b'[{"daily_us": [1]}]', b'[{"request": []}]',
        )),
    ],
)  # fmt: skip
def test_a_file_of_another_form_is_not_believed(tmp_path: Path, kept: bytes) -> None:
    sold = PriceList(root=tmp_path)
    layout.prices(tmp_path).write_bytes(kept.replace(b'"P"', b'"%s"' % sold._find_package().encode()))
    assert sold("openai", "gpt-5") == PriceList()("openai", "gpt-5")


def test_prices_are_known_where_nothing_can_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert PriceList(root=tmp_path / "none")("openai", "gpt-5") is not None
    assert not (tmp_path / "none").exists()
    layout.prices(tmp_path).mkdir()
    assert PriceList(root=tmp_path)("openai", "gpt-5") is not None
    assert os.listdir(tmp_path) == ["prices.json"]
    monkeypatch.setattr(_limits, "PRICED_MODELS_MAX", 1)
    layout.prices(tmp_path).rmdir()
    full = PriceList(root=tmp_path)
    assert [full("openai", name) is None for name in ("gpt-5", "gpt-5-mini")] == [False, False]
    assert b"gpt-5-mini" not in layout.prices(tmp_path).read_bytes()


def test_without_the_package_only_the_users_prices_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert PriceList().is_empty
    mine = PriceList({"gpt-5": {"input": 1, "output": 2}})
    assert not mine.is_empty
    assert mine("openai", "gpt-5") == [{"input": [[0, 1]], "output": [[0, 2]]}]
    assert mine("openai", "gpt-4o") is None


def test_nothing_is_fetched_from_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(update_prices.UpdatePrices, "start", lambda self, **options: pytest.fail("prices are fetched"))
    assert PriceList()("openai", "gpt-5-nano") is not None
    assert data_snapshot._custom_snapshot is None
