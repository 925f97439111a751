"""The tables of a gradebook, as the steps that lead to them."""

# One step per version of the schema; a step is never changed once it has been released.
MIGRATIONS = (
    """
    CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
    CREATE TABLE students (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, seed TEXT, details TEXT NOT NULL
    );
    CREATE TABLE assignments (
        number INTEGER PRIMARY KEY, name TEXT NOT NULL, content TEXT NOT NULL,
        seeded INTEGER NOT NULL, at REAL NOT NULL
    );
    CREATE TABLE submissions (
        id INTEGER PRIMARY KEY, student TEXT NOT NULL REFERENCES students(id),
        assignment TEXT NOT NULL, at REAL NOT NULL, source TEXT NOT NULL, sha256 TEXT NOT NULL,
        refused TEXT NOT NULL, content BLOB, UNIQUE (student, assignment, sha256)
    );
    CREATE TABLE chosen (
        number INTEGER PRIMARY KEY, submission INTEGER NOT NULL REFERENCES submissions(id),
        at REAL NOT NULL
    );
    CREATE TABLE gradings (
        id INTEGER PRIMARY KEY, submission INTEGER NOT NULL REFERENCES submissions(id),
        key TEXT NOT NULL, at REAL NOT NULL, graded TEXT NOT NULL, UNIQUE (submission, key)
    );
    CREATE TABLE manual (
        number INTEGER PRIMARY KEY, student TEXT NOT NULL REFERENCES students(id),
        assignment TEXT NOT NULL, question TEXT NOT NULL, points REAL, comment TEXT NOT NULL,
        by TEXT NOT NULL, at REAL NOT NULL
    );
    CREATE INDEX manual_of ON manual (assignment, student);
    CREATE TRIGGER submissions_stay BEFORE UPDATE ON submissions
        BEGIN SELECT RAISE(ABORT, 'submissions are only added'); END;
    CREATE TRIGGER submissions_last BEFORE DELETE ON submissions
        BEGIN SELECT RAISE(ABORT, 'submissions are only added'); END;
    CREATE TRIGGER gradings_stay BEFORE UPDATE ON gradings
        BEGIN SELECT RAISE(ABORT, 'gradings are only added'); END;
    CREATE TRIGGER gradings_last BEFORE DELETE ON gradings
        BEGIN SELECT RAISE(ABORT, 'gradings are only added'); END;
    CREATE TRIGGER manual_stay BEFORE UPDATE ON manual
        BEGIN SELECT RAISE(ABORT, 'manual entries are only added'); END;
    CREATE TRIGGER manual_last BEFORE DELETE ON manual
        BEGIN SELECT RAISE(ABORT, 'manual entries are only added'); END;
    """,
    # When a submission was really handed in, where that is known later; and in `chosen` that
    # neither it counts nor any before it.
    """
    CREATE TABLE times (
        number INTEGER PRIMARY KEY, submission INTEGER NOT NULL REFERENCES submissions(id),
        at REAL NOT NULL, source TEXT NOT NULL
    );
    CREATE INDEX times_of ON times (submission);
    CREATE TRIGGER times_stay BEFORE UPDATE ON times
        BEGIN SELECT RAISE(ABORT, 'times are only added'); END;
    CREATE TRIGGER times_last BEFORE DELETE ON times
        BEGIN SELECT RAISE(ABORT, 'times are only added'); END;
    ALTER TABLE chosen ADD COLUMN none INTEGER NOT NULL DEFAULT 0;
    """,
    # What people decide of a student: "extended" (value: when it is due), "excused", "left",
    # "regrade QUESTION" (reason: why a student asks for another look at it); and
    # of the class, without a student: "late rule". A value of NULL takes back what was before.
    """
    CREATE TABLE decisions (
        number INTEGER PRIMARY KEY, what TEXT NOT NULL, student TEXT REFERENCES students(id),
        assignment TEXT NOT NULL, value TEXT, reason TEXT NOT NULL, by TEXT NOT NULL,
        at REAL NOT NULL
    );
    CREATE TRIGGER decisions_stay BEFORE UPDATE ON decisions
        BEGIN SELECT RAISE(ABORT, 'decisions are only added'); END;
    CREATE TRIGGER decisions_last BEFORE DELETE ON decisions
        BEGIN SELECT RAISE(ABORT, 'decisions are only added'); END;
    """,
    # Versions of rubric items, of which the last one counts; without points it is withdrawn. In
    # `manual`: what was chosen of them, the automatic points that they add to, and the entry that
    # one takes back.
    """
    CREATE TABLE rubric (
        number INTEGER PRIMARY KEY, item INTEGER NOT NULL, assignment TEXT NOT NULL,
        question TEXT NOT NULL, words TEXT NOT NULL, points REAL, by TEXT NOT NULL, at REAL NOT NULL
    );
    CREATE TRIGGER rubric_stays BEFORE UPDATE ON rubric
        BEGIN SELECT RAISE(ABORT, 'rubric items are only added'); END;
    CREATE TRIGGER rubric_lasts BEFORE DELETE ON rubric
        BEGIN SELECT RAISE(ABORT, 'rubric items are only added'); END;
    ALTER TABLE manual ADD COLUMN items TEXT NOT NULL DEFAULT '[]';
    ALTER TABLE manual ADD COLUMN base REAL NOT NULL DEFAULT 0;
    ALTER TABLE manual ADD COLUMN undoes INTEGER;
    """,
    # What earlier versions of the course sent to Canvas by its API; nothing is added any more.
    """
    CREATE TABLE sent (
        number INTEGER PRIMARY KEY, place TEXT NOT NULL, student TEXT NOT NULL REFERENCES
        students(id), what TEXT NOT NULL, value TEXT NOT NULL, done INTEGER NOT NULL,
        at REAL NOT NULL
    );
    CREATE INDEX sent_to ON sent (place);
    CREATE TRIGGER sent_stays BEFORE UPDATE ON sent
        BEGIN SELECT RAISE(ABORT, 'what was sent is only added'); END;
    CREATE TRIGGER sent_lasts BEFORE DELETE ON sent
        BEGIN SELECT RAISE(ABORT, 'what was sent is only added'); END;
    """,
    # What each release asked and each seed drew, compressed; the version in notebooks.
    """
    CREATE TABLE released (
        number INTEGER PRIMARY KEY, assignment TEXT NOT NULL, version TEXT NOT NULL,
        content TEXT NOT NULL, at REAL NOT NULL
    );
    CREATE TABLE asked (
        number INTEGER PRIMARY KEY, assignment TEXT NOT NULL, version TEXT NOT NULL,
        seed TEXT NOT NULL, content BLOB NOT NULL, at REAL NOT NULL
    );
    CREATE INDEX asked_of ON asked (assignment, version, seed);
    CREATE TRIGGER asked_stays BEFORE UPDATE ON asked
        BEGIN SELECT RAISE(ABORT, 'what was asked is only added'); END;
    CREATE TRIGGER asked_lasts BEFORE DELETE ON asked
        BEGIN SELECT RAISE(ABORT, 'what was asked is only added'); END;
    ALTER TABLE submissions ADD COLUMN version TEXT NOT NULL DEFAULT '';
    """,
    # What a version's answers are run by: `digests` of libraries, the latest correction's first,
    # and that of the exercise it was made from; all stand in `contents`. And when the same bytes
    # came again after others, which makes them the last ones; and files that came with a notebook.
    """
    CREATE TABLE contents (digest TEXT PRIMARY KEY, content BLOB NOT NULL);
    CREATE TABLE imported (
        number INTEGER PRIMARY KEY, assignment TEXT NOT NULL, version TEXT NOT NULL,
        digests TEXT NOT NULL, exercise TEXT NOT NULL, at REAL NOT NULL
    );
    CREATE TABLE again (
        number INTEGER PRIMARY KEY, submission INTEGER NOT NULL REFERENCES submissions(id),
        at REAL NOT NULL
    );
    CREATE TABLE beside (
        number INTEGER PRIMARY KEY, submission INTEGER NOT NULL REFERENCES submissions(id),
        name TEXT NOT NULL, digest TEXT NOT NULL, UNIQUE (submission, name, digest)
    );
    CREATE TRIGGER contents_stay BEFORE UPDATE ON contents
        BEGIN SELECT RAISE(ABORT, 'contents are only added'); END;
    CREATE TRIGGER imported_stays BEFORE UPDATE ON imported
        BEGIN SELECT RAISE(ABORT, 'what was imported is only added'); END;
    """,
)


class Newer(RuntimeError):
    """The file was written by a newer version of the course."""


class Changed(RuntimeError):
    """Another person saved an entry in the meantime."""
