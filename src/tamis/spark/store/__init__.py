"""The Spark side of a store: changes as DataFrames, and pins of micro-batches."""
