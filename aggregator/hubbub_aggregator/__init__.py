"""Hubbub's aggregator: counts sealed reports exactly once, and says what the crowd says."""
