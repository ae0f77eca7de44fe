"""A stream with a schema: whatever a query names is checked against it, wherever it stands."""

import pytest

import tamis

SCHEMA = {"ts": "int", "user": "string", "amount": "float", "ok": "bool", "card": {"id": "int"}}


def flow() -> tamis.Flow:
    made = tamis.Flow()
    made.stream("s", time="ts", schema=SCHEMA)
    return made


@pytest.mark.parametrize(
    ("text", "unknown", "meant"),
    [
        ("count(* BY usr LAST 1m) > 3", "usr", "user"),
        ("count(*) OVER (PARTITION BY user, card.idd ROWS 5) > 3", "card.idd", "card.id"),
        ("count(* BY lower(usr) LAST 1m) > 3", "usr", "user"),
        ("sum(amuont BY user LAST 1m) > 3", "amuont", "amount"),
        ("count(DISTINCT amuont LAST 5 ROWS) > 3", "amuont", "amount"),
        ("count(* WHERE okk LAST 1m) > 3", "okk", "ok"),
        ("amuont > avg(amount BY user LAST 1m)", "amuont", "amount"),
        ("count(* LAST 1m) > 3 AND usr = 'ann'", "usr", "user"),
        ("SEQUENCE (a: ok) THEN (b: NOT ok) WITHIN 1m BY usr", "usr", "user"),
        ("SEQUENCE (a: ok) THEN (b: NOT ok) WITHIN 1m BY user, upper(usr)", "usr", "user"),
        ("SELECT x.ts FROM s RANGE 1m AS x JOIN s ROWS 1 AS y ON x.usr = y.usr", "usr", "user"),
    ],
)
def test_an_unknown_attribute_is_named_with_what_was_meant(text: str, unknown: str, meant: str) -> None:
    made = flow()
    with pytest.raises(tamis.ExpressionError) as refused:
        made.add("q", text)
    assert f"`{unknown}` is not in the schema" in str(refused.value)
    assert f"did you mean `{meant}`" in str(refused.value)
    # Nothing of it is left.
    assert len(made) == 0
    assert made.stats()["streams"]["s"]["selections"] == 0


@pytest.mark.parametrize(
    "text",
    [
        "count(* BY user, card.id LAST 1m) > 3",
        "count(* BY card LAST 1m) > 3",
        "amount > 2 * avg(amount WHERE ok BY lower(user) LAST 1m)",
        "max(ts LAST 1m) >= ts AND current_timestamp() > TIMESTAMP '2020-01-01'",
        "count(* WHERE ANY(all_strings()) LIKE '%x%' BY user LAST 1m) > 3",
        "SEQUENCE (a: ANY(all_strings()) LIKE '%x%') THEN (b: b.amount > a.amount) WITHIN 1m BY user",
        "SEQUENCE (a: ok) THEN (b: current_timestamp() > TIMESTAMP '2020-01-01') WITHIN 1m BY card.id",
    ],
)
def test_what_the_schema_knows_is_taken(text: str) -> None:
    made = flow()
    made.add("q", text)
    event = {"ts": 1, "user": "ann", "amount": 1.0, "ok": True, "card": {"id": 1}}
    assert isinstance(made.push("s", event), list)
