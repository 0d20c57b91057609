"""``language-model``: a small transformer learns the help texts of Python, a character at a time.

Workload, beside what all trainings have: ``layers``, ``width``, ``heads``, ``context`` (characters that it
reads), and ``sha256``: the hash of the text where it must be a certain one, since each version of Python has
its own. The text's own hash is in the facts of a trial, so that two machines can be compared.
"""

from __future__ import annotations

from training_data import Data, hash_of, python_help, text
from training_models import Blocks, language_model
from training_objective import Textbook, TrainingObjective
from training_plan import Plan

from autotune.measure.objective import Context, Infeasible


class LanguageModel(TrainingObjective):
    default = Plan(batch=32, weight_decay=1e-2)
    textbooks = (
        Textbook(
            "gpt-textbook",
            "AdamW at 0.0006, betas 0.9 and 0.95, decay 0.1, clipped at 1, half a cosine (Brown et al., "
            "2020)",
            Plan(rate=6e-4, warmup=0.05, schedule="cosine", beta2=0.95, weight_decay=0.1, clip=1.0, batch=32),
        ),
        Textbook("adam-textbook", "Adam at 0.001 (Kingma and Ba, 2015, and most libraries)", Plan(batch=32)),
    )

    workload_facts = (*TrainingObjective.training_facts, "layers", "width", "heads", "context", "sha256")
    least_sizes = (("layers", 0), ("width", 1), ("heads", 1), ("context", 1))

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        width, heads = self.sizes["width"], self.sizes["heads"]
        if width % heads:
            raise Infeasible(f"a width of {width} has no {heads} equal parts, one for each of the heads")
        wanted = context.workload.get("sha256")
        if wanted and wanted != (found := hash_of(python_help())):
            raise Infeasible(
                f"the help texts of this Python have the hash {found}, and the workload says {wanted}"
            )

    def make_data(self) -> Data:
        return text(self.prepared_data, self.sizes["context"])

    def make_model(self) -> Blocks:
        return language_model(**self.sizes)
