"""``python -m bochner_lab`` is ``bochner-lab``."""

from .command_line import main

raise SystemExit(main())
