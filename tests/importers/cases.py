"""Cases in files, each with the answer of the engine it was written for, and random ones for that engine."""

import json
import random
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def recorded(name: str) -> list[list[Any]]:
    """The cases of a file of JSON lines: a rule, an event, and whether the rule's own engine matches."""
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]


class JsonLogicRules:
    """Random JsonLogic rules and data, of the types that they are compared with."""

    numbers, texts, truths, arrays = ("n", "m", "deep.n"), ("s", "t"), ("p", "q"), ("l",)

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def data(self) -> dict[str, Any]:
        chosen, choice = self._random.random, self._random.choice
        data: dict[str, Any] = {}
        data |= {name: choice([0, 1, 2, 5, -1, 2.5, 7]) for name in self.numbers[:2] if chosen() < 0.7}
        data |= {name: choice(["a", "b", "ab", "null", "bab"]) for name in self.texts if chosen() < 0.7}
        data |= {name: choice([True, False]) for name in self.truths if chosen() < 0.7}
        if chosen() < 0.7:
            data["l"] = choice([[], ["a"], ["b", "c"], ["c"]])
        if chosen() < 0.6:
            data["deep"] = choice([{}, {"n": 0}, {"n": 1}, {"n": 5}])
        return data

    def number(self, depth: int) -> Any:
        kind, choice = self._random.random(), self._random.choice
        if depth <= 0 or kind < 0.45:
            return {"var": choice(self.numbers)}
        if kind < 0.7:
            return choice([0, 1, 2, 5, -1, 2.5])
        if kind < 0.78:
            return {"var": [choice(self.numbers), choice([0, 1, 7])]}
        operator = choice(["+", "-", "*", "%", "/"])
        right = choice([2, 4]) if operator in "%/" else self.number(depth - 1)
        return {operator: [self.number(depth - 1), right]}

    def text(self, depth: int) -> Any:
        kind, choice = self._random.random(), self._random.choice
        if depth <= 0 or kind < 0.55:
            return {"var": choice(self.texts)}
        if kind < 0.8:
            return choice(["a", "b", "ab", "null"])
        if kind < 0.9:
            return {"cat": ["x", self.text(depth - 1)]}
        return {"substr": [self.text(depth - 1), choice([0, -1]), choice([1, 2])]}

    def rule(self, depth: int) -> Any:
        choice = self._random.choice
        if depth > 0 and self._random.random() < 0.45:
            operator = choice(["and", "or", "!", "!!", "if"])
            count = 1 if operator in ("!", "!!") else choice([1, 2, 3, 5] if operator == "if" else [1, 2, 3])
            return {operator: [self.rule(depth - 1) for _ in range(count)]}
        compare = choice(["<", "<=", ">", ">=", "==", "===", "!=", "!=="])
        element = {"var": ""}
        return choice(
            [
                {compare: [self.number(2), self.number(2)]},
                {compare: [self.text(2), self.text(1)]},
                {choice(["<", "<="]): [self.number(1), self.number(1), self.number(1)]},
                {"in": [self.text(1), ["a", "b", "", None]]},
                {"in": [choice(["a", "b", ""]), {"var": "s"}]},
                {"in": [choice(["a", "b"]), {"var": "l"}]},
                {"in": [{"var": "n"}, [1, 2, 5]]},
                {"in": [{"var": "s"}, "abab"]},
                {"missing": [choice(self.numbers), choice(self.texts)]},
                {"missing_some": [choice([1, 2, 3]), ["n", "s", "p", "deep.n"]]},
                {"var": choice([*self.numbers, *self.texts, *self.truths, *self.arrays])},
                {choice(["==", "!="]): [{"var": choice([*self.numbers, *self.texts])}, None]},
                {choice(["some", "none"]): [{"var": "l"}, {"==": [element, "a"]}]},
                {choice(["some", "none"]): [{"var": "l"}, {"in": [element, ["a", "b"]]}]},
                {choice(["==", "!="]): [{"<": [self.number(1), self.number(1)]}, choice([True, False])]},
                {"==": [{"var": choice(self.truths)}, choice([True, False])]},
            ]
        )


