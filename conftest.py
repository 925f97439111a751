"""For every test, and for every notebook of this course that pytest runs, wherever from."""

from hypothesis import settings

pytest_plugins = ["lightspeed_authoring.nbval_pages"]

# A deadline would make a test of truth one of speed on a busy machine.
settings.register_profile("course", deadline=None)
settings.load_profile("course")
