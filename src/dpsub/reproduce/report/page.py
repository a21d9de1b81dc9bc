"""The report as one page in HTML that needs no network: text, tables, pictures, styles and programs stand in it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

FOLDER = "templates"
LIBRARY = "html/dt_bundle.js"  # DataTables and what it needs, as the package itables ships them


def render(content: Mapping[str, Any]) -> bytes:
    """Return the page made of `content`; the same content gives the same bytes.

    Every value goes through Jinja's escaping. The page forbids the browser to load anything, and to run any program but
    its own, which it knows by the digest of all that is shown.

    Parameters
    ----------
    content : mapping
        The names that the template ``templates/body.html.j2`` asks for.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("dpsub.reproduce.report", FOLDER), autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    body = environment.get_template("body.html.j2").render(content)
    own = resources.files("dpsub.reproduce.report") / FOLDER
    whole = environment.get_template("index.html.j2").render(
        body=Markup(body),
        nonce=hashlib.sha256(body.encode()).hexdigest()[:32],
        library=data_uri((resources.files("itables") / LIBRARY).read_bytes(), "text/javascript"),
        style=Markup((own / "page.css").read_text(encoding="utf-8")),
        program=Markup((own / "page.js").read_text(encoding="utf-8")),
    )
    return whole.encode()


def data_uri(content: bytes, kind: str) -> str:
    """Return `content` as an address that holds it."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