def _kinds(wanted: list[Any]) -> set[str]:
    return {kind for match in wanted if isinstance(match, dict) for kind in match}


class EventPatterns:
    """Random patterns and events for Event Ruler, without what is known to differ (`differences.py`)."""

    texts = ("a", "b", "ab", "A", "aB", "", "10.0.0.1", "10.0.1.77", "192.168.3.4")
    fields = ("s", "t", "n", "d.s", "d.n", "p")

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def alternative(self) -> Any:
        choice = self._random.choice
        but = ["a", ["a", "b"], 1, [1, 5], {"prefix": "a"}, {"suffix": "b"}]
        but += [{"equals-ignore-case": "ab"}, {"wildcard": "a*"}, {"prefix": ["a", "1"]}]
        return choice(
            [
                choice(self.texts),
                choice([0, 1, 5, 2.5, -3]),
                choice([True, False]),
                {"prefix": choice(["a", "A", {"equals-ignore-case": "a"}])},
                {"suffix": choice(["b", "B", {"equals-ignore-case": "b"}])},
                {"exists": choice([True, False])},
                {"anything-but": choice(but)},
                {"numeric": choice([[">", 0], ["<=", 1], ["=", 5], [">", -5, "<", 3], [">=", 1, "<=", 5]])},
                {"equals-ignore-case": choice(["a", "AB"])},
                {"wildcard": choice(["a*", "*b", "*", "a*b", "1*.1"])},
                {"cidr": choice(["10.0.0.0/24", "10.0.0.0/23", "10.0.0.0/8", "10.0.1.64/26"])},
            ]
        )

    def pattern(self) -> dict[str, Any]:
        fields = self._random.sample(self.fields, 4)
        used = fields[: self._random.choice([1, 1, 2])]
        pattern = self._of(used)
        if self._random.random() < 0.25:
            pattern["$or"] = [self._of(fields[2:3]), self._of(fields[3:4])]
        return pattern

    def _of(self, fields: list[str]) -> dict[str, Any]:
        pattern: dict[str, Any] = {}
        for field in fields:
            wanted = [self.alternative() for _ in range(self._random.choice([1, 1, 2]))]
            if _kinds(wanted) >= {"wildcard", "equals-ignore-case"}:
                wanted.pop()
            *outer, inner = field.split(".")
            record = pattern
            for name in outer:
                record = record.setdefault(name, {})
            record[inner] = wanted
        return pattern

    def value(self) -> Any:
        choice = self._random.choice
        return choice([choice(self.texts), choice([0, 1, 5, 2.5, -3, 2]), choice([True, False])])

    def event(self) -> dict[str, Any]:
        chosen = self._random.random
        event = {name: self.value() for name in ("s", "t", "n", "p") if chosen() < 0.75}
        if chosen() < 0.1:
            event["t"] = {"x": 1}
        if chosen() < 0.8:
            event["d"] = {name: self.value() for name in ("s", "n") if chosen() < 0.7}
        return event


class EventPatternsOverArrays(EventPatterns):
    """Random patterns and events with arrays of values and of records, two deep, or single ones instead."""

    arrays = ("s", "n", "items", "items.tags", "items.parts", "d.lines")
    fields = (
        "s",
        "n",
        "z",
        "items.s",
        "items.n",
        "items.tags",
        "items.parts.s",
        "items.parts.n",
        "d.lines.s",
    )

    def pattern(self) -> dict[str, Any]:
        chosen, choice = self._random.random, self._random.choice
        fields = self._random.sample(self.fields, 5)
        pattern = self._of(fields[: choice([1, 2, 2, 3])])
        if chosen() < 0.4:
            pattern["$or"] = [self._of(fields[3:4]), self._of(fields[4:])]
        if chosen() < 0.2:
            inside = pattern.setdefault("items", {})
            free = [name for name in ("x", "y") if name not in inside]
            inside["$or"] = [{name: [self.alternative()]} for name in free]
        return pattern

    def values(self) -> Any:
        """A value, or an array of one kind."""
        chosen, choice = self._random.random, self._random.choice
        if chosen() < 0.4:
            return self.value()
        kind = choice([self.texts, (0, 1, 5, 2.5, -3), (True, False)])
        return [choice(kind) for _ in range(choice([0, 1, 2, 2, 3]))]

    def record(self, fields: tuple[str, ...]) -> dict[str, Any]:
        return {name: self.values() for name in fields if self._random.random() < 0.7}

    def records(self, make: Any) -> Any:
        choice = self._random.choice
        return make() if self._random.random() < 0.2 else [make() for _ in range(choice([0, 1, 2, 2, 3]))]

    def item(self) -> dict[str, Any]:
        item = {name: self.value() for name in ("s", "n", "x", "y") if self._random.random() < 0.6}
        if self._random.random() < 0.5:
            item["tags"] = self.values()
        if self._random.random() < 0.5:
            item["parts"] = self.records(self._flat_record)
        return item

    def _flat_record(self) -> dict[str, Any]:
        return {name: self.value() for name in ("s", "n") if self._random.random() < 0.7}

    def event(self) -> dict[str, Any]:
        event = self.record(("s", "n"))
        if self._random.random() < 0.5:
            event["z"] = self.value()
        if self._random.random() < 0.85:
            event["items"] = self.records(self.item)
        if self._random.random() < 0.5:
            event["d"] = {"lines": self.records(self._flat_record)}
        return event


