"""Which hosts hold what: replicated, sharded, or by source."""
