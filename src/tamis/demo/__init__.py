"""The product's main job in a minute: campaigns become an index, page views stream through it."""

from tamis.demo.show import run

__all__ = ["run"]
