"""Decides when to prune: after every window of events, as far as configured or measured."""

from collections.abc import Sequence

from tamis.pubsub.generalise.advertisement_pruning import Worth
from tamis.pubsub.generalise.cut_off import CutOff
from tamis.pubsub.generalise.replacement import choose_replacements, replace_all
from tamis.relate import Selectivities
from tamis_lab.brokers.counters import Counters
from tamis_lab.brokers.options import PostPruning
from tamis_lab.brokers.spreading import Spreading


class Tuning:
    """Prunes the routing tables of one broker, and watches what that does.

    An event costs the time to filter it here, and for each neighbour it goes to about as much again: a
    neighbour is a broker like this one.

    >>> from tamis_lab.brokers.options import Options
    >>> options = Options(post_pruning=PostPruning())
    >>> spreading = Spreading("b1", ["b2"], options, Counters(), lambda *_: None)
    >>> Tuning(spreading, options.post_pruning, Counters(), []).prune(0.5)
    0
    """

    def __init__(
        self, spreading: Spreading, options: PostPruning | None, counters: Counters, sample: Sequence[str]
    ) -> None:
        """`sample` are recent events, from which selectivities are counted."""
        self._spreading = spreading
        self._options = options
        self._counters = counters
        self._sample = sample
        self._events = 0
        self._forwarded = 0
        self._seconds = 0.0
        self._unlearned = 0
        self._is_replaced = False
        self.cut_off = CutOff()
        self.selectivities: Selectivities | None = None
        """How often predicates were true in the sample, when it was last counted."""

    def after_event(self, forwarded: int) -> None:
        """An event was routed to this many neighbours."""
        self._events += 1
        self._unlearned += 1
        self._forwarded += forwarded
        if self._options is None or self._options.cut_off is None or self._events < self._options.window:
            return
        spent, self._seconds = self._counters.filter_seconds - self._seconds, self._counters.filter_seconds
        cost = spent / self._events * (1 + self._forwarded / self._events)
        self._events = self._forwarded = 0
        self.prune(self.cut_off.observe(cost) if self._options.cut_off == "auto" else self._options.cut_off)

    def prune(self, share: float, replace: float | None = None) -> int:
        """Prune the event routing tables so far; returns how many prunings were done.

        `replace` is the share of comparisons that then give way to wider ones, unless it is as configured.
        """
        pruner = self._spreading.pruner
        if pruner is None:
            return 0
        self.learn()
        pruner.learn(self.selectivities)
        done = pruner.prune(share)
        for (neighbour, id), expression in pruner.changed():
            self._spreading.subscriptions_from[neighbour].replace(id, expression)
        self._counters.prunings += done
        if replace is None:
            replace = self._options.replace if self._options is not None else 0.0
        if replace or self._is_replaced:
            self._is_replaced = self.replace_predicates(replace) > 0
        return done

    def replace_predicates(self, share: float) -> int:
        """Let predicates give way to wider ones in use; returns how many predicates are gone."""
        pruner = self._spreading.pruner
        tables = self._spreading.subscriptions_from
        forms = {
            neighbour: {
                id: pruner.form(neighbour, id) if pruner is not None else entry.expression
                for id, entry in table.entries.items()
            }
            for neighbour, table in tables.items()
        }
        replacements = choose_replacements(
            (form for of_one in forms.values() for form in of_one.values()),
            share,
            kept=self._spreading.local_subscriptions,
            selectivities=self.selectivities,
        )
        for neighbour, table in tables.items():
            now = replace_all(forms[neighbour], replacements)
            for id, form in forms[neighbour].items():
                if table.matcher[id] != (wanted := now.get(id, form)):
                    table.replace(id, wanted)
        return len(replacements)

    def prune_advertisements(self, steps: int) -> int:
        """Prune the subscription routing table; returns how many advertisements changed."""
        self.learn()
        known = dict(self.selectivities or ())
        hits = {text: share * len(self._sample) for text, share in known.items()}
        worth = Worth((entry.expression for entry in self._spreading.subscriptions), hits)
        changed = 0
        for table in self._spreading.advertisements_from.values():
            forms = table.pruner.prune(steps, worth.of)
            for id, expression in forms.items():
                table.generalise(id, expression)
            changed += len(forms)
        self._counters.prunings += changed
        return changed

    def recent_selectivities(self) -> Selectivities | None:
        """What is known, counted again if it was never, or a window of events ago: for pre-pruning."""
        window = self._options.window if self._options is not None else PostPruning.window
        if self._sample and (self.selectivities is None or self._unlearned >= window):
            self.learn()
        return self.selectivities

    def learn(self) -> None:
        """Count on the sample how often the predicates of all subscriptions are true."""
        expressions = [entry.expression for entry in self._spreading.subscriptions]
        if expressions and self._sample:
            self.selectivities = Selectivities.from_events(expressions, list(self._sample))
            self._unlearned = 0
