"""Commands that other packages add to `tamis`, as entry points of the group `tamis.commands`.

An entry point names a function (a command) or a `typer.Typer` (a group of commands). Commands of this package
are found without loading others, and cannot be replaced. The help loads all of them; if one cannot be
imported, the help says so and lists the others.
"""

from collections.abc import Callable
from importlib.metadata import EntryPoint
from typing import Any, NoReturn, cast

import typer
from typer.core import TyperGroup

from tamis.cli.failure import UserError

GROUP = "tamis.commands"
SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"]}

IN_LAB = ("bench", "cost", "experiment", "workload")
"""What `tamis-lab` adds: named here so that those who lack it learn where it is."""


class Commands(TyperGroup):
    """The commands of this package, and those that are found when none of these is meant."""

    def list_commands(self, ctx: Any) -> list[str]:
        """All names, for the help: those of this package first."""
        for name, point in _entry_points().items():
            self._adopt(name, point)
        return super().list_commands(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the first argument names."""
        name = args[0]
        if name not in self.commands:
            found = _entry_points()
            if name in found:
                self._adopt(name, found[name])
            elif name in IN_LAB:
                raise UserError(
                    f"`tamis {name}` is in the package tamis-lab, which is not installed",
                    hint="in a checkout of Tamis: pip install ./lab",
                )
            else:
                self.list_commands(ctx)  # so that a name close to this one can be suggested
        return super().resolve_command(ctx, args)

    def _adopt(self, name: str, point: EntryPoint) -> None:
        if name not in self.commands:
            command = _load(name, point)
            tidy(command)
            self.add_command(command, name)


def tidy(command: Any) -> None:
    """Hide the type of options that take no value, in a command and all its subcommands."""
    for option in command.params:
        if getattr(option, "is_flag", False):
            option.metavar = ""
    command.get_help_option(typer.Context(command, **SETTINGS)).metavar = ""
    for inner in getattr(command, "commands", {}).values():
        tidy(inner)


def _entry_points() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {point.name: point for point in sorted(entry_points(group=GROUP))}


def _load(name: str, point: EntryPoint) -> Any:
    package = point.dist.name if point.dist else point.value
    try:
        loaded = point.load()
    except Exception as error:
        # Whatever another package does wrong must not hide the commands of all others.
        loaded = _broken(f"{package}: {point.value} cannot be loaded: {type(error).__name__}: {error}")
    host = typer.Typer(add_completion=False, rich_markup_mode="markdown")
    host.callback()(lambda: None)  # so that it is a group even of one command
    if isinstance(loaded, typer.Typer):
        host.add_typer(loaded, name=name)
    else:
        host.command(name)(loaded)
    command = cast(Any, typer.main.get_command(host)).commands[name]
    command.rich_help_panel = f"Commands of {package}"
    return command


def _broken(reason: str) -> Callable[[], NoReturn]:
    def fail() -> NoReturn:
        raise UserError(reason, hint="reinstall or remove that package")

    fail.__doc__ = f"Broken. {reason}"
    return fail
