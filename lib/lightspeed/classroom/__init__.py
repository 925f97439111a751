"""Classroom: assignments graded in a sandbox, and a gradebook that loses nothing.

`sandbox` and `seccomp` confine, `student` runs inside, `notebooks` reads submissions, `grade` judges one,
`gradebook` keeps all, `batch` grades many.
"""
