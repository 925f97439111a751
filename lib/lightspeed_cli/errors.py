"""A mistake that the reader can mend, and the words for it."""


class UserError(Exception):
    """A mistake that the reader can fix, in one line."""


def cause(error):
    """Describe a system error in words that name the file, without its number."""
    if not (isinstance(error, OSError) and error.strerror):
        return str(error)
    reason = error.strerror[0].lower() + error.strerror[1:]
    return f"{error.filename}: {reason}" if error.filename else reason


def tell_of_the_store(store):
    """Print why progress can't be kept, if so. Raises UserError if this command's own progress is
    lost: its process ends and cannot wait for free disk space.
    """
    from lightspeed_course.practice import store_file

    notice = store.take_notice()
    if notice and store_file.unwritten():
        raise UserError(f"{notice.removesuffix(store_file.MEANWHILE)} Nothing of this was kept.")
    if notice:
        print(notice)
