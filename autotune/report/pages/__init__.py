"""Reports and live views: their contents, and how these are written as HTML or Markdown."""
