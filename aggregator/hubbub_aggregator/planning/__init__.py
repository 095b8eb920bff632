"""Before anything is collected: which mechanism to choose, and what it will buy.

parameters    every choice of a mechanism's parameters that may be the best
choice        which mechanism and parameters are the most accurate, and why
memoised      the same for mechanisms with a memo, which has to be paid for
power         how large a share has to be to be seen
series        how often a device is asked, and what it pays for that
work          what reports cost the aggregator
planner       what a mechanism, an ε and a number of reports will show, and cost
"""
