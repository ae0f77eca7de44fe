"""What a NATS server does not allow: it says so instead of an answer, for which nobody needs to wait.

The client library gives the subject in lower case. Where that can be any of several subjects that are being
written, nobody is refused until it is clear which one it was: what the server has written, it had allowed.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from tamis.pubsub.log.contract import Entry, ForbiddenError
from tamis.pubsub.log.nats_answers import Answer

MOST_FORBIDDEN = 1_000
_HAS_ANOTHER_WAY = "$js.api.stream.msg.get."


class Refusals:
    """Who asks and who writes over a connection, and what of it the server refuses."""

    def __init__(self) -> None:
        """Nobody asks or writes yet."""
        self._questions: dict[str, asyncio.Future[Any]] = {}
        """Done when the server has said that we may not publish to a subject (in lower case).

        Kept where there is another way to ask; otherwise only while somebody waits for an answer.
        """
        self._appending: dict[Answer, tuple[str, Sequence[Entry]]] = {}
        """What is being written: the beginning of its subjects, and the entries."""
        self._unclear: list[dict[Answer, str]] = []
        """For each word of the server that fits several subjects: who writes to one, and to which."""

    def clear(self) -> None:
        """Permissions may have changed."""
        self._questions.clear()

    @property
    def appending(self) -> int:
        """How many are writing."""
        return len(self._appending)

    @property
    def kept(self) -> list[str]:
        """What is known to be forbidden, and will not be asked again."""
        return [subject for subject, refused in self._questions.items() if refused.done()]

    def of_question(self, name: str) -> asyncio.Future[Any]:
        """Done when the server has said that we may not ask this; then `ForbiddenError` is raised."""
        subject = f"$js.api.{name}".lower()
        if (refused := self._questions.get(subject)) is None:
            if len(self._questions) >= MOST_FORBIDDEN:
                self._questions = {name: each for name, each in self._questions.items() if each.done()}
            refused = self._questions[subject] = asyncio.get_running_loop().create_future()
        if refused.done():
            raise ForbiddenError(f"the server does not allow {name}")
        return refused

    def begin(self, answer: Answer, prefix: str, entries: Sequence[Entry]) -> None:
        """Entries are being written under subjects that begin so; `answer` gets what the server says."""
        self._appending[answer] = (prefix, entries)

    def end(self, answer: Answer, *, is_written: bool) -> None:
        """They are written, or nobody waits for it any more."""
        del self._appending[answer]
        if self._unclear:
            self._unclear = [word for word in self._unclear if not _is_clear_now(word, answer, is_written)]

    def note(self, error: str) -> None:
        """What the client library reports; it may be that we may not do something."""
        quoted = error.lower().partition('publish to "')[2].partition('"')[0]
        if not quoted:
            return
        fitting: dict[Answer, str] = {}
        for answer, (prefix, entries) in self._appending.items():
            if not answer.is_done():
                subjects = (f"{prefix}{entry.topic}.{entry.detail}" for entry in entries)
                subject = next((each for each in subjects if each.lower() == quoted), None)
                if subject is not None:
                    fitting[answer] = subject
        if not _is_clear(fitting):
            self._unclear.append(fitting)
        if (refused := self._questions.get(quoted)) is not None and not refused.done():
            refused.set_result(None)
            if not quoted.startswith(_HAS_ANOTHER_WAY):  # permissions may change: it is asked again
                del self._questions[quoted]


def _is_clear(fitting: dict[Answer, str]) -> bool:
    """Whether it is clear which subject was refused; then all who write to it are told."""
    if len(set(fitting.values())) > 1:
        return False
    for answer, subject in fitting.items():
        answer.refuse(subject)
    return True


def _is_clear_now(fitting: dict[Answer, str], answer: Answer, is_written: bool) -> bool:
    """Whether nothing more can be learnt of a word once somebody whom it may have meant has ended."""
    if answer not in fitting:
        return False
    del fitting[answer]
    return not is_written or _is_clear(fitting)
