"""Hubbub's dashboard: live estimates with their uncertainty, read from the aggregator."""
