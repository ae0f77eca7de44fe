"""What a broker knows of its neighbours, made smaller without losing a match."""
