"""The web edition's pages come alive by these files, in the reader's browser: the worker's Python,
and JupyterLite's. What builds the site is `lightspeed_authoring.site`.
"""
