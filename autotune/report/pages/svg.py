"""A figure as SVG in a page, styled by the page's style sheet, so that it is light or dark as the page is.

It refers to nothing outside, shares no identifier with another figure, and has no style attributes, which a
strict Content-Security-Policy forbids.
"""

from __future__ import annotations

import html
import io
import re
import threading
import warnings
from collections.abc import Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from autotune.report import drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SETTINGS: Any = {"svg.fonttype": "none", "svg.hashsalt": "autotune", "path.simplify_threshold": 0.3}
_ONE_AT_A_TIME = threading.Lock()
"""matplotlib's settings are shared by all threads."""

_BEFORE = re.compile(r"^.*?<svg[^>]*>", re.DOTALL)
_LEFT_OUT = re.compile(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
"""Only tags are rewritten: text between them may look like an attribute, and is none."""
_NAMESPACE = re.compile(r' xmlns(:\w+)?="[^"]*"')
_STYLE = re.compile(r' style="([^"]*)"')
_ID = re.compile(r' id="([^"]*)"')
_REFERENCE = re.compile(r'href="#([^"]*)"|url\(#([^)]*)\)')
_FONT = re.compile(r"font: ?(?:[a-z]+ )*([\d.]+)px [^;]*")
_SIZE = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')


@dataclass
class Sheet:
    """The CSS rules that the figures of a page need, each once."""

    rules: dict[str, str] = field(default_factory=dict)
    """By declarations: the name of the class."""

    def class_of(self, declared: str) -> str:
        return self.rules.setdefault(declared, f"s{len(self.rules)}")

    def css(self) -> str:
        return "".join(f".{name}{{{declared}}}" for declared, name in self.rules.items())


def variables() -> dict[str, str]:
    """The CSS variable for each colour of the figures."""
    return {colour: f"--f{place}" for place, colour in enumerate(drawing.COLOURS)}


def svg_of(figure: Figure, name: str, described: str, sheet: Sheet) -> str:
    """The figure as an ``<svg>`` element; ``described`` is its text for those who cannot see it.

    ``name`` (letters and digits) is the prefix of its identifiers, different for each figure of a page. The
    figure keeps the layout that it gets here.
    """
    text = _draw(figure)
    size = _SIZE.search(text)
    width, height = (float(part) for part in size.groups()) if size else (400.0, 300.0)
    body = _LEFT_OUT.sub("", _BEFORE.sub("", text, count=1))
    tags = "".join(_TAG.findall(body))
    used = {one or other for one, other in _REFERENCE.findall(tags)}
    body = _TAG.sub(lambda m: _own(m[0], name, used, sheet), body)
    head = (
        f'<svg viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" role="img"'
        f' aria-label="{html.escape(described)}">'
    )
    return head + re.sub(r">\s+<", "><", body).strip()


def _own(tag: str, name: str, used: Set[str], sheet: Sheet) -> str:
    """A tag with only the identifiers that are ``used``, prefixed with ``name``; its style is moved out."""
    tag = _NAMESPACE.sub("", tag)
    tag = _ID.sub(lambda m: f' id="{name}{m[1]}"' if m[1] in used else "", tag)
    tag = _REFERENCE.sub(lambda m: f'href="#{name}{m[1]}"' if m[1] else f"url(#{name}{m[2]})", tag)
    tag = tag.replace("xlink:href", "href")
    return _STYLE.sub(lambda m: f' class="{sheet.class_of(_declared(m[1]))}"', tag)


def _draw(figure: Figure) -> str:
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    stream = io.StringIO()
    with _ONE_AT_A_TIME, matplotlib.rc_context(_SETTINGS), warnings.catch_warnings():
        # The browser draws the text, with fonts that have the glyphs.
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        if layout := figure.get_layout_engine():  # savefig would draw all of it for that, and once more
            FigureCanvasSVG(figure)  # it knows how wide a text will be
            layout.execute(figure)
            figure.set_layout_engine("none")
        figure.savefig(
            stream, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
        )
    return stream.getvalue()


def _declared(style: str) -> str:
    """The declarations of a style attribute, with the page's colours and font."""
    style = html.unescape(style)
    for colour, variable in variables().items():
        style = style.replace(colour, f"var({variable})")
    style = _FONT.sub(r"font-size:\1px;font-family:inherit", style)
    return re.sub(r"\s*([:;])\s*", r"\1", style).strip("; ")
