"""What all tests share."""

from hypothesis import settings

settings.register_profile("cgotel", deadline=None)  # machines that test are shared; nothing is timed
settings.load_profile("cgotel")
