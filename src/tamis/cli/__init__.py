"""The `tamis` command: the library over files and pipes.

There is one file per command, and they share four: `inputs` opens files and pipes in any format, `rules`
reads tables of subscriptions into an index, `events` streams events, `outputs` writes matches. Heavy imports
are inside the commands, so that `tamis --help` is quick.
"""


def main() -> None:
    """Run the command line; the entry point that the package installs."""
    import signal
    import sys

    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends the command, silently
    try:
        from tamis.cli.app import run
    except KeyboardInterrupt:
        sys.exit(130)
    try:
        run()
    except SystemExit as ending:
        from tamis.cli.io.read_ahead import leave_if_read_ahead

        leave_if_read_ahead(ending)
        raise
