"""`python -m ostler` is the `ostler` command."""

from ostler.cli import main

main()
