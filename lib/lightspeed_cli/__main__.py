"""`python -m lightspeed_cli`: the lightspeed command where its script is not on the path."""

import sys

from lightspeed_cli import main

if __name__ == "__main__":
    sys.exit(main())
