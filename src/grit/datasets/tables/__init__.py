"""Tables of all formats: read row by row in bounded memory, every row accounted for, and written by the ending of the file."""
