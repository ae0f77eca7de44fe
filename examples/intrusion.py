"""Intrusion detection on generated logins: rules with memory, and a page with a chart of their alerts.

Three attacks are hidden in a day of ordinary traffic: one address tries many users (spraying), the password
of one user is guessed (brute force), and a session is used from another country soon after (hijacking).

    python examples/intrusion.py alerts.html
"""

import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import altair as alt

import tamis
from tamis.chart_page import page
from tamis.flow import Output

RULES = {
    # Many different users from one address, most of them failing.
    "spraying": "count(DISTINCT user WHERE NOT ok BY ip LAST 10m) >= 15",
    # Failures and then a success, all for one user.
    "brute force": "SEQUENCE (a: NOT ok){10,} THEN (b: ok) WITHIN 10 MINUTES BY user",
    # Two countries within half an hour; a flight takes longer.
    "hijacking": "country != lag(country WHERE ok BY user LAST 30m) AND ok",
    # Far more failures than usual.
    "storm": "count(* WHERE NOT ok LAST 5m) > 3 * count(* WHERE NOT ok LAST 1h) / 12 "
    "AND count(* WHERE NOT ok LAST 5m) > 60",
}
DAY = 86_400
COUNTRIES = ["CA", "FR", "JP", "BR"]


def traffic(seed: int = 1, users: int = 300, logins: int = 20_000) -> list[dict[str, Any]]:
    """A day of logins, with the attacks, in the order of time."""
    random_ = random.Random(seed)
    home = [random_.choice(COUNTRIES) for _ in range(users)]
    made = []
    for _ in range(logins):
        user = random_.randrange(users)
        address = f"10.0.{user // 250}.{user % 250}"
        event = {"ts": random_.uniform(0, DAY), "user": user, "ip": address, "country": home[user]}
        made.append({**event, "ok": random_.random() > 0.05, "attack": ""})
    for at in range(120):
        event = {"ts": 20_000 + at * 3, "user": at, "ip": "203.0.113.9", "country": "XX"}
        made.append({**event, "ok": False, "attack": "spraying"})
    for at in range(40):
        event = {"ts": 45_000 + at * 8, "user": 7, "ip": "198.51.100.4", "country": home[7]}
        made.append({**event, "ok": at == 39, "attack": "brute force"})
    for at, country in enumerate([home[42], "XX"]):
        event = {"ts": 70_000 + at * 300, "user": 42, "ip": f"192.0.2.{at}", "country": country}
        made.append({**event, "ok": True, "attack": "hijacking"})
    return sorted(made, key=lambda event: event["ts"])


def detect(logins: list[dict[str, Any]]) -> list[Output]:
    """What the rules tell of a day."""
    flow = tamis.Flow()
    flow.stream("logins", time="ts")
    for name, rule in RULES.items():
        flow.add(name, rule, on="logins")
    return flow.push_batch("logins", logins) + flow.advance(to=2 * DAY)


def chart(alerts: list[Output]) -> Any:
    """Alerts by rule and quarter of an hour."""
    counts = Counter(
        (alert.query, alert.time.replace(minute=alert.time.minute // 15 * 15, second=0)) for alert in alerts
    )
    rows = [
        {"rule": rule, "time": time.replace(microsecond=0).isoformat(), "alerts": count}
        for (rule, time), count in sorted(counts.items())
    ]
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_bar(size=6)
        .encode(x="time:T", y="alerts:Q", color="rule:N", row="rule:N")
        .properties(height=80, width=640)
    )


def main(path: Path) -> None:
    """Write the page."""
    logins = traffic()
    alerts = detect(logins)
    counts = Counter(alert.query for alert in alerts)
    rows = "".join(f"<tr><td>{name}</td><td>{counts[name]}</td></tr>" for name in RULES)
    sections = [f"<table><tr><th>rule</th><th>alerts</th></tr>{rows}</table>", chart(alerts)]
    lead = f"{len(logins):,} logins of a day through {len(RULES)} rules with memory."
    path.write_text(page("Intrusion detection", sections, lead=lead), encoding="utf-8")
    print(f"{sum(counts.values())} alerts, written to {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "alerts.html"))
