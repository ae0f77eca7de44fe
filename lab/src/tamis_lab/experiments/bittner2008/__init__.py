"""General Boolean expressions in publish-subscribe systems (Bittner, thesis, Waikato 2008).

Files named after a table or figure are of the chapters on memory (3 and 5); the others, named after what they
vary, are of the chapters on routing (6 to 8), and share the network of `auction_network`.
"""
