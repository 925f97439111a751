"""The questions: `<topic>.py`, `<topic>_<part>.py`; `lightspeed_course.practice.questions` finds
them.
"""
