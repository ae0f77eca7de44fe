"""The commands that this package adds to `tamis`: one file each, an entry point each in pyproject.toml.

Heavy imports happen inside the commands, so that `tamis --help` is quick.
"""
