"""`tamis index`: build, inspect and verify saved indexes."""

import typer

from tamis.cli.commands import index_build, index_info, index_verify

app = typer.Typer(help="Build, inspect and verify saved indexes.", no_args_is_help=True)
app.command("build")(index_build.build)
app.command("info")(index_info.info)
app.command("verify")(index_verify.verify)
