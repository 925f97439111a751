"""The numbers of a student in a notebook that all of a class were given: drawn by the id that they
write into it.

What draws them, the seed of each student, is sealed with the names that they go by in the class,
so that the notebook lists nobody. That is no secret: who knows an id can open what it seals, as
whoever is shown another's notebook sees its numbers. No hidden input can be drawn from a seed.
Who tries ids finds those that are there; each try takes 16 MB and about a twentieth of a second,
once for the class and once for each name when it is sealed.
"""

import base64
import hashlib
import time
from concurrent.futures import ThreadPoolExecutor

COST = {"n": 1 << 14, "r": 8, "p": 1, "maxmem": 64 << 20}  # of scrypt
ROUNDS = 2000  # of what notebooks had that were given out before
NOW = "2:"  # what is sealed as it is now begins with this
SALT, KEY = 8, 6  # bytes
MEASURED = 32  # names that are sealed before it is said how long all will take
ALIKE = str.maketrans("ol", "01")  # letters that are taken for digits


class NoStudent(ValueError):
    """No student of the class has this id; the message says what to write."""


def own_numbers(student, sealed):
    """Return the seed of the student with this id. Raises NoStudent."""
    name = spoken(student)
    data = base64.b64decode(sealed.removeprefix(NOW))
    salt, size, records = data[:SALT], data[SALT], data[SALT + 1 :]
    step = KEY + size
    by_key = {
        records[i : i + KEY]: records[i + KEY : i + step] for i in range(0, len(records), step)
    }

    def seed(text):
        key, pad = _key(text, salt, size, sealed.startswith(NOW))
        record = by_key.get(key)
        return record and bytes(map(int.__xor__, record, pad)).rstrip(b"\0").decode()

    if match := seed(name):
        print(f"The questions of this notebook have the numbers of {name}.")
        return match
    near_name = next((text for text in _slips(name) if seed(text)), "")
    hint = (
        f'Did you mean "{near_name}"?'
        if near_name
        else "Write your id as the class's lists have it, or the login or e-mail address that they"
        " have. If you joined later, ask for the notebook as it is handed out now."
    )
    raise NoStudent(f'STUDENT = "{name}": no student of this class goes by that name. {hint}')


def seal(seeds, salt, progress=lambda line: None):
    """Encode for own_numbers: students' names -> their seeds. `progress` gets a line on how long it
    takes, once that is known.
    """
    size = max((len(seed.encode()) for seed in seeds.values()), default=0)

    def record(name):
        key, pad = _key(name, salt, size)
        return key + bytes(map(int.__xor__, seeds[name].encode().ljust(size, b"\0"), pad))

    threads, begin, records = ThreadPoolExecutor(), time.monotonic(), []
    try:
        for sealed in threads.map(record, seeds):
            records.append(sealed)
            if len(records) == MEASURED:
                seconds = (time.monotonic() - begin) / MEASURED * len(seeds)
                progress(f"Sealing {len(seeds)} names, about {seconds:.0f} s.")
    finally:
        threads.shutdown(cancel_futures=True)  # Ctrl+C waits for no name that is still to come
    # in the order of the keys, which tells nothing of the roster's
    content = salt + bytes([size]) + b"".join(sorted(records))
    return NOW + base64.b64encode(content).decode()


def spoken(student):
    """Return the id as written. Raises NoStudent if it is not one."""
    if isinstance(student, str) and student.strip() not in ("", "...", "…"):
        return student.strip()
    if isinstance(student, str) or student is ...:
        raise NoStudent(
            'STUDENT is empty: write your id between the quotation marks, such as STUDENT = "ada",'
            " and run the cell again."
        )
    raise NoStudent(
        f"STUDENT = {student!r}: an id stands in quotation marks, with all of its zeros. Did you"
        f' mean STUDENT = "{student}"?'
    )


def _key(name, salt, size, now=True):
    """(what a name is found by, what its seed is sealed with)."""
    text = name.strip().casefold().encode()
    if now:
        digest = hashlib.scrypt(text, salt=salt, dklen=KEY + size, **COST)
    else:
        digest = hashlib.pbkdf2_hmac("sha256", text, salt, ROUNDS, dklen=KEY + size)
    return digest[:KEY], digest[KEY:]


def _slips(name):
    """What somebody may have meant who wrote this."""
    bare = name.strip("'\"<>()[]{}.,;:@# ")
    yield bare
    yield "".join(bare.split())
    yield bare.partition("@")[0]
    yield bare.casefold().translate(ALIKE)
    yield bare.lstrip("0")
    yield from ("0" * zeros + bare for zeros in range(1, 4) if bare.isdecimal())
    yield from (bare[:i] + bare[i + 1] + bare[i] + bare[i + 2 :] for i in range(len(bare) - 1))
