"""Places: circles on the sphere and polygons, found by a tree of boxes as they are one by one."""

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis import within_distance, within_polygon

RADIUS = 6_371_008.8


def distance(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Metres between two points, by the vectors that lead to them."""

    def vector(point: tuple[float, float]) -> tuple[float, float, float]:
        lat, lon = map(math.radians, point)
        return math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat)

    return RADIUS * 2 * math.asin(min(1.0, math.dist(vector(a), vector(b)) / 2))


def inside(point: tuple[int, int], ring: list[tuple[int, int]]) -> bool:
    """Whether a point (x, y) is in a ring or on it, in exact numbers."""
    x, y = point
    is_inside = False
    for (ax, ay), (bx, by) in zip(ring, ring[1:] + ring[:1], strict=True):
        on_line = (bx - ax) * (y - ay) == (by - ay) * (x - ax)
        if on_line and min(ax, bx) <= x <= max(ax, bx) and min(ay, by) <= y <= max(ay, by):
            return True
        if (ay > y) != (by > y) and ax + Fraction((y - ay) * (bx - ax), by - ay) > x:
            is_inside = not is_inside
    return is_inside


LATITUDES = st.integers(-90, 90) | st.floats(-90, 90)
LONGITUDES = st.integers(-180, 180) | st.floats(-180, 180) | st.sampled_from([180.0, -180.0, 179.99, -179.99])
CIRCLES = st.tuples(LATITUDES, LONGITUDES, st.sampled_from([0, 1, 1500, 1e5, 2e6, 1.2e7, 2.1e7]))


def checked(index: tamis.Index, expressions: list[tamis.Expression], event: dict[str, Any]) -> list[int]:
    truths = [number for number, one in enumerate(expressions) if one.evaluate(event)]
    assert index.match(event) == truths
    assert [row["subscription"] for row in index.match_batch([event]).to_pylist()] == truths
    return truths


@given(st.lists(CIRCLES, min_size=1, max_size=40), st.lists(st.tuples(LATITUDES, LONGITUDES), max_size=5))
@settings(max_examples=60)
def test_circles(circles: list[Any], points: list[tuple[float, float]]) -> None:
    built = [within_distance("lat", "lon", *circle) for circle in circles]
    expressions = [one.__tamis_expression__() for one in built] + [~one for one in built[:3]]
    index = tamis.Index()
    index.add_many(range(len(expressions)), expressions)
    for lat, lon in [*points, *((lat, lon) for lat, lon, _ in circles[:5])]:
        found = checked(index, expressions, {"lat": lat, "lon": lon})
        for number, (centre_lat, centre_lon, metres) in enumerate(circles):
            apart = distance((lat, lon), (centre_lat, centre_lon))
            if abs(apart - metres) > 1:
                assert (number in found) == (apart <= metres)


CORNERS = st.tuples(st.integers(-6, 6), st.integers(-6, 6))


@given(
    st.lists(st.lists(CORNERS, min_size=3, max_size=6), min_size=1, max_size=12),
    st.lists(CORNERS, min_size=1),
)
@settings(max_examples=60)
def test_polygons(rings: list[list[tuple[int, int]]], points: list[tuple[int, int]]) -> None:
    texts = [", ".join(f"{x} {y}" for x, y in [*ring, ring[0]]) for ring in rings]
    expressions = [tamis.parse(f"within_polygon(lat, lon, 'POLYGON(({text}))')") for text in texts]
    index = tamis.Index()
    index.add_many(range(len(expressions)), expressions)
    for x, y in points:
        found = checked(index, expressions, {"lat": y, "lon": x})
        assert found == [number for number, ring in enumerate(rings) if inside((x, y), ring)]


def test_text_json_and_snapshot(tmp_path: Path) -> None:
    for built, text in [
        (within_distance("lat", "lon", 52.52, 13.4, 1500), "within_distance(lat, lon, 52.52, 13.4, 1500)"),
        (
            within_polygon(tamis.col("at.lat"), "lon", "POLYGON((0 0, 1 0, 0 1, 0 0))"),
            "within_polygon(at.lat, lon, 'POLYGON((0 0, 1 0, 0 1, 0 0))')",
        ),
    ]:
        expression = tamis.parse(text)
        assert built.__tamis_expression__() == expression
        assert str(expression) == text
        assert tamis.Expression.from_json(expression.to_json()) == expression
        with pytest.raises(tamis.ExpressionError, match="no text"):
            expression.to_sql("spark")
    index = tamis.Index()
    index.add("near", "within_distance(lat, lon, 52.52, 13.4, 1500) AND open")
    index.save(tmp_path / "rules.tamis")
    event = {"lat": 52.52, "lon": 13.4, "open": True}
    assert tamis.Index.open(tmp_path / "rules.tamis").match(event) == ["near"]
    assert index.explain("near", event).matches
    assert "within_distance" in str(index.why_not("near", {**event, "lat": 0}))
    assert index.match({**event, "lat": tamis.Interval(50, 60)}) == []


def test_inside_a_quantifier() -> None:
    expression = tamis.parse("exists(stops, s -> within_distance(s.lat, s.lon, 0, 0, 1000) AND s.open)")
    index = tamis.Index()
    index.add("a", expression)
    stops = [{"lat": 0.001, "lon": 0.001, "open": True}, {"lat": 5, "lon": 5, "open": True}]
    assert index.match({"stops": stops}) == ["a"]
    assert index.match({"stops": stops[1:]}) == []
