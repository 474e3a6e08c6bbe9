"""Sphinx configuration."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import bochner

project = "bochner"
author = "The bochner developers"
version = release = bochner.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
exclude_patterns = ["_build"]
html_theme = "furo"
myst_enable_extensions = ["dollarmath"]
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_custom_sections = ["Deviations"]
napoleon_use_ivar = True
napoleon_use_param = napoleon_use_rtype = False  # "array (n, d)" is a description: its letters are not links
suppress_warnings = ["ref.python"]  # the same letters under Attributes, where napoleon has no such option
default_role = "code"
suppress_warnings = ["ref.python"]  # the d in "array (..., d)" is a size, not a reference to an attribute named d
