"""Splits Markdown files into the paragraphs that are searched."""

import re
from dataclasses import dataclass

FEWEST_WORDS = 6
FEWEST_IN_A_ROW = 10  # words of a table row; shorter rows are mostly numbers


@dataclass
class Paragraph:
    file: str
    heading: str
    text: str

    def for_embedding(self):
        """Returns heading and text: the heading gives the subject of a paragraph that begins with "It"."""
        return f"{self.heading}. {self.text}"


def _plain(text):
    """Removes Markdown markup."""
    text = re.sub(r"!\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"[*`]+|(?<!\w)_|_(?!\w)", "", text)
    return re.sub(r"\s+", " ", text).strip(" |")


def paragraphs(path, name):
    """Returns the paragraphs, list items and table rows of a file with their headings, without code blocks."""
    found, heading, lines, in_code = [], path.stem, [], False

    def finish(fewest=FEWEST_WORDS):
        text = _plain(" ".join(lines))
        lines.clear()
        if len(text.split()) >= fewest:
            found.append(Paragraph(name, heading, text))

    for line in path.read_text(encoding="utf-8").splitlines():
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif in_code:
            continue
        elif line.startswith("#"):
            finish()
            heading = _plain(line.lstrip("#"))
        elif line.startswith("|"):
            finish()
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            if not set(line) <= set("|-: "):
                lines.append(": ".join(cell for cell in cells if cell))
            finish(FEWEST_IN_A_ROW)
        elif not line.strip():
            finish()
        else:
            if re.match(r"\s*([-*]|\d+\.)\s", line):
                finish()
                line = re.sub(r"^\s*([-*]|\d+\.)\s", "", line)
            lines.append(line)
    finish()
    return found


def project(root):
    """Returns the paragraphs of README.md and docs/*.md of a checkout."""
    files = [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    return [one for path in files if path.is_file() for one in paragraphs(path, str(path.relative_to(root)))]
