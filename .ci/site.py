"""A hook of MkDocs: links of the pages to files outside docs/ lead to the repository.

GitHub shows the same pages inside the repository, where these links work as they stand.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

_LINK = re.compile(r"(\]\()((?:\.\./)+[^)#\s]+)")


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:  # noqa: ANN401 - MkDocs' objects
    """Return the page with links into the repository; a link to a file that is not there raises FileNotFoundError."""
    docs = Path(config["docs_dir"])
    folder = posixpath.dirname(page.file.src_uri)

    def outside(link: "re.Match[str]") -> str:
        path = posixpath.normpath(posixpath.join("docs", folder, link[2]))
        if path.startswith("docs/"):
            return link[0]
        place = docs.parent / path
        if not place.exists():
            raise FileNotFoundError(f"{page.file.src_uri} links {link[2]}, which does not exist")
        return f"{link[1]}{config['extra']['repository']}/{'tree' if place.is_dir() else 'blob'}/main/{path}"

    return _LINK.sub(outside, markdown)
