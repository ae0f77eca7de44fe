"""Rules with memory: continuous queries over streams of events.

A flow holds queries that look at more than one event: how often something happened in ten minutes, or what
followed what. `docs/flows.md` defines their meaning.

>>> import tamis
>>> flow = tamis.Flow()
>>> flow.stream("logins", time="ts")
>>> flow.add("burst", "count(* WHERE NOT ok BY user LAST 10m) >= 3 AND country != 'FR'", on="logins")
>>> for second in (0, 60, 120, 721):
...     for out in flow.push("logins", {"ts": second, "user": "ann", "ok": False, "country": "CA"}):
...         print(out.query, out.kind, out.time.isoformat(), list(out.row.values()))
burst + 1970-01-01T00:02:00+00:00 [3]
"""

from tamis.flow.flow import Flow
from tamis.flow.output import Output

__all__ = ["Flow", "Output"]
