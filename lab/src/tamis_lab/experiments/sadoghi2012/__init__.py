"""Relevance matters: top-k matching in publish/subscribe with BE*-Tree (Sadoghi and Jacobsen, ICDE 2012)."""
