# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The answer to a study's question, from its results alone.

from warifu.answer import answer
found = answer(predicted, measured, comparison, judged)
print(found.question, *found.sentences, sep="\\n")
"""

from warifu.answer.build import answer
from warifu.answer.model import Answer, Badge, Change, Level, Row

__all__ = ["Answer", "Badge", "Change", "Level", "Row", "answer"]
