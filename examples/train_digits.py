"""A training script as many are, with the three lines of autotune: ``run``, ``knob``, ``report``.

    python examples/train_digits.py                            # as it is
    autotune search examples/train-digits.yaml                 # tuned
    python examples/train_digits.py                            # with what was found

The last part of the digits is looked at only where nobody is searching.
"""

import time

import torch
from sklearn.datasets import load_digits
from torch import nn

import autotune

EPOCHS = 27

with autotune.run("train-digits", recipes=True) as run:
    lr = run.knob("lr", default=1e-3)
    batch_size = run.knob("batch_size", default=64)
    momentum = run.knob("momentum", default=0.9)
    width = 64

    torch.manual_seed(run.seed or 0)
    torch.set_num_threads(1)
    images, labels = load_digits(return_X_y=True)
    x = torch.tensor(images / 16.0, dtype=torch.float32)
    y = torch.tensor(labels)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    train, valid, test = order[:1080], order[1080:1440], order[1440:]

    model = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum)
    loss_of = nn.CrossEntropyLoss()
    began = time.perf_counter()
    for epoch in range(1, EPOCHS + 1):
        for rows in train[torch.randperm(len(train))].split(batch_size):
            optimizer.zero_grad()
            loss_of(model(x[rows]), y[rows]).backward()
            optimizer.step()
        with torch.no_grad():
            loss = loss_of(model(x[valid]), y[valid])
        rate = epoch * len(train) / (time.perf_counter() - began)
        run.report(epoch, loss=loss, samples_per_s=rate)
        if run.should_stop:
            break

    if not run.searching:
        with torch.no_grad():
            accuracy = (model(x[test]).argmax(1) == y[test]).float().mean()
        print(run.describe())
        print(f"after {epoch} epochs: validation loss {loss:.4f}, test accuracy {accuracy:.1%}")
