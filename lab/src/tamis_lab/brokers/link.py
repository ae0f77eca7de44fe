"""A reliable, ordered link over a channel that may lose, repeat and reorder frames.

Frames are numbered from 1 within a *conversation*, which is a pair of epochs: how often each side has
started. The receiver takes frames in order and acknowledges the last one taken; the sender repeats what is
not acknowledged in time. When either side restarts, both begin a new conversation: numbers start again, and
the owner of the link decides what must be told again.

        A (epoch 3)                               B (epoch 7)
        Hello 3,0   ----------------------------> new epoch: conversation 3,7 begins
                    <---------------------------- 7,3 #1 Register ...
        new epoch: conversation 3,7 begins
        3,7 #1 Forward, acknowledging 1 --------->

A frame of another conversation is never taken, so nothing from before a crash can arrive after it.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from tamis_lab.brokers.messages import Frame, Message

WINDOW = 128


@dataclass
class Received:
    """What a frame brought: messages in order, acknowledged ones of ours, and whether to start over."""

    bodies: list[Message] = field(default_factory=list)
    acknowledged: list[Message] = field(default_factory=list)
    restarted: bool = False


class Link:
    """One side of a link. Frames to send are taken with `take`.

    >>> from tamis_lab.brokers.messages import Deregister
    >>> a, b = Link(epoch=1), Link(epoch=1)
    >>> [hello] = a.take(now=0.0)
    >>> b.receive(hello).restarted
    True
    >>> b.say(Deregister("s1"))
    >>> [frame] = b.take(now=0.0)
    >>> a.receive(frame).bodies
    [Deregister(id='s1')]
    """

    def __init__(self, epoch: int, resend_after: float = 1.0) -> None:
        """Begin with a greeting; `resend_after` is how long to wait for an acknowledgement."""
        self.epoch = epoch
        self.resend_after = resend_after
        self.peer_epoch = 0
        self._heard = False  # the peer has shown that it knows our epoch
        self._greet = True
        self._acknowledge = False
        self._unacknowledged: deque[tuple[int, Message]] = deque()
        self._waiting: deque[Message] = deque()
        self._unsent: deque[tuple[int, Message]] = deque()
        self._last_sent = 0
        self._taken = 0
        self._early: dict[int, Message] = {}
        self._deadline: float | None = None

    @property
    def idle(self) -> bool:
        """Whether the peer is known and has acknowledged everything."""
        return self._heard and not self._unacknowledged and not self._waiting

    @property
    def in_conversation(self) -> bool:
        """Whether the peer's epoch is known, so that messages can be said."""
        return self.peer_epoch > 0

    def say(self, body: Message) -> None:
        """Queue a message."""
        self._waiting.append(body)

    def receive(self, frame: Frame, accept: Callable[[Message], bool] = lambda _: True) -> Received:
        """Take a frame; a message that `accept` declines stays with the sender, and so do those after it."""
        received = Received()
        if frame.sender_epoch < self.peer_epoch:
            return received
        if frame.sender_epoch > self.peer_epoch:
            self._begin(frame.sender_epoch)
            received.restarted = True
        if frame.receiver_epoch != self.epoch:
            self._greet = True
            return received
        self._heard = True
        while self._unacknowledged and self._unacknowledged[0][0] <= frame.acknowledged:
            received.acknowledged.append(self._unacknowledged.popleft()[1])
        if received.acknowledged:
            self._deadline = None
        if frame.body is not None:
            self._acknowledge = True
            if self._taken < frame.number <= self._taken + WINDOW:
                self._early[frame.number] = frame.body
            while (body := self._early.get(self._taken + 1)) is not None and accept(body):
                del self._early[self._taken + 1]
                self._taken += 1
                received.bodies.append(body)
        return received

    def nudge(self) -> None:
        """Send again at once what is not acknowledged: the link has just come back."""
        self._deadline = None
        self._unsent = deque(self._unacknowledged)
        self._greet = self._greet or not self._heard

    def due(self, now: float) -> None:
        """Send again what has waited too long."""
        if self._deadline is not None and now >= self._deadline:
            self.nudge()

    def take(self, now: float) -> list[Frame]:
        """The frames to send now. `deadline` says when to call `due`."""
        frames: list[Frame] = []
        if self.in_conversation:
            while self._waiting and len(self._unacknowledged) < WINDOW:
                self._last_sent += 1
                numbered = (self._last_sent, self._waiting.popleft())
                self._unacknowledged.append(numbered)
                self._unsent.append(numbered)
            while self._unsent:
                number, body = self._unsent.popleft()
                frames.append(self._frame(number, body))
        # Every frame greets and acknowledges; an empty one is needed only where there is no other.
        if not frames and (self._greet or self._acknowledge):
            frames.append(self._frame(0, None))
        self._greet = self._acknowledge = False
        if self._deadline is None and (self._unacknowledged or not self._heard):
            self._deadline = now + self.resend_after
        elif self._heard and not self._unacknowledged:
            self._deadline = None
        return frames

    @property
    def deadline(self) -> float | None:
        """When `due` has something to do, if ever."""
        return self._deadline

    def _begin(self, peer_epoch: int) -> None:
        self.peer_epoch = peer_epoch
        self._heard = False
        self._greet = True
        self._unacknowledged.clear()
        self._waiting.clear()
        self._unsent.clear()
        self._early.clear()
        self._last_sent = self._taken = 0
        self._deadline = None

    def _frame(self, number: int, body: Message | None) -> Frame:
        return Frame(self.epoch, self.peer_epoch, number, self._taken, body)
