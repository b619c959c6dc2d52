"""What the offline commands print and write: console, Markdown, HTML, JUnit, CSV."""
