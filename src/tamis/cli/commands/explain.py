"""`tamis explain`: is a rule true for an event, predicate by predicate?"""

from tamis.cli import options as o


def explain(
    rules: o.RulesPath,
    id: o.SubscriptionId,
    events: o.EventsPath = "-",
    *,
    event: o.InlineEvent = None,
    row: o.Row = 0,
    tag: o.Tags = None,
    tag_all: o.TagsAll = None,
    tag_none: o.TagsNone = None,
    now: o.Now = None,
    as_json: o.AsJson = False,
    format: o.EventsFormat = None,
    encoding: o.Encoding = None,
    separator: o.Separator = None,
    rules_format: o.RulesFormat = None,
    rules_encoding: o.RulesEncoding = None,
    rules_separator: o.RulesSeparator = None,
) -> int:
    """Show the truth value of every part of a rule for one event, and whether it expired or lacks a tag.

    Exits with 0 if the rule matches, 1 if it does not.
    """

    import tamis
    from tamis.cli.failure import FOUND, NOT_FOUND, UserError
    from tamis.cli.io.events import at_place, one_event
    from tamis.cli.io.rules import load_index
    from tamis.cli.one_rule import find_id, moment, show

    index = load_index(rules, rules_format, encoding=rules_encoding, separator=rules_separator)
    subscription = find_id(index, id)
    place, record = one_event(events, format, event, row, encoding=encoding, separator=separator)
    at = moment(now)
    try:
        explanation = index.explain(
            subscription, record, tags=tag, tags_all=tag_all, tags_none=tag_none, now=at
        )
    except tamis.EventError as error:
        raise UserError(at_place(place, error)) from None
    show(explanation, as_json)
    return FOUND if explanation.matches else NOT_FOUND
