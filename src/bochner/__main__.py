"""``python -m bochner`` is ``bochner``."""

from .cli import main

raise SystemExit(main())
