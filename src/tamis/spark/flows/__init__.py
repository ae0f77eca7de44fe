"""Rules with memory on Spark: `tamis.spark.flow`."""
