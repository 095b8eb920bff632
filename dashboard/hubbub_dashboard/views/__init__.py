"""The pages, one a file: each says what it is for in its first line, and is a function `page`.

Not in a folder named `pages`: Streamlit would show such files itself to whoever comes first by a
page's own address.
"""
