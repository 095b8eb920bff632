"""One snapshot: which of its values are shown, as a chart, and what it says."""
