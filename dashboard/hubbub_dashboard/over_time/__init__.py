"""One metric over its rounds: what is drawn, what changed, and how both are said.

Pure, but for `reading`, which asks for the rounds.

    figures      a round's shares, and what changed between two rounds, as arrays
    series       the rounds that are drawn, their gaps, and the steps between them
    changes      which steps of which values stand out of the noise, and which values are drawn
    sentences    what changed, in words
    notes        what the panels promise, and what they leave out, in words
    panels       a panel's rows, one panel for each value that is drawn, and its axis's ends
    line_chart   how a panel is drawn
    states       what state the page is in
    tables       the figures as HTML, and of every value as columns
    files        the figures as CSV and Parquet
"""
