"""Who waits until something has spread, and what an answer of a neighbour sets free."""

import pytest

from tamis_lab.brokers.messages import Barrier, Message
from tamis_lab.brokers.settling import Settling


def settling_of(*neighbours: str) -> tuple[Settling, list[tuple[str, Message]]]:
    said: list[tuple[str, Message]] = []
    return Settling(neighbours, lambda neighbour, message: said.append((neighbour, message))), said


def tell(settling: Settling, *neighbours: str) -> None:
    for neighbour in neighbours:
        settling.told(neighbour)


def test_nobody_waits_for_what_was_not_told() -> None:
    settling, said = settling_of("b2", "b3")
    done: list[str] = []
    settling.when_settled(None, lambda: done.append("at once"))
    assert (done, said, settling.idle) == (["at once"], [], True)


def test_one_wait_needs_all_its_neighbours_in_any_order() -> None:
    settling, said = settling_of("b2", "b3")
    done: list[str] = []
    tell(settling, "b2", "b3")
    settling.when_settled(None, lambda: done.append("both"))
    assert said == [("b2", Barrier(1)), ("b3", Barrier(1))]
    settling.heard("b3", 1)
    settling.heard("b3", 1)
    assert (done, settling.idle) == ([], False)
    settling.heard("b2", 1)
    assert (done, settling.idle) == (["both"], True)


def test_one_answer_serves_all_that_it_covers_in_the_order_they_came() -> None:
    settling, _ = settling_of("b2", "b3")
    done: list[int] = []
    for number in range(4):
        tell(settling, "b2")
        settling.when_settled(None, lambda number=number: done.append(number))  # type: ignore[misc]
    settling.heard("b2", 3)
    assert done == [0, 1, 2]
    settling.heard("b2", 4)
    assert (done, settling.idle) == ([0, 1, 2, 3], True)


def test_the_asking_neighbour_is_not_waited_for() -> None:
    settling, said = settling_of("b2", "b3")
    done: list[str] = []
    tell(settling, "b2", "b3")
    settling.when_settled("b2", lambda: done.append("behind us"))
    assert said == [("b3", Barrier(1))]
    settling.heard("b3", 1)
    assert done == ["behind us"]


def test_after_a_restart_its_questions_are_void_and_ours_are_asked_again() -> None:
    settling, said = settling_of("b2", "b3")
    done: list[str] = []
    tell(settling, "b2", "b3")
    settling.when_settled("b2", lambda: done.append("b2 asked"))
    settling.when_settled(None, lambda: done.append("we ask"))
    said.clear()
    settling.restarted("b2")
    assert said == [("b2", Barrier(1))]
    settling.heard("b3", 1)
    assert (done, settling.idle) == ([], False)
    settling.heard("b2", 1)
    assert (done, settling.idle) == (["we ask"], True)


def test_a_restart_asks_nothing_where_nobody_waits() -> None:
    settling, said = settling_of("b2", "b3")
    tell(settling, "b2", "b3")
    settling.when_settled("b2", lambda: None)
    said.clear()
    settling.restarted("b2")
    assert (said, settling.idle) == ([], True)


def test_what_is_done_when_settled_may_wait_again() -> None:
    settling, _ = settling_of("b2")
    done: list[str] = []

    def first() -> None:
        done.append("first")
        tell(settling, "b2")
        settling.when_settled(None, lambda: done.append("second"))

    tell(settling, "b2")
    settling.when_settled(None, first)
    settling.heard("b2", 1)
    assert (done, settling.idle) == (["first"], False)
    settling.heard("b2", 2)
    assert (done, settling.idle) == (["first", "second"], True)


@pytest.mark.thorough
def test_a_hundred_thousand_may_wait_and_be_answered_one_by_one() -> None:
    settling, _ = settling_of("b2", "b3")
    many, done = 100_000, [0]

    def one_more() -> None:
        done[0] += 1

    for _ in range(many):
        tell(settling, "b2", "b3")
        settling.when_settled(None, one_more)
    for number in range(1, many + 1):
        settling.heard("b2", number)
        settling.heard("b3", number)
        assert done[0] == number
    assert settling.idle
