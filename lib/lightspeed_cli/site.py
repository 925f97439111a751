"""`lightspeed site`: the web edition, built and served."""

from pathlib import Path

from lightspeed_cli.argument_types import port
from lightspeed_cli.errors import UserError

NAME = "site"


def add(parser):
    """Add the output folder, and whether to serve it."""
    parser.add_argument("folder", nargs="?", default=NAME, help="where the site goes: ./site")
    parser.add_argument(
        "--lite", action="store_true", help="with JupyterLite: each chapter as a live notebook"
    )
    parser.add_argument("--book", metavar="FILE", help="no site, but its pages as one PDF")
    parser.add_argument("--serve", action="store_true", help="serve a site that is built")
    parser.add_argument("--port", type=port, default=8000, help="of --serve (8000)")


def run(options):
    """Build the site from the chapters of this checkout, or serve it."""
    if options.serve:
        from lightspeed_authoring.site.serve import serve

        if not Path(options.folder, "index.html").is_file():
            raise UserError(f"there is no site in {options.folder}: build it with lightspeed site")
        serve(Path(options.folder), options.port)
        return
    from lightspeed_authoring.site.build import build
    from lightspeed_authoring.site.build_lite import build_lite
    from lightspeed_authoring.site.edition import CannotBuild
    from lightspeed_course.workspace import course_root

    if options.book:
        from lightspeed_authoring.site.book import print_book

        try:
            print_book(course_root(), options.book)
        except CannotBuild as problem:
            raise UserError(str(problem)) from None
        return
    try:
        build(course_root(), options.folder, lite=build_lite if options.lite else None)
    except CannotBuild as problem:
        raise UserError(str(problem)) from None
    print(f"The site is in {options.folder}: any static host can serve it, under any path.")
