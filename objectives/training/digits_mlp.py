"""``digits-mlp``: a perceptron learns scikit-learn's digits; how it is trained is tuned, not its size.

Workload, beside what all trainings have: ``width`` and ``depth`` of its hidden layers.
"""

from __future__ import annotations

from training_data import Data, digits
from training_models import Blocks, perceptron
from training_objective import Textbook, TrainingObjective
from training_plan import Plan

IMAGES = (
    Textbook(
        "sgd-textbook",
        "SGD at 0.1 for 256 images, momentum 0.9, five hundredths of warm-up (Goyal et al., 2017), half "
        "a cosine",
        Plan(
            rate=0.025, coupling="linear", warmup=0.05, schedule="cosine", optimiser="sgd", weight_decay=1e-4
        ),
    ),
    Textbook(
        "adam-textbook",
        "Adam at 0.001, 32 images at once (Kingma and Ba, 2015, and most libraries)",
        Plan(batch=32),
    ),
)


DEFAULT = Plan(weight_decay=1e-4)


class DigitsPerceptron(TrainingObjective):
    default = DEFAULT
    textbooks = IMAGES
    workload_facts = (*TrainingObjective.training_facts, "width", "depth")
    least_sizes = (("width", 1), ("depth", 0))

    def make_data(self) -> Data:
        return digits(self.prepared_data)

    def make_model(self) -> Blocks:
        return perceptron(**self.sizes)
