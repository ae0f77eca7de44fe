"""`tamis index verify`: is a saved index undamaged?"""

from typing import Annotated

import typer


def verify(
    path: Annotated[str, typer.Argument(metavar="SNAPSHOT", help="A saved index.")],
) -> int:
    """Check every checksum of a saved index.

    Exits with 0 if it is intact, 1 if it is damaged.
    """
    import tamis
    from tamis.cli.failure import FOUND, NOT_FOUND, UserError, warn
    from tamis.cli.io.rules import is_snapshot

    if not is_snapshot(path):
        raise UserError(f"{path} is not a saved index", hint="make one with `tamis index build`")
    try:
        tamis.Index.open(path).verify()
    except OSError as error:
        raise UserError(str(error)) from None
    except tamis.SnapshotError as error:
        warn(str(error))
        return NOT_FOUND
    typer.echo(f"{path}: intact")
    return FOUND
