"""Runs ``python -m companion COMMAND``; ``companion.cli`` has the commands."""

import sys

from companion import cli

if __name__ == "__main__":
    sys.exit(cli.main())
