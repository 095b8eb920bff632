"""Everything on one machine: a crowd with known answers, so that estimates can be checked."""
