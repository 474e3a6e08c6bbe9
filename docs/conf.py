"""Sphinx configuration: every page, formula and search works from a folder, without a network."""

import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import bochner
from bochner._citation import addresses, bibliography

project = "bochner"
author = "The bochner developers"
version = release = bochner.__version__
html_title = f"bochner {version}"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "mathml",
]
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": "/plot_",
    "subsection_order": [f"../examples/{name}" for name in ("machines", "attention", "features", "beyond")],
    "within_subsection_order": "FileNameSortKey",
    "thumbnail_size": (480, 300),
    "backreferences_dir": "gallery/backreferences",  # "examples that use it" on the pages of classes
    "doc_module": ("bochner",),
    "only_warn_on_example_error": False,
    "plot_gallery": "True",
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "parallel": 2,
}
exclude_patterns = [
    "_build",
    "gallery/**/*.ipynb",
    "gallery/**/*.py",
    "sg_execution_times.rst",
    "gallery/sg_execution_times.rst",
]
templates_path = ["_templates"]
autosummary_ignore_module_all = False
autosummary_imported_members = True
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


def keep_underscores(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Escape the underscores that end names of fitted attributes, which would make them links."""
    field = re.compile(r"^:(?:ivar|vartype) [^:]*")
    lines[:] = [field.sub(lambda names: re.sub(r"(?<=\w)_(?=[,:]|$)", r"\\_", names[0]), line) for line in lines]


def name_sources(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """End the page of a class with the papers that it declares, with their addresses."""
    keys = getattr(obj, "references", ()) if what == "class" else ()
    if not isinstance(keys, tuple) or not keys:
        return
    known, places = bibliography(), addresses()
    lines += ["", ".. rubric:: Sources", ""]
    for key in keys:
        place, address = places.get(key, ("", ""))
        lines.append(f"- {known[key]}" + (f" `{place} <{address}>`__" if place else ""))
    lines.append("")


def end_code(app: Any, page: str, source: list[str]) -> None:
    """Drop the empty line at the end of a block of code, which doctest needs and readers do not."""
    source[0] = source[0].replace("\n\n```\n", "\n```\n")


def break_names(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Let long names in tables break between words (``GeneralizedExponential``), and nowhere else; copies have no break."""
    name = re.compile(r"(?<=>)[^<>]+(?=<)")
    between = re.compile(r"(?<=[a-z(,_])(?=[A-Z])|(?<=[(_])(?=[a-z0-9])|(?<=[a-z])(?=\d{4}\b)")

    def cell(td: re.Match[str]) -> str:
        return name.sub(lambda found: between.sub("<wbr>", found[0]), td[0])

    if "body" in context:
        context["body"] = re.sub(r"<td>.*?</td>", cell, context["body"], flags=re.DOTALL)


_sidebars: dict[str, str] = {}
"""Sidebars of the pages of classes and functions, by their modules."""


def shorten_sidebar(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """List pages and modules in the sidebar, not their 270 classes and functions, which the page of a module lists.

    All classes and functions of a module have one sidebar then, which is made once: to make it takes as long as the rest of
    a page.
    """
    if "toctree" not in context:
        return
    whole, module = context["toctree"], page.rpartition(".")[0]

    def short(**options: Any) -> str:
        if module not in _sidebars:
            found = str(whole(**options | {"maxdepth": 2}))
            if not page.startswith("reference/generated/"):
                return found
            _sidebars[module] = found
        return _sidebars[module]

    context["toctree"] = short


def draw_experiments(app: Any) -> None:
    """Draw the figure of every committed result that is newer than its picture."""
    import bochner_lab

    (folder := Path(app.srcdir) / "figures").mkdir(exist_ok=True)
    for result in sorted((Path(app.srcdir).parent / "lab" / "results").glob("*/full/result.json")):
        picture = folder / f"{result.parents[1].name}.png"
        if not picture.exists() or picture.stat().st_mtime < result.stat().st_mtime:
            bochner_lab.draw(result, path=picture)


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("builder-inited", draw_experiments)
    app.connect("html-page-context", break_names)
    app.connect("html-page-context", shorten_sidebar, priority=400)  # before the theme asks for it
    app.connect("autodoc-process-docstring", keep_underscores, priority=900)  # after napoleon
    app.connect("autodoc-process-docstring", name_sources, priority=950)
    app.connect("source-read", end_code)
