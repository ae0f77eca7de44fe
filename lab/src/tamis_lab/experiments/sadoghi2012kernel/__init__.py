"""Towards an extensible efficient event processing kernel (Sadoghi, SIGMOD 2012 PhD symposium)."""
