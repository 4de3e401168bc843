"""Answer requests: one module for each thing that is asked about."""

from playhead.server.routes import (
    appending,
    cassettes,
    comparing,
    contents,
    events,
    following,
    ingest,
    jobs,
    keys,
    meta,
    otlp,
    questions,
    runs,
    sessions,
    standing,
)

# In the order in which the API reference has them; each adds its routes when it is imported.
EVERY = (
    otlp, ingest, runs, standing, events, contents, following, appending, comparing, questions, cassettes, jobs, keys,
    sessions, meta,
)  # fmt: skip
