"""What the aggregator answers, asked for once for all viewers and kept while it is of use."""
