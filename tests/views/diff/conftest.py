"""Let what the stories assert say what was not so."""

import pytest

pytest.register_assert_rewrite("tests.views.diff.stories")
