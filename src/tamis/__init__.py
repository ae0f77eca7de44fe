"""Tamis."""
