"""Run the command line as `python -m playhead`."""

from __future__ import annotations

import sys

from playhead.cli.main import main

sys.exit(main())
