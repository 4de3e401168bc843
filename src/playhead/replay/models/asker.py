"""Ask models in the world, and keep count: how many questions, what they cost, whether the budget is spent."""

from __future__ import annotations

import http.client
import threading
import urllib.error
import urllib.request
from typing import Any, NamedTuple

from playhead import _limits
from playhead._clock import SystemClock
from playhead.capture import dialects
from playhead.replay.models.overrides import Asked, Overrides, elsewhere
from playhead.views.prices import Bill, Prices, Used, money

# What belongs to one connection, and not to the question; and how it may be packed, which we would have to unpack.
_HOP = frozenset(
    {"host", "content-length", "connection", "transfer-encoding", "keep-alive", "te", "upgrade", "expect"}
    | {"accept-encoding"}
)


class Came(NamedTuple):
    """What came back: a head and a body, or why nothing did."""

    status: int | None
    reason: str
    headers: list[tuple[str, str]]
    body: bytes
    problem: str = ""


class BudgetSpent(Exception):
    """No more is to be asked."""


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows nobody elsewhere: a key may not be for there."""

    def redirect_request(self, *args: Any, **options: Any) -> None:
        return None


class Asker:
    """Puts questions to models, at most so many at once."""

    def __init__(
        self,
        overrides: Overrides | None = None,
        *,
        budget: float | None = None,
        at_once: int = _limits.MODELS_AT_ONCE,
        prices: Prices | None = None,
    ) -> None:
        """`budget` is in dollars: what is asked once it is spent is refused."""
        self.overrides = overrides or Overrides()
        self.bill = Bill(prices)
        self.count = 0
        self.refused = 0  # for the budget
        self.unreached = 0
        self._budget = budget
        self._slots = threading.BoundedSemaphore(max(1, at_once))
        self._lock = threading.Lock()
        self._opener = urllib.request.build_opener(_Stay)
        if self.overrides.base_url is not None:
            elsewhere("http://h/", self.overrides.base_url)  # says what is wrong with it

    @property
    def cost(self) -> float | None:
        """Return what the answers cost so far, as far as that is known."""
        return self.bill.amount

    def ask(self, asked: Asked) -> Came:
        """Put one question, and wait for its answer; BudgetSpent where no more is to be asked."""
        changed = self.overrides.applied(asked)
        with self._slots:
            with self._lock:
                if self._budget is not None and (self.bill.amount or 0.0) >= self._budget:
                    self.refused += 1
                    raise BudgetSpent(f"the budget of {money(self._budget)} is spent")
                self.count += 1
            came = self._sent(changed)
        self.unreached += came.status is None
        self._count(changed, came)
        return came

    def _sent(self, asked: Asked) -> Came:
        headers = {name: value for name, value in asked.headers if name.lower() not in _HOP}
        request = urllib.request.Request(asked.url, data=asked.body, headers=headers, method=asked.method)
        try:
            with self._opener.open(request, timeout=_limits.MODEL_ANSWER_S) as answer:
                return _came(answer)
        except urllib.error.HTTPError as answer:
            with answer:
                return _came(answer)
        except (OSError, http.client.HTTPException) as problem:
            reason = getattr(problem, "reason", problem)
            return Came(None, "", [], b"", f"{asked.url} was not reached: {reason}")

    def _count(self, asked: Asked, came: Came) -> None:
        """Add up what an answer cost."""
        found = dialects.find(asked.method, asked.url)
        if found is None or came.status is None or came.status >= 400:
            return
        media = next((value for name, value in came.headers if name.lower() == "content-type"), "")
        told = dialects.documents(came.body, media)
        answered = None if told is None else found[0].answered(*told)
        usage = None if answered is None else answered.usage
        if answered is not None and usage is not None:
            model = answered.model or found[0].asked({}, dialects.split(asked.url)[1]).model or ""
            counts = [amount or 0 for amount in (usage.input, usage.output, usage.cached, usage.reasoning)]
            with self._lock:
                self.bill.add(found[1], model, Used(*counts), SystemClock().wall_us())


def _came(answer: Any) -> Came:
    status = answer.status if answer.status is not None else answer.code
    pairs = [(str(name), str(value)) for name, value in answer.headers.items()]
    try:
        body = answer.read()
    except http.client.IncompleteRead as cut:
        body = cut.partial
    return Came(status, answer.reason or "", pairs, body)
