"""``python -m bochner.cli`` is ``bochner``."""

from .main import main

raise SystemExit(main())
