"""`python -m consumer` is `safe`."""

import sys

from consumer.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
