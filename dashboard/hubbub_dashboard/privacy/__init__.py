"""What the page about privacy is made of.

promise           what a contract proves, and what the owner of a device is told of it
beliefs           how sure somebody can be afterwards who thought something before
witnesses         who sees what
sentences         these in words
privacy_markup    these as tables
privacy_states    what stands in the way
attack            what hostile reports could have done to a snapshot
attack_sentences  that in words
attack_chart      that in the live page's chart
attack_markup     that as a table
"""
