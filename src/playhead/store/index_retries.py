"""Ask the index which questions to models, and which steps, came once more after they had failed.

The rules are those of views/retries.py. The last end before each beginning is found in one pass over both, in order.
"""

from __future__ import annotations

# Of a table `c` of what began: its group `g`, run, seq, end_seq, status, and by what two are attempts at the same.
_MOMENTS = """moments AS (
  SELECT *, seq AS at, 0 AS ended, 0 AS failed FROM c
  UNION ALL SELECT *, end_seq, 1, ifnull(status, 'ok') <> 'ok' FROM c WHERE end_seq IS NOT NULL)"""
_LAST = "max(CASE WHEN ended THEN 2 * at + failed END)"  # the last end so far, and in its last bit whether it failed
_SO_FAR = "ORDER BY at ROWS UNBOUNDED PRECEDING"

MODELS = f"""WITH c AS ({{}}), {_MOMENTS}, asked AS (
  SELECT g, ended, said, taped, key, {_LAST} OVER (PARTITION BY run, provider, key {_SO_FAR}) AS last FROM moments)
SELECT g, count(*) FROM asked WHERE NOT ended AND NOT taped AND (said OR (key IS NOT NULL AND last % 2)) GROUP BY g"""

STEPS = f"""WITH c AS ({{}}), {_MOMENTS}, tried AS (
  SELECT g, ended, said, {_LAST} OVER lane AS own, {_LAST} OVER place AS other,
    sum(CASE WHEN ended THEN -1 ELSE 1 END) OVER place AS open
  FROM moments
  WINDOW lane AS (PARTITION BY run, parent, name, lane {_SO_FAR}), place AS (PARTITION BY run, parent, name {_SO_FAR}))
SELECT g, count(*) FROM tried
WHERE NOT ended AND said AND CASE WHEN own IS NULL THEN open = 1 AND other % 2 ELSE own % 2 END GROUP BY g"""
