"""Note where a replay let somebody go on before one who was answered earlier had even asked."""

from __future__ import annotations

from typing import Any

from playhead import _limits
from playhead.replay.order import UNRECORDED_US, Order, Turn
from playhead.replay.tape import Tape

_WAITING_SHOWN = 10


class Stalls:
    """The places of one replay at which nobody else could go on."""

    def __init__(self, tape: Tape, order: Order) -> None:
        self._order = order
        self.found: list[dict[str, Any]] = []
        self._in_turn = iter(sorted(tape.calls, key=lambda call: call.ended_us))
        self._first_left = next(self._in_turn, None)  # of those that nobody has asked for, the first to be answered
        order.on_release = self._released

    def _released(self, turn: Turn) -> None:
        """Note where somebody goes on before one who was answered earlier has even asked: it may never."""
        while self._first_left is not None and self._first_left.taken:
            self._first_left = next(self._in_turn, None)
        left = self._first_left
        if left is not None and left.ended_us < turn.at_us and len(self.found) < _limits.STALLS_KEPT_MAX:
            known = self.found[-1]["waited_for"]["seq"] if self.found else None
            if known != left.seq and left.lane != turn.lane:  # a lane that asks something else waits for nobody
                let_go: dict[str, Any] = {"what": turn.what, "lane": turn.lane}
                if turn.at_us < UNRECORDED_US:
                    let_go["at_us"] = turn.at_us
                waited_for = {"seq": left.seq, "lane": left.lane, "kind": left.kind}
                others = [{"what": one.what, "lane": one.lane} for one in self._order.waiting()[:_WAITING_SHOWN]]
                self.found.append({"let_go": let_go, "waited_for": waited_for, "waiting": others})
