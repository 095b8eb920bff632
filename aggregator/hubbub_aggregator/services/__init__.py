"""The gRPC services, one file each: they translate between the wire and the rest."""
