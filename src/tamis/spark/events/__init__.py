"""From DataFrames and files of events to the columns that matching needs."""
