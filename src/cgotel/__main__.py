"""``python -m cgotel``."""

from cgotel.cli import main

main(prog_name="cgotel")
