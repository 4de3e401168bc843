"""Wrap functions of any sort in spans: plain ones, coroutines, generators, asynchronous generators.

In a replay a span may have the outcome already. Then the function is not called: what it gave back is handed back, what
it raised is raised, what it yielded is yielded, each at its recorded turn.
"""

from __future__ import annotations

import collections
import functools
import inspect
import types
from collections.abc import Callable
from types import CoroutineType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from playhead.capture.scope import live

if TYPE_CHECKING:
    from playhead.capture.spans import Span

P = ParamSpec("P")
R = TypeVar("R")


def around(
    function: Callable[P, R],
    make: Callable[[tuple[Any, ...], dict[str, Any]], Span],
    returned: Callable[[Any, Any], None],
) -> Callable[P, R]:
    """Wrap a function of any sort (plain, async, generator, async generator) in a span for each call."""
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def asynchronous(*args: Any, **kwargs: Any) -> Any:
            if _idle(make):
                return await function(*args, **kwargs)
            with make(args, kwargs) as span:
                answer = span.taped()
                if answer is not None:
                    return await answer.instead_of_async(function, args, kwargs)
                running = function(*args, **kwargs)
                result = await (_watched(running, span) if span.watches_waiting else running)
                returned(span, result)
                return result

        return cast("Callable[P, R]", asynchronous)
    if inspect.isgeneratorfunction(function):
        return cast("Callable[P, R]", _around_generator(function, make, returned))
    if inspect.isasyncgenfunction(function):
        return cast("Callable[P, R]", _around_async_generator(function, make, returned))

    @functools.wraps(function)
    def plain(*args: Any, **kwargs: Any) -> Any:
        if _idle(make):
            return function(*args, **kwargs)
        with make(args, kwargs) as span:
            answer = span.taped()
            if answer is not None:
                return answer.instead_of(function, args, kwargs)
            result = function(*args, **kwargs)
            returned(span, result)
            return result

    return cast("Callable[P, R]", plain)


def _idle(make: Callable[..., Any]) -> bool:
    return live() is None and not getattr(make, "starts_run", False)


@types.coroutine
def _watched(inner: Any, span: Span) -> Any:
    """Await something, and note whether it let the event loop go on meanwhile; a replay does likewise."""
    if not isinstance(inner, CoroutineType):
        return (yield from inner.__await__())
    resume, value = inner.send, None
    while True:
        try:
            waiting = resume(value)
        except StopIteration as stop:
            return stop.value
        span.waited = True
        try:
            value = yield waiting
            resume = inner.send
        except GeneratorExit:
            inner.close()
            raise
        except BaseException as error:
            resume, value = inner.throw, error


def _around_generator(function: Any, make: Any, returned: Any) -> Any:
    @functools.wraps(function)
    def generator(*args: Any, **kwargs: Any) -> Any:
        if _idle(make):
            return (yield from function(*args, **kwargs))
        span = make(args, kwargs)
        span.begin()
        items = _kept(span)
        answer = span.taped()
        try:
            inner = function(*args, **kwargs) if answer is None else answer.generated()
            result = yield from _noting(inner, span, items)
            _yielded(span, items, returned, result)
        except BaseException as error:
            _yielded(span, items, returned)
            span.end(error)
            raise
        span.end()
        return result

    return generator


def _kept(span: Span) -> list[Any] | collections.deque[Any]:
    return [] if span.keeps_items else collections.deque(maxlen=0)


def _yielded(span: Any, items: Any, returned: Any, result: Any = None) -> None:
    span.chunks = len(items)
    returned(span, items if result is None else {"yielded": items, "returned": result})


def _noting(inner: Any, span: Span, items: Any) -> Any:
    """Pass everything through, in both directions, and keep what was yielded."""
    resume, value = inner.send, None
    while True:
        try:
            with span.current():
                item = resume(value)
        except StopIteration as stop:
            return stop.value
        items.append(item)
        span.yielded += 1
        try:
            value = yield item
            resume = inner.send
        except GeneratorExit:
            with span.current():
                inner.close()
            raise
        except BaseException as error:
            resume, value = inner.throw, error


def _around_async_generator(function: Any, make: Any, returned: Any) -> Any:
    @functools.wraps(function)
    async def generator(*args: Any, **kwargs: Any) -> Any:
        if _idle(make):
            async for item in function(*args, **kwargs):
                yield item
            return
        span = make(args, kwargs)
        span.begin()
        items = _kept(span)
        answer = span.taped()
        inner = function(*args, **kwargs) if answer is None else answer.generated_async()
        resume, value = inner.asend, None
        try:
            while True:
                try:
                    with span.current():
                        item = await resume(value)
                except StopAsyncIteration:
                    break
                items.append(item)
                span.yielded += 1
                try:
                    value = yield item
                    resume = inner.asend
                except GeneratorExit:
                    with span.current():
                        await inner.aclose()
                    raise
                except BaseException as error:
                    resume, value = inner.athrow, error
        except BaseException as error:
            _yielded(span, items, returned)
            span.end(error)
            raise
        _yielded(span, items, returned)
        span.end()

    return generator
