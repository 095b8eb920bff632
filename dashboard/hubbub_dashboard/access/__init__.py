"""Who reaches the page, and who may read it."""
