"""Classroom: assignments released, collected, graded in a sandbox and returned, and a gradebook that loses nothing.

`course` is the folder of a class and `roster` its students; `release` makes their notebooks, `collect` (with `received`
and `people`) takes in what they hand in. `sandbox` and `seccomp` confine, `student` runs inside, `notebooks` reads
submissions, `grade` judges one, `gradebook` keeps all, `batch` grades many, `cluster` on Dask. `outcome` and `paper` serve
`feedback`, `export`, `report` and `report_page`. `sample` invents a class to rehearse with; `nbgrader` exports to nbgrader.
"""
