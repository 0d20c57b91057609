"""Reads a report's HTML as strictly as a browser is lenient."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from itertools import pairwise

VOID = {"meta", "br", "hr", "img", "input", "link"}
SHAPES = {"path", "use", "rect", "circle", "line"}


class Read(HTMLParser):
    """The tags of a page in order, its texts, and what is wrong with it."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.wrong: list[str] = []
        self.feed(page)
        self.close()
        if self.open:
            self.wrong.append(f"never closed: {self.open}")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if len(dict(attrs)) != len(attrs):
            self.wrong.append(f"an attribute twice: {tag} {attrs}")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"closed out of turn: {tag}")

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.texts)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def faults(page: str) -> list[str]:
    """What keeps a page from being one file that runs nothing, asks for nothing and is easy to read."""
    read = Read(page)
    found = list(read.wrong)
    names = {tag for tag, _ in read.tags}
    found += [
        f"<{tag}>" for tag in names & {"script", "iframe", "object", "embed", "img", "link", "form", "base"}
    ]
    for tag, attributes in read.tags:
        for name, value in attributes.items():
            if name.startswith("on") or name in ("style", "src", "srcset", "action"):
                found.append(f"{tag} has {name}")
            if "href" in name and not (value or "").startswith("#"):
                found.append(f"{tag} leads to {value}")
            if (
                value
                and re.search(r"https?:|//|javascript:", value)
                and name not in ("content", "aria-label")
            ):
                found.append(f"{tag} {name}={value[:60]}")
    identifiers = [a["id"] for _, a in read.tags if "id" in a]
    found += [f"twice: {one}" for one in set(identifiers) if identifiers.count(one) > 1]
    for _, attributes in read.tags:
        for name, value in attributes.items():
            goal = value[1:] if "href" in name and value else None
            if goal and goal not in identifiers:
                found.append(f"leads nowhere: {goal}")
            if name == "aria-labelledby" and value not in identifiers:
                found.append(f"labelled by nothing: {value}")
    found += _headings(read) + _figures(read) + _policy(page)
    if not read.of("html") or read.of("html")[0].get("lang") != "en":
        found.append("no language")
    return found


def _headings(read: Read) -> list[str]:
    levels = [int(tag[1]) for tag, _ in read.tags if re.fullmatch("h[1-6]", tag)]
    found = [] if levels[:1] == [1] and levels.count(1) == 1 else ["one h1 comes first"]
    return found + [f"from h{a} to h{b}" for a, b in pairwise(levels) if b > a + 1]


def _figures(read: Read) -> list[str]:
    found = [
        f"no words for a figure: {a}"
        for a in read.of("svg")
        if not a.get("aria-label") or a.get("role") != "img"
    ]
    if len(read.of("figure")) != len(read.of("svg")):
        found.append("a figure without a drawing")
    if read.of("svg") and not any(tag in SHAPES for tag, _ in read.tags):
        found.append("nothing is drawn")
    found += ["a table without a caption"] * (len(read.of("table")) - len(read.of("caption")))
    return found


def _policy(page: str) -> list[str]:
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256((style[1] if style else "").encode()).digest()).decode()
    meta = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    if meta is None or "default-src 'none'" not in meta[1] or f"'sha256-{digest}'" not in meta[1]:
        return ["the policy does not allow the page's own style, or allows more"]
    return []
