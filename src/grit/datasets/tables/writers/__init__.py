"""Tables as files: a writer for each format. What a writer wrote the reader of the format reads back, cell for cell."""
