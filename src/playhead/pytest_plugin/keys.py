"""Let clients of providers be made where they are not asked: they want a key, and whoever replays may have none."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator

PLACEHOLDER = "playhead-placeholder"
# Where it is not the name of the provider and `_API_KEY`: any of these is enough, and the first is set.
_NAMES = {
    "alibaba": ("DASHSCOPE_API_KEY",),
    "azure": ("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"),
    "cohere": ("CO_API_KEY", "COHERE_API_KEY"),
    "databricks": ("DATABRICKS_TOKEN",),
    "github": ("GITHUB_TOKEN",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "huggingface": ("HF_TOKEN",),
    "bedrock": (),  # these know their user by other means
    "ollama": (),
    "vertex": (),
}


@contextlib.contextmanager
def placeholders(providers: Iterable[str]) -> Iterator[None]:
    """Set the variable for the key of each provider that has none, for a while."""
    given = []
    for provider in sorted(set(providers)):
        names = _NAMES.get(provider, (f"{provider.upper()}_API_KEY",))
        if names and not any(os.environ.get(name) for name in names):
            given.append((names[0], os.environ.get(names[0])))
            os.environ[names[0]] = PLACEHOLDER
    try:
        yield
    finally:
        for name, before in given:
            if os.environ.get(name) == PLACEHOLDER:  # else the test has set it itself
                os.environ.pop(name)
                if before is not None:
                    os.environ[name] = before
