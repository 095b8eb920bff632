"""Before anything is collected: which mechanism to choose, and what it will buy.

parameters    every choice of a mechanism's parameters that may be the best
choice        which mechanism and parameters are the most accurate, and why
power         how large a share has to be to be seen
planner       what a mechanism, an ε and a number of reports will show, and cost
"""
