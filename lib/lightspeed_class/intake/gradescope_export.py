"""Gradescope's download of submissions: whose a folder is, and when it was handed in.

    assignment_9_export/submission_metadata.yml
    assignment_9_export/submission_123/02_roofline.ipynb

The file of YAML has for each folder `:submitters:` with `:name:`, `:sid:` and `:email:`, and
`:created_at:`. A folder of several is taken in for each of them. What lies in a folder is called as
the student likes, so that no name in it is believed.
"""

import re
from dataclasses import replace
from datetime import UTC, datetime

from lightspeed_class.intake.match_submissions import STRANGER
from lightspeed_class.notebooks import Refused

METADATA = "submission_metadata.yml"
LARGEST = 8 << 20
FOLDER = re.compile(r"submission_\d+")


def signed(items, people):
    """Return the items, with student and time for those of a Gradescope export; and why these are
    unknown, if so. The export's own file is dropped.
    """
    about = min(
        (i for i in items if i.path.rpartition("/")[2] == METADATA),
        key=lambda item: item.path.count("/"),
        default=None,
    )
    if not about or any(map(FOLDER.fullmatch, about.path.split("/"))):
        return items, []
    home = about.path.removesuffix(METADATA)
    try:
        entries = _read(about)
    except (Refused, ValueError) as error:
        return items, [f"{about.source}: it does not say who handed in: {error}"]
    files = []
    for item in items:
        folder = item.path.removeprefix(home).partition("/")[0]
        entry = entries.get(folder) if item.path.startswith(home) else None
        owners = sorted(_owners(entry, people)) if entry else []
        at, rest = _time(entry) if entry else None, item.path.removeprefix(f"{home}{folder}/")
        names = [f"{home}{folder}/{owner}/{rest}" for owner in owners]
        if not owners and item is not about:
            plain = f"{home}{folder}/{STRANGER}{rest.replace('/', '~')}"
            names = [plain if FOLDER.fullmatch(folder) else item.path]
        files += [replace(item, path=name, at=item.at if at is None else at) for name in names]
    return files, []


def _read(item):
    """Folder -> what is said of it. Raises Refused and ValueError."""
    import yaml

    content = item.read()
    if len(content) > LARGEST:
        raise ValueError(f"it is larger than {LARGEST >> 20} MiB")
    try:
        table = yaml.load(content, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, RecursionError, UnicodeError) as error:
        raise ValueError(f"it is not YAML ({type(error).__name__})") from None
    if not isinstance(table, dict):
        raise ValueError("it is not a table of folders")
    return {str(folder): entry for folder, entry in table.items() if isinstance(entry, dict)}


def _owners(entry, people):
    """The ids of those of the roster who handed it in."""
    submitters = entry.get(":submitters")
    for one in submitters if isinstance(submitters, list) else ():
        for key in (":email", ":sid", ":name") if isinstance(one, dict) else ():
            matches = people.named(str(one[key])) if one.get(key) else ()
            if len(matches) == 1:
                yield next(iter(matches))
                break


def _time(entry):
    at = entry.get(":created_at")
    if not isinstance(at, datetime):
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
