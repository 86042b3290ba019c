"""Runs ``python -m companion COMMAND``; ``companion.cli`` has the commands."""

from companion import cli

if __name__ == "__main__":
    cli.end(cli.main())
