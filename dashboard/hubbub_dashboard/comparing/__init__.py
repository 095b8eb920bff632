"""What differs between two values, two rounds or two metrics, in words, as a chart and a table."""
