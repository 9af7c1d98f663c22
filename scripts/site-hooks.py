"""What MkDocs has to do otherwise for documents that are written for GitHub; scripts/site uses it."""

import importlib.machinery
import importlib.util
import os
import pathlib
import posixpath
import re
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent
_loader = importlib.machinery.SourceFileLoader("check_links", str(ROOT / "scripts/check-links"))
check_links = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_links", _loader))
_loader.exec_module(check_links)

LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s#]+)(#[^()\s]*)?\)")
ITEM = re.compile(r"( *)([-*]|\d+\.) +(?=\S)")
FENCE = re.compile(r" *(```+|~~~+)")


def on_config(config):
    # The anchors that GitHub makes.
    config.mdx_configs["toc"] = {**config.mdx_configs.get("toc", {}), "slugify": lambda text, separator: check_links.slug(text)}
    return config


def indented(markdown):
    """Lists as Python-Markdown requires them: content is indented by 4, and a blank line ends a paragraph."""
    lines, items, fence, paragraph = [], [], None, False
    for line in markdown.splitlines():
        indentation = len(line) - len(line.lstrip())
        if fence is None and line.strip():
            while items and indentation < items[-1]:
                items.pop()
        inside = items[-1] if items else 0
        begin = FENCE.match(line)
        if begin:
            fence = begin[1] if fence is None else None if line.strip() == fence else fence
        item = None if fence else ITEM.match(line)
        if item and paragraph and lines[-1]:
            lines.append("")
        # Whether this is a further paragraph of an item.
        paragraph = not item and bool(items) and (paragraph or bool(lines) and not lines[-1])
        text = line[min(inside, indentation) :]
        lines.append(" " * 4 * len(items) + text if text else "")
        if item:
            items.append(item.end())
            # The marker keeps its column; what follows it does not matter.
    return "\n".join(lines) + "\n"


def on_page_markdown(markdown, page, config, files):
    here = posixpath.dirname(page.file.src_uri)
    repository = os.environ.get("REPOSITORY", "").rstrip("/")

    def link(match):
        text, target, anchor = match[1], match[2], match[3] or ""
        if ":" in target:
            return match[0]
        path = posixpath.normpath(posixpath.join(here, target))
        if files.get_file_from_path(path):
            return match[0]
        if files.get_file_from_path(f"{path}/README.md"):
            return f"[{text}]({target.rstrip('/')}/README.md{anchor})"
        # It is in the checkout only.
        return f"[{text}]({repository}/{path}{anchor})" if repository else text

    parts, end = [], 0
    # A link's text may be code, but no link is in a block of code.
    for block in check_links.FENCED.finditer(markdown):
        parts += [LINK.sub(link, markdown[end : block.start()]), block[0]]
        end = block.end()
    return indented("".join(parts) + LINK.sub(link, markdown[end:]))
