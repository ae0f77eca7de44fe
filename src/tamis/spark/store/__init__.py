"""What a store of versions needs of Spark: changes as DataFrames, and pins of micro-batches."""
