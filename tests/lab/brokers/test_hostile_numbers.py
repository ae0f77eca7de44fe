"""Numbers that nobody can compare: they are refused, and the broker goes on."""

import json
import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tamis_lab.brokers import inputs as i
from tamis_lab.brokers.effects import Reply
from tamis_lab.brokers.machine import Broker
from tamis_lab.brokers.messages import MOST_NUMBER, Frame, ProtocolError
from tamis_lab.brokers.options import Limits
from tamis_lab.brokers.shedding import Shedding

counts = st.integers(0, 3) | st.sampled_from([MOST_NUMBER, MOST_NUMBER + 1, -1, True, math.nan, 1.0])


@given(st.lists(counts, min_size=4, max_size=4), st.sampled_from(["Barrier", "Settled", "Forward"]), counts)
def test_frames_have_numbers_that_can_be_compared(head: list[Any], kind: str, number: Any) -> None:
    more = ["{}", None, False, "b1/ann/1"] if kind == "Forward" else []
    try:
        frame = Frame.from_json([*head, kind, number, *more])
    except ProtocolError:
        return
    read = [frame.sender_epoch, frame.receiver_epoch, frame.number, frame.acknowledged, number]
    assert all(type(count) is int and 0 <= count <= MOST_NUMBER for count in read)


priorities = st.sampled_from([1.0, 2.0, 3.0, math.nan, math.inf, -math.inf, 10**400, -(10**400)])


@given(st.lists(st.tuples(priorities | st.none(), st.integers(0, 9))), st.integers(0, 30))
def test_shedding_keeps_its_order_whatever_the_priorities(steps: list[Any], waiting: int) -> None:
    """What an older broker has stored may hold any float."""
    shedding = Shedding(Limits(shed_from=10, shed_all=20))
    shedding.waiting = waiting
    held: list[float] = []
    for priority, place in steps:
        if priority is not None:
            shedding.add(priority)
            held.append(priority)
        elif held:
            shedding.remove(held.pop(place % len(held)))
        ranked = sorted(held, key=lambda priority: (priority == priority, priority))  # noqa: PLR0124
        served = [shedding.serves(priority) for priority in ranked]
        assert served == sorted(served), "no priority is served while a higher one is not"
        assert all(served[-1:]), "the highest is always served"


def test_a_store_of_before_may_hold_a_priority_that_is_no_number() -> None:
    stored = {
        f"subscription/ann/{id}": ["x = 1", None, priority]
        for id, priority in (("two", 2.0), ("odd", math.nan), ("one", 1.0))
    }
    broker = Broker("b1", [], stored=json.loads(json.dumps(stored)))
    broker.handle(i.Start(), now=0.0)
    for request, id in enumerate(["odd", "two", "one"], 1):
        effects = broker.handle(i.Unsubscribe("ann", request, id), now=0.0)
        assert Reply("ann", request) in effects
