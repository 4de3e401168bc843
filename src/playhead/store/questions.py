"""Keep the six documented questions across runs. docs/reference/index-tables.md explains them; a test compares."""

from __future__ import annotations

from typing import NamedTuple


class Question(NamedTuple):
    """A query with a name. `parameters` are filled in by whoever asks."""

    about: str
    sql: str
    parameters: tuple[str, ...] = ()


QUESTIONS = {
    "slowest-tools": Question(
        "which tools take the time",
        """
SELECT name,
       count(*)                          AS calls,
       round(avg(latency_us) / 1000.0, 3) AS mean_ms,
       max(latency_us) / 1000.0          AS worst_ms,
       sum(status = 'error')             AS errors
FROM calls
WHERE kind = 'tool' AND latency_us IS NOT NULL
GROUP BY name
ORDER BY avg(latency_us) DESC, name
LIMIT 20
""",
    ),
    "denied-capabilities": Question(
        "what agents asked for and did not get",
        """
SELECT capability,
       resource,
       rule,
       count(*)            AS times,
       count(DISTINCT run) AS runs
FROM policy_checks
WHERE decision = 'deny'
GROUP BY capability, resource, rule
ORDER BY times DESC, capability, resource, rule
""",
    ),
    "tokens-by-model": Question(
        "where the tokens go",
        """
SELECT provider,
       model,
       count(*)                           AS calls,
       coalesce(sum(status = 'error'), 0) AS errors,
       coalesce(sum(tokens_in), 0)        AS tokens_in,
       coalesce(sum(tokens_out), 0)       AS tokens_out,
       coalesce(sum(tokens_cached), 0)    AS tokens_cached,
       coalesce(sum(tokens_reasoning), 0) AS tokens_reasoning
FROM calls
WHERE kind = 'model'
GROUP BY provider, model
ORDER BY coalesce(sum(tokens_in), 0) + coalesce(sum(tokens_out), 0) DESC, provider, model
""",
    ),
    "steps-by-success-rate": Question(
        "which steps fail most",
        """
SELECT name,
       count(*)                                             AS times,
       coalesce(sum(status = 'ok'), 0)                      AS ok,
       sum(status IS NULL)                                  AS unfinished,
       round(1.0 * sum(status = 'ok') / count(status), 3)   AS success_rate
FROM steps
GROUP BY name
ORDER BY success_rate, times DESC, name
""",
    ),
    "runs-touching-a-file": Question(
        "which runs wrote, renamed, deleted or committed a file",
        """
SELECT runs.id,
       runs.name,
       runs.started,
       effects.what,
       effects.target,
       effects.seq
FROM effects
JOIN runs ON runs.id = effects.run
WHERE effects.what LIKE 'file.%'
  AND (effects.target = :file OR substr(effects.target, -length('/' || :file)) = '/' || :file)
ORDER BY runs.id DESC, effects.seq, effects.item
""",
        ("file",),
    ),
    "runs-reading-a-file": Question(
        "which runs read a file, and which version of it",
        """
SELECT runs.id,
       runs.name,
       runs.started,
       reads.target,
       json_extract(reads.detail, '$.digest') AS digest,
       sum(reads.times)                       AS times
FROM reads
JOIN runs ON runs.id = reads.run
WHERE reads.source IN ('open', 'sqlite3.connect')
  AND (reads.target = :file OR substr(reads.target, -length('/' || :file)) = '/' || :file)
GROUP BY runs.id, reads.target, digest
ORDER BY runs.id DESC, min(reads.seq), reads.target
""",
        ("file",),
    ),
}
