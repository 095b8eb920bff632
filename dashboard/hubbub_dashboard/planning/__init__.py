"""What the page about planning is made of.

question      what is asked of a plan, what comes of it, and the same as a command
made_up       a crowd with stated answers, counted and estimated as a real one
reach         what more reports would show
definition    the planned metric as metrics.toml
sentences     the figures in words
plan_markup   its own HTML
truth_chart   the live page's chart, with the truth marked
"""
