"""The key of each record. See `tamis.pubsub.log.contract` for streams, topics and details.

events   pN        s.NAME.SESSION    an event of partition N; releases before 0.2 wrote SESSION alone
         pN        link-SITE         an event that came over a link, as it is stored here
         pN        dropped           a gap that this site tells others
         link      SITE              how far a neighbour's queue for this site is taken over
         seen      SITE.LIFE.N       which numbers of a site's partition have come, of one life of its log
         taken     SITE.N            which events of a site's partition have come, in all lives of its log
queues   q-NAME    PARTITION.PRIORITY   deliveries for a subscriber (NAME is @SITE for a neighbour)
         cursor    PARTITION         how far a partition is routed, and by whom
         dead      PARTITION         events that could not be processed
         copy-P    EVENT             an event as the projection P shows it
state    sub       NAME.ID           a subscription
         queue     NAME              a subscriber's limits
         read      NAME              how far a subscriber has read
         drop      NAME              what was dropped of its queue
         behind    NAME              what sites behind a neighbour are told of drops in its queue
         trim      PARTITION         which events were removed because nobody needs them
         grant     NAME              what a client may have
         router    ID                a router's sign of life
         drain     ID                an operator wants this router to end
         site      settings          what is fixed with the log
         site      life              changes when a neighbour notices that the log was rolled back
         interest  SITE.ID           what a site wants
         links     SITE              which neighbours a site has
         applied   SITE.BY           how much of a site's interest another one knows
         ad        NAME.ID           what a publisher here advertises
         advertised SITE             what a site advertises
         heard     SITE.BY           up to which advertisement of a site another one's interest accounts for
         peer      SITE              a neighbour's sign of life
"""

import re
import zlib
from functools import lru_cache

from tamis.pubsub.log.contract import Key
from tamis.pubsub.names import names_in, token

CURSOR, DEAD, LINK, SEEN, TAKEN = "cursor", "dead", "link", "seen", "taken"
COPY = "copy-"
"""How the topics of copies begin."""
SUBSCRIPTION, QUEUE, READ, DROP, BEHIND = "sub", "queue", "read", "drop", "behind"
TRIM, GRANT, ROUTER, DRAIN = "trim", "grant", "router", "drain"
INTEREST, LINKS, APPLIED, PEER = "interest", "links", "applied", "peer"
ADVERTISEMENT, ADVERTISED, HEARD = "ad", "advertised", "heard"
NAMES = {
    **dict.fromkeys((QUEUE, READ, DROP, BEHIND, GRANT, ROUTER, DRAIN, LINKS, ADVERTISED, PEER), 1),
    **dict.fromkeys((SUBSCRIPTION, INTEREST, APPLIED, ADVERTISEMENT, HEARD), 2),
}
"""How many names the details of a topic consist of."""
PLAIN_SUBSCRIPTION = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
"""The detail of a subscription whose names need no escapes: nearly all, and there are millions."""
SETTINGS: Key = ("site", "settings")
LIFE: Key = ("site", "life")
DROPPED = "dropped"


def is_key(topic: str, detail: str) -> bool:
    """Whether Tamis can have made a key: others may write anything, and some can name no one.

    >>> is_key("sub", "ann.s1"), is_key("sub", "ann"), is_key("links", "=FF"), is_key("later", "x.y.z")
    (True, False, False, True)
    """
    names = NAMES.get(topic)
    return names is None or names_in(detail) == names


def partition_topic(partition: int) -> str:
    """The topic of a partition's events.

    >>> partition_topic(3)
    'p3'
    """
    return f"p{partition}"


def partition_in(topic: str) -> int | None:
    """The partition whose topic it is; None if it is another topic.

    >>> partition_in("p3"), partition_in("seen"), partition_in("p-1"), partition_in("p" + 5_000 * "1")
    (3, None, None, None)
    """
    number = topic.removeprefix("p")
    is_number = len(number) <= 9 and number.isascii() and number.isdecimal()
    return int(number) if topic.startswith("p") and is_number else None


@lru_cache(maxsize=10_000)
def partition_of(publisher: str, partitions: int) -> int:
    """The partition of a publisher's events: the same for all its sessions, so that they stay in order.

    >>> partition_of("bob", 1)
    0
    """
    return zlib.crc32(publisher.encode("utf-8", "surrogatepass")) % partitions


def session_detail(publisher: str, session: str) -> str:
    """The detail of a publisher's events: a client that may write there may publish under that name.

    >>> session_detail("bob", "a1")
    's.bob.a1'
    """
    return f"s.{token(publisher)}.{session}"


def link_detail(neighbour: str) -> str:
    """The detail of events that came over the link from a neighbour.

    >>> link_detail("rome")
    'link-rome'
    """
    return f"link-{token(neighbour)}"


def is_of_router(detail: str) -> bool:
    """Whether only routers write under a detail of events: publishers write under their sessions.

    >>> is_of_router("link-rome"), is_of_router(DROPPED), is_of_router("s.bob.a1"), is_of_router("a1")
    (True, True, False, False)
    """
    return detail == DROPPED or detail.startswith("link-")


def is_of_publisher(detail: str, publisher: str) -> bool:
    """Whether a publisher may have written under a detail of events.

    >>> is_of_publisher("s.bob.a1", "bob"), is_of_publisher("s.eve.a1", "bob"), is_of_publisher("a1", "bob")
    (True, False, True)
    """
    return not detail.startswith("s.") or detail.startswith(f"s.{token(publisher)}.")


def queue_topic(subscriber: str) -> str:
    """The topic of a subscriber's queue.

    >>> queue_topic("ann")
    'q-ann'
    """
    return f"q-{token(subscriber)}"


@lru_cache(maxsize=1_000)
def lane(partition: int, priority: int) -> str:
    """The detail of deliveries of a partition with a priority.

    >>> lane(0, 4)
    '0.4'
    """
    return f"{partition}.{priority}"


def partition_of_lane(lane: str) -> str:
    """The partition that the deliveries of a lane come from.

    >>> partition_of_lane("0.4")
    '0'
    """
    return lane.partition(".")[0]


def subscription_key(subscriber: str, id: str) -> Key:
    """The key of a subscription.

    >>> subscription_key("ann", "s1")
    ('sub', 'ann.s1')
    """
    return SUBSCRIPTION, f"{token(subscriber)}.{token(id)}"


def advertisement_key(publisher: str, id: str) -> Key:
    """The key of an advertisement.

    >>> advertisement_key("bob", "a1")
    ('ad', 'bob.a1')
    """
    return ADVERTISEMENT, f"{token(publisher)}.{token(id)}"


def site_subscriber(site: str) -> str:
    """The name under which a neighbouring site has its queue.

    >>> site_subscriber("paris")
    '@paris'
    """
    return f"@{site}"
