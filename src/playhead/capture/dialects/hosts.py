"""Know the provider by the host."""

from __future__ import annotations

_HOSTS = {
    "api.openai.com": "openai",
    "chatgpt.com": "openai",
    "openrouter.ai": "openrouter",
    "api.groq.com": "groq",
    "api.mistral.ai": "mistral",
    "codestral.mistral.ai": "mistral",
    "api.deepseek.com": "deepseek",
    "api.together.xyz": "together",
    "api.together.ai": "together",
    "api.x.ai": "xai",
    "api.fireworks.ai": "fireworks",
    "api.perplexity.ai": "perplexity",
    "api.cerebras.ai": "cerebras",
    "api.sambanova.ai": "sambanova",
    "api.cohere.ai": "cohere",
    "api.cohere.com": "cohere",
    "api.deepinfra.com": "deepinfra",
    "api.hyperbolic.xyz": "hyperbolic",
    "api.moonshot.ai": "moonshot",
    "api.moonshot.cn": "moonshot",
    "api.minimax.io": "minimax",
    "api.z.ai": "zai",
    "open.bigmodel.cn": "zai",
    "dashscope.aliyuncs.com": "alibaba",
    "dashscope-intl.aliyuncs.com": "alibaba",
    "integrate.api.nvidia.com": "nvidia",
    "router.huggingface.co": "huggingface",
    "models.github.ai": "github",
    "models.inference.ai.azure.com": "github",
    "api.githubcopilot.com": "github",
    "api.anthropic.com": "anthropic",
    "generativelanguage.googleapis.com": "google",
    "aiplatform.googleapis.com": "vertex",
    "ollama.com": "ollama",
}
_SUFFIXES = (
    (".api.openai.com", "openai"),  # regional: eu.api.openai.com
    (".openai.azure.com", "azure"),
    (".openai.azure.us", "azure"),
    (".cognitiveservices.azure.com", "azure"),
    (".services.ai.azure.com", "azure"),
    (".models.ai.azure.com", "azure"),
    ("-aiplatform.googleapis.com", "vertex"),  # us-central1-aiplatform.googleapis.com
    (".rep.googleapis.com", "vertex"),  # aiplatform.eu.rep.googleapis.com
    (".databricks.com", "databricks"),
    (".azuredatabricks.net", "databricks"),
    (".endpoints.huggingface.cloud", "huggingface"),
)
_PORTS = {"11434": "ollama"}


def provider_of(authority: str, family: str) -> str:
    """Return the provider behind `host[:port]`; the name of the family where the host is not known."""
    authority = authority.rpartition("@")[2].lower()
    host, colon, port = authority.rpartition(":")
    if not colon:
        host, port = authority, ""
    known = _HOSTS.get(host)
    if known is not None:
        return known
    if host.startswith("bedrock") and host.endswith((".amazonaws.com", ".api.aws")):
        return "bedrock"
    for suffix, name in _SUFFIXES:
        if host.endswith(suffix):
            return name
    return _PORTS.get(port, family)
