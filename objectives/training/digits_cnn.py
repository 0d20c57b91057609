"""``digits-cnn``: a small convolutional network learns scikit-learn's digits.

Workload, beside what all trainings have: ``channels`` of the first convolution.
"""

from __future__ import annotations

from digits_mlp import DEFAULT, IMAGES
from training_data import Data, digits
from training_models import Blocks, convolutional
from training_objective import TrainingObjective


class DigitsConvolutional(TrainingObjective):
    default = DEFAULT
    textbooks = IMAGES
    workload_facts = (*TrainingObjective.training_facts, "channels")
    least_sizes = (("channels", 1),)

    def make_data(self) -> Data:
        return digits(self.prepared_data)

    def make_model(self) -> Blocks:
        return convolutional(**self.sizes)
