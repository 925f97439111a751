"""A class: assignments released, collected, graded in a sandbox and returned, and a gradebook that
loses nothing.

`class_folder` is the folder of a class and `roster` its students; `handout/` makes their notebooks,
`intake/` takes in what they hand in, `grading/` judges it in a sandbox, `desk/` is where people
mark, `gradebook` keeps all, `reports/` gives back. `sample_class` invents a class to rehearse with.
"""
