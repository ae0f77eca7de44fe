"""Scalable ranked publish/subscribe (Machanavajjhala, Vee, Garofalakis and Shanmugasundaram, VLDB 2008)."""
