"""``python -m companion``: see ``companion.cli``."""

from companion import cli

if __name__ == "__main__":
    cli.end(cli.main())
