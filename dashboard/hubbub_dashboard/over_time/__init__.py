"""One metric over its rounds: what is drawn, what changed, and how both are said. Pure.

figures      a round's shares, and what changed between two rounds, as arrays
series       the rounds that are drawn, their gaps, and the steps between them
changes      which steps of which values stand out of the noise, and which values are drawn
sentences    what changed, in words
notes        what the panels promise, and what they leave out, in words
line_chart   a panel for each value that is drawn
tables       the figures as HTML, and of every value as columns
files        the figures as CSV and Parquet
"""
