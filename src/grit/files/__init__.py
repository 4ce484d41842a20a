"""Files on disk: written whole or not at all, checked before they are read, cached, and safe in a spreadsheet."""
