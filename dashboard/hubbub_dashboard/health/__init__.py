"""How the aggregator is doing, in words, tiles and charts."""
