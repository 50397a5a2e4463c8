"""Writes src/muhat/demo/salaries.csv: invented people, the same on every run.

python scripts/make_demo_data.py
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

PEOPLE = 10_000
TARGET = Path(__file__).parent.parent / "src" / "muhat" / "demo" / "salaries.csv"


def main() -> None:
    generator = np.random.default_rng(20_260_000)
    age = np.clip(np.round(16 + 74 * generator.beta(2.2, 3.2, PEOPLE)), 16, 90).astype(int)
    experience = np.clip(age - 20, 0, 35)
    salary = np.exp(10.35 + 0.022 * experience + 0.35 * generator.standard_normal(PEOPLE))
    hours = np.clip(np.round(generator.normal(37, 6, PEOPLE), 1), 4, 70)
    department = generator.choice(["care", "sales", "research", "works"], PEOPLE)
    with TARGET.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["salary", "age", "hours", "department"])
        writer.writerows(zip(salary.round().astype(int), age, hours, department, strict=True))


if __name__ == "__main__":
    main()
