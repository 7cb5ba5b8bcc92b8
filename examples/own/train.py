#!/usr/bin/env python3
"""train.py - gradient descent on a valley, instead of your training. Only the print at the end of each epoch is Trawl's.

usage: python3 train.py --lr 0.1 --momentum 0.9 --epochs 40 [--seed 1]
"""
import argparse
import random


def train(lr, momentum, epochs, seed):
    rng = random.Random(seed)
    x, y, dx, dy = rng.uniform(-2, 2), rng.uniform(-2, 2), 0.0, 0.0
    for epoch in range(1, epochs + 1):
        dx, dy = momentum * dx - lr * 2 * x, momentum * dy - lr * 0.2 * y
        x, y = max(-1e6, min(1e6, x + dx)), max(-1e6, min(1e6, y + dy))
        loss = x * x + 0.1 * y * y
        print(f"TRAWL score={1 / (1 + loss):.5f} step={epoch} cost={epoch}")  # the one line


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, required=True)
    parser.add_argument("--momentum", type=float, default=0.0)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    train(options.lr, options.momentum, options.epochs, options.seed)
