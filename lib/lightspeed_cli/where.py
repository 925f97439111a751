"""`lightspeed where`: folders and versions, for a report of a bug."""

import platform
import sys
from importlib.metadata import PackageNotFoundError, version


def add(parser):
    """The verb has no arguments."""


def run(options):
    """Print the folders in use."""
    from lightspeed_course import workspace
    from lightspeed_course.practice import store_file

    print(f"workspace  {workspace.workspace_root()}")
    print(f"progress   {store_file.path().parent}")
    print(f"course     {workspace.course_root()}")
    print(f"python     {platform.python_version()} at {sys.executable}")
    print(f"system     {platform.platform()}")
    for package in (
        "speed-of-light",
        "jupyterlab",
        "ipywidgets",
        "anywidget",
        "numpy",
        "pint",
        "matplotlib",
    ):
        try:
            print(f"{package:<15}{version(package)}")
        except PackageNotFoundError:
            print(f"{package:<15}not installed")
