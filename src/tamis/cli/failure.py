"""One-line errors that the user can fix: what is wrong, where, and what would be right. Exit codes."""

import sys

FOUND = 0
NOT_FOUND = 1
BAD_INPUT = 2
INTERRUPTED = 130


class UserError(Exception):
    """Something about the command or its input is wrong; printed without a traceback.

    >>> str(UserError("no such file: rules.csv", hint="check the path"))
    'no such file: rules.csv (hint: check the path)'
    """

    def __init__(self, message: str, hint: str | None = None, code: int = BAD_INPUT) -> None:
        """Remember what to print and the exit code."""
        super().__init__(f"{message} (hint: {hint})" if hint else message)
        self.message = message
        self.hint = hint
        self.code = code


def complain(error: UserError) -> None:
    """Print one line to standard error, in colour where it is a terminal."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.text import Text

        line = Text.assemble(("error: ", "bold red"), error.message)
        if error.hint:
            line.append(f"  {error.hint}", style="dim")
        Console(stderr=True, soft_wrap=True).print(line)
    else:
        sys.stderr.write(f"tamis: {error}\n")


def warn(message: str) -> None:
    """Print one line to standard error.

    >>> warn("2 events skipped")
    """
    sys.stderr.write(f"tamis: {message}\n")
