import pytest
import sample_bank  # noqa: F401  (registers the questions of topic "sample")

from lightspeed_course.practice.question_text import QuestionError
from lightspeed_course.practice.questions import topics

try:
    topics()
except QuestionError as error:  # said once, not by every module that asks for questions
    pytest.exit(f"questions that cannot be read:\n{error}", returncode=1)


@pytest.fixture(autouse=True)
def _each_has_its_own(own_store):
    pass
