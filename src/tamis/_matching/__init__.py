"""The queries of `tamis.Index`: which subscriptions events satisfy, and which of them rank highest."""

from tamis._matching.json_lines import JsonLines
from tamis._matching.many_events import ask_up_to
from tamis._matching.one_event import EventLike, Match, Matches
from tamis._matching.timing import Timing

__all__ = ["EventLike", "Match", "Matches", "Matching", "ask_up_to"]


class Matching(JsonLines, Timing):
    """The part of `tamis.Index` that queries it with events."""

    __slots__ = ()
