"""A mistake that the reader can mend, and the words for it."""


class UserError(Exception):
    """A mistake that the reader can mend, told in one line."""


def cause(error):
    """An error of the system as words that name the file: never its number."""
    if not (isinstance(error, OSError) and error.strerror):
        return str(error)
    reason = error.strerror[0].lower() + error.strerror[1:]
    return f"{error.filename}: {reason}" if error.filename else reason


def tell_of_the_store(store):
    """Print why progress can't be kept, if so. Raises UserError where this command's own is lost:
    its process ends, and nothing waits for a disk with room.
    """
    from lightspeed_course.practice import store_file

    notice = store.take_notice()
    if notice and store_file.unwritten():
        raise UserError(f"{notice.removesuffix(store_file.MEANWHILE)} Nothing of this was kept.")
    if notice:
        print(notice)
