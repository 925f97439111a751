"""The web edition: the chapters as a static site, live by the same Python in a worker.

    make site && make serve

`live` runs in the reader's browser; all else builds the site.
"""
