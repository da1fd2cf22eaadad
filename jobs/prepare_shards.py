"""Prepare a dataset's shards: `python jobs/prepare_shards.py dataset=real`."""

import sys

from cardiolens.prepare import main

if __name__ == "__main__":
    sys.exit(main())
