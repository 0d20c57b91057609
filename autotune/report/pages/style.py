"""How a report looks: on a screen of any width, light or dark, and on paper."""

from __future__ import annotations

from collections.abc import Mapping

from autotune.report import drawing
from autotune.report.pages.svg import variables

DARK: Mapping[str, str] = {
    drawing.INK: "#e6edf3",
    drawing.MUTED: "#9aa7b4",
    drawing.GRID: "#30363d",
    drawing.PAPER: "#0d1117",
    drawing.BEST: "#6cb0ff",
    drawing.RANDOM: "#e0a63a",
    drawing.TRIAL: "#8b97a4",
    drawing.GOOD: "#57c26b",
    drawing.BAD: "#ff7b83",
    **dict(
        zip(
            drawing.STEPS,
            ("#16202c", "#1a3049", "#1e4468", "#2a639a", "#4a8fd0", "#82b9ef", "#c2dffb"),
            strict=True,
        )
    ),
}
"""The colours of figures in dark mode; those of the parts of a whole stay as they are."""


def colours() -> str:
    """The CSS variables of the page and its figures, for light and dark mode. Paper is always light."""
    names = variables()
    light = "".join(f"{name}:{colour};" for colour, name in names.items())
    dark = "".join(f"{names[colour]}:{other};" for colour, other in DARK.items())
    return (
        f":root{{color-scheme:light dark;{light}{_LIGHT_PAGE}}}"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{dark}{_DARK_PAGE}}}}}"
    )


_LIGHT_PAGE = (
    "--ink:#1f2328;--quiet:#57606a;--paper:#ffffff;--line:#d0d7de;--box:#f6f8fa;--link:#0b5fb0;"
    "--good:#1a7f37;--warn:#8a5300;"
)
_DARK_PAGE = (
    "--ink:#e6edf3;--quiet:#9aa7b4;--paper:#0d1117;--line:#30363d;--box:#161b22;--link:#6cb0ff;"
    "--good:#57c26b;--warn:#e0a63a;"
)


def base_style() -> str:
    """The style sheet without the colours."""
    return _STYLE.replace("\n", "")


_STYLE = """
*{box-sizing:border-box}
html{font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);overflow-wrap:anywhere}
main,footer{max-width:52rem;margin:0 auto;padding:0 1rem}
main.roomy,main.roomy~footer{max-width:76rem}
h1{font-size:1.05rem;margin:1.2rem 0 .6rem;color:var(--quiet);font-weight:600}
h2{font-size:1.25rem;margin:2.4rem 0 .6rem;padding-top:.6rem;border-top:1px solid var(--line)}
a{color:var(--link)}
:focus-visible{outline:3px solid var(--link);outline-offset:2px}
.skip{position:absolute;left:-99rem}
.skip:focus{position:static}
.answer{border-left:.4rem solid var(--warn);background:var(--box);padding:.8rem 1rem;border-radius:.3rem}
.answer.good{border-color:var(--good)}
.answer p{margin:0}
.kind{color:var(--quiet);text-transform:uppercase;letter-spacing:.05em;font-size:.8rem;font-weight:600}
.big{font-size:clamp(1.8rem,7vw,2.8rem);font-weight:700;line-height:1.15}
.good .big{color:var(--good)}
.warning{border:1px solid var(--warn);color:var(--warn);border-radius:.3rem;padding:.5rem .8rem}
.note{border-left:.2rem solid var(--line);padding-left:.8rem;color:var(--quiet)}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(9rem,1fr));gap:.6rem 1rem;margin:1rem 0}
.facts dt{color:var(--quiet);font-size:.8rem}
.facts dd{margin:0;font-weight:600}
nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1rem;padding:0;margin:.5rem 0;font-size:.9rem}
nav a{display:inline-block;padding:.2rem 0}
.wide{overflow-x:auto;max-width:100%}
figure{margin:1rem 0}
figure svg{display:block;width:100%;min-width:28rem;max-width:44rem;height:auto}
figure svg *{stroke-linejoin:round;stroke-linecap:butt}
figcaption{font-size:.85rem;color:var(--quiet)}
table{border-collapse:collapse;font-size:.9rem;min-width:50%;font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--quiet);font-size:.85rem;padding:.3rem 0}
th,td{text-align:left;vertical-align:top;padding:.25rem .7rem .25rem 0;border-bottom:1px solid var(--line)}
th,td{max-width:32rem;overflow-wrap:break-word}
thead th{color:var(--quiet);font-weight:600}
tbody th{font-weight:500}
td.number{white-space:nowrap}
details{margin:.6rem 0}
summary{cursor:pointer;color:var(--link);padding:.2rem 0}
pre,code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.85em}
pre{background:var(--box);padding:.8rem;border-radius:.3rem;overflow:auto;max-height:24rem;white-space:pre-wrap}
.commands code{white-space:pre-wrap}
.commands dt{background:var(--box);padding:.4rem .7rem;border-radius:.3rem}
.commands dd{margin:.1rem 0 .7rem;color:var(--quiet);font-size:.9rem}
footer{color:var(--quiet);font-size:.85rem;margin:3rem auto 2rem;border-top:1px solid var(--line)}
@media print{
nav,.skip{display:none}
html{font-size:11px}
main,footer{max-width:none}
figure,tr{break-inside:avoid}
h2{break-after:avoid}
.wide{overflow:visible}
figure svg{min-width:0;max-width:32rem}
pre{max-height:none}
a{color:inherit;text-decoration:none}
}
"""
