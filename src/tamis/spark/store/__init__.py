"""Where the files of an index lie, in which versions, and who still needs them."""
