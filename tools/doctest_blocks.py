"""Shows doctests of docstrings as code on the documentation site.

Docstrings are plain text with examples as they look in a terminal. Markdown would take a list such as
`['a']` for a link, so each run of lines from `>>>` to the next blank line becomes a code block.
"""

import re
from typing import Any

import griffe

# A prompt, and all lines below it that are indented at least as far and not blank.
EXAMPLE = re.compile(r"^([ \t]*)>>> .*(?:\n\1[^\n]*\S[^\n]*)*", re.MULTILINE)


def fenced(text: str) -> str:
    """The text with a fence around each example."""
    return EXAMPLE.sub(lambda found: f"{found[1]}```pycon\n{found[0]}\n{found[1]}```", text)


def fence_all(item: griffe.Object) -> None:
    """Fence the examples of an object and of everything in it."""
    if item.docstring:
        item.docstring.value = fenced(item.docstring.value)
    for member in item.members.values():
        if not member.is_alias:
            fence_all(member)


class DoctestBlocks(griffe.Extension):
    """Fences the examples of a package once it is loaded."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Called by griffe."""
        fence_all(pkg)
