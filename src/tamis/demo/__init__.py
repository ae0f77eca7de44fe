"""A demonstration in a minute or two: on Spark (`pipeline`), and in one process (`library`)."""
