"""The web edition: the chapters as a static site.

    make site && make serve

What runs in the reader's browser is `lightspeed_course.web`.
"""
