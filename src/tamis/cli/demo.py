"""`tamis demo`: the product's main job in a minute."""

from typing import Annotated

import typer


def demo(
    subscriptions: Annotated[int, typer.Option(min=1_000, help="How many campaigns to index.")] = 200_000,
    events: Annotated[int, typer.Option(min=1, help="How many page views to stream.")] = 20_000,
    seed: Annotated[int, typer.Option(help="Seed of the random generator.")] = 1,
) -> None:
    """Index generated advertising campaigns and stream page views through them."""
    from tamis.demo import run

    run(subscriptions, events, seed)
