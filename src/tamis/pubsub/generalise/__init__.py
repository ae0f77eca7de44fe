"""Makes routing entries of neighbours smaller without losing a match."""