class JsonLogicOverArrays(JsonLogicRules):
    """Random rules about the records and the values in arrays; a record has the fields of the data itself."""

    def data(self, depth: int = 2) -> dict[str, Any]:
        chosen, choice = self._random.random, self._random.choice
        data = super().data()
        if chosen() < 0.6:
            data["nums"] = [choice([0, 1, 2, 5, -1, 2.5, None]) for _ in range(choice([0, 1, 2, 3]))]
        if depth and chosen() < 0.85:
            data["items"] = [self.data(depth - 1) for _ in range(choice([0, 1, 2, 3]))]
            if chosen() < 0.1:
                data["items"].append(None)
        return data

    def rule(self, depth: int) -> Any:
        choice = self._random.choice
        if depth <= 0 or self._random.random() < 0.4:
            return super().rule(depth)
        operator, element = choice(["some", "all", "none"]), {"var": ""}
        compare = choice(["<", ">=", "==", "!="])
        field = choice([*self.numbers[:2], *self.texts])
        return choice(
            [
                {operator: [self.array(depth), self.rule(depth - 1)]},
                {operator: [{"var": "nums"}, {compare: [element, choice([0, 1, 2])]}]},
                {
                    operator: [
                        {"map": [self.array(depth), {"var": "n"}]},
                        {compare: [element, choice([0, 1])]},
                    ]
                },
                {choice(["!", "!!"]): [self.array(depth)]},
                {"in": [choice([1, 2, "a", "b"]), {"map": [self.array(depth), {"var": field}]}]},
                {choice(["and", "or"]): [self.rule(depth - 1), self.rule(depth - 1)]},
            ]
        )

    def array(self, depth: int) -> Any:
        items = {"var": "items"}
        return items if self._random.random() < 0.6 else {"filter": [items, self.rule(depth - 1)]}


class JsonLogicConstants:
    """Random rules about values of every kind, with operands too few and too many; nothing of the data."""

    values = (
        *(0, 1, 2, -1, 1.5, 1e21, 1e-7, 123456789012345680000, True, False, None),
        *("", "0", "1", " 1 ", "1.5", "a", "abc", "null", "0x10", "0b11", "1e3", "Infinity", "inf", "NaN"),
        *("1_0", "12abc", ".5", "5.", "+1", "--1", "\u0661"),
        *([], [1], [1, 2], ["a"], [[]], [None], {}, {"a": 1, "b": 2}),
    )
    operators = (
        *("==", "===", "!=", "!==", "<", "<=", ">", ">=", "in", "-", "/", "%", "+", "*", "and", "or", "if"),
        *("?:", "cat", "substr", "merge", "min", "max", "!", "!!"),
    )

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def rule(self, depth: int) -> Any:
        choice = self._random.choice
        if depth <= 0 or self._random.random() < 0.3:
            return choice(self.values)
        return {
            choice(self.operators): [self.rule(depth - 1) for _ in range(choice([0, 1, 1, 2, 2, 2, 3, 4]))]
        }
