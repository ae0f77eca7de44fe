"""DuckDB: events in a table, rules as filters, some hundred in a query; the mean time for each event."""

import time

import duckdb
import numpy as np
import pyarrow as pa
from common import read, report
from memory import Memory

RULES_PER_QUERY = 500

if __name__ == "__main__":
    _, rules, events, _ = read()
    names = sorted({name for event in events for name in event})
    rows = pa.table({name: [event.get(name) for event in events] for name in names})
    memory = Memory()
    started = time.perf_counter()
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.execute("CREATE TABLE events AS SELECT * FROM rows")
    built = time.perf_counter()
    counts = np.zeros(len(events), dtype=int)
    for first in range(0, len(rules), RULES_PER_QUERY):
        some = rules[first : first + RULES_PER_QUERY]
        # One integer of every event: the rules that it satisfies.
        terms = " + ".join(f"coalesce(({rule})::INTEGER, 0)" for rule in some)
        answer = connection.execute(f"SELECT {terms} AS matches FROM events").fetchnumpy()
        counts += answer["matches"]
    each = (time.perf_counter() - built) * 1e6 / len(events)
    report(built - started, [each] * len(events), counts.tolist(), memory)
