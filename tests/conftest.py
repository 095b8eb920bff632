"""What all tests share: examples that are the same in every run, however slow the machine."""

from hypothesis import settings

settings.register_profile("hubbub", deadline=None, derandomize=True)
settings.load_profile("hubbub")
