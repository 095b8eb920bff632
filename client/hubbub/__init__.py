"""Hubbub's device SDK: randomise a value here, send the noisy report, keep account of ε."""
