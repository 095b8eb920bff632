"""From counts to figures: what a tally says, and how sure it is. Pure functions of numbers.

intervals     what a share may be, given how many reports support it
estimate      every value's share, with intervals and ranks
anytime       what may be called present while a round is open, however often one looks
consistent    shares that could be true: none below zero, all together everybody
moments       how a mechanism's estimates vary together, by how it treats pairs of values
space_moments the same where values are points of a projective space
covariance    how the estimates of one crowd vary together
linear        weighted sums of shares, such as a mean
comparison    two sides of comparisons, and how they vary together
differences   differences of shares, with intervals and p-values
pooled        every value's share over several rounds
"""
