"""From a DataFrame of subscriptions to the files of an index."""
