"""Sphinx configuration: every page, formula and search works from a folder, without a network."""

import sys
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import bochner

project = "bochner"
author = "The bochner developers"
version = release = bochner.__version__
html_title = f"bochner {version}"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_design",
    "sphinx_copybutton",
    "mathml",
]
exclude_patterns = ["_build"]
html_theme = "furo"
html_math_renderer = "mathml"
html_static_path = ["_static", str(Path(find_spec("ziamath").origin).parent / "fonts" / "STIXTwoMath-Regular.ttf")]
html_css_files = ["pages.css"]
html_copy_source = html_show_sourcelink = html_show_copyright = False
html_show_search_summary = False  # summaries are fetched, which browsers refuse to pages of a folder
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 4
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_custom_sections = ["Deviations"]
napoleon_use_ivar = True
napoleon_use_param = napoleon_use_rtype = False  # "array (n, d)" is a description: its letters are not links
suppress_warnings = ["ref.python"]  # the d in "array (..., d)" is a size, not a reference to an attribute named d
default_role = "code"
