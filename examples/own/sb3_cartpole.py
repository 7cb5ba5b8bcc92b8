"""PPO of Stable-Baselines3 on CartPole: every argument is an option of its PPO, but for the number of steps and the seed.

    pip install stable-baselines3
    trawl sweep examples/own/sb3_cartpole.ini --store own.db --name sb3"""
import argparse

import gymnasium as gym
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy

parser = argparse.ArgumentParser()
parser.add_argument("--total-timesteps", type=int, default=20000)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--learning-rate", type=float, default=3e-4)
parser.add_argument("--n-steps", type=int, default=256)
parser.add_argument("--n-epochs", type=int, default=10)
parser.add_argument("--gae-lambda", type=float, default=0.95)
options = vars(parser.parse_args())
steps = options.pop("total_timesteps")

model = PPO("MlpPolicy", "CartPole-v1", device="cpu", **options)
model.learn(steps)
score, spread = evaluate_policy(model, gym.make("CartPole-v1"), n_eval_episodes=20, warn=False)
print(f"TRAWL score={score} spread={spread} step={model.num_timesteps}")
