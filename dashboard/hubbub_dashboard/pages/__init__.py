"""The pages, one a file: each says what it is for in its first line, and is a function `page`."""
