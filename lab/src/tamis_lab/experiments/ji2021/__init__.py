"""A-Tree: a dynamic data structure for arbitrary Boolean expressions (Ji and Jacobsen, SIGMOD 2021)."""
