"""Route a news feed: readers subscribe with XPath, and every document reaches those who want it.

    python examples/news_feed.py

prints for each story the desks that get it. `route` is what a service would call for each document.
"""

from collections.abc import Iterable, Iterator

import tamis

DESKS = {
    "markets": "xpath(doc, '//company[price > 100]/ticker') AND received BETWEEN 6 AND 20",
    "politics": "xpath(doc, '/story[@section = \"politics\"]') AND NOT xpath(doc, '//correction')",
    "quotes": "xpath(doc, '//quote[speaker/@role = \"minister\"]')",
    "pictures": "xpath(doc, '//figure[width >= 1200 and not(@embargo)]')",
    "archive": "xpath(doc, '/story')",
}

STORIES = [
    """<story section="economy"><title>Sieves in demand</title>
       <body><company><ticker>SIEV</ticker><price>104.5</price></company></body></story>""",
    """<story section="politics"><title>Budget passed</title>
       <body><quote><speaker role="minister">A. Smith</speaker>It is done.</quote>
       <figure><width>1600</width></figure></body></story>""",
    """<story section="politics"><title>Budget passed</title><correction/><body/></story>""",
    """<story section="sports"><title>Cut off in transfer""",
]


def desks() -> tamis.Index:
    """The desks and what they want."""
    index = tamis.Index()
    for desk, wanted in DESKS.items():
        index.add(desk, wanted)
    return index


def route(index: tamis.Index, stories: Iterable[str | bytes], hour: int) -> Iterator[tuple[int, list[str]]]:
    """For each story its number and the desks that get it; what is no document goes to nobody.

    >>> list(route(desks(), ["<story section='politics'/>", "<story>"], hour=9))
    [(0, ['archive', 'politics']), (1, [])]
    """
    for number, story in enumerate(stories):
        yield number, index.match({"doc": tamis.Xml(story), "received": hour})


if __name__ == "__main__":
    index = desks()
    for number, found in route(index, STORIES, hour=9):
        print(f"story {number}: {', '.join(found) or 'nobody'}")
    refused = index.stats()["observed"]["type_mismatches"]
    print(f"{refused} of {len(STORIES)} documents could not be read")
    print(index.explain("pictures", {"doc": STORIES[0]}))
