"""result_table.py - measurements as small CSV tables: one comment line on machine, program and command, a head, rows."""

import csv
import os


def text_of(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.6g}"
    return "" if value is None else str(value)


def line(row):
    return " ".join(f"{key}={text_of(value)}" for key, value in row.items())


def write(path, about, rows):
    """rows: dictionaries; a column for each key, in the order of coming. Written whole or not at all."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    with open(path + ".new", "w", newline="", encoding="utf-8") as file:
        file.write(f"# {about}\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([text_of(row.get(column)) for column in columns] for row in rows)
    os.replace(path + ".new", path)


def read(path):
    """The rows, all values as texts; none when there is no such file."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            return list(csv.DictReader(line for line in file if not line.startswith("#")))
    except FileNotFoundError:
        return []


def fold(rows, keys):
    """Runs that agree in `keys` as one row: in each other column the value that all have, else every run's, with ; between."""
    cells = {}
    for row in rows:
        cells.setdefault(tuple(text_of(row.get(key)) for key in keys), []).append(row)
    folded = []
    for at, runs in cells.items():
        texts = {column: [text_of(run.get(column)) for run in runs] for column in runs[0] if column not in keys}
        folded.append(dict(zip(keys, at)) | {c: t[0] if len(set(t)) == 1 else ";".join(t) for c, t in texts.items()})
    return folded


def unfold(rows):
    """The runs of such rows, each a row."""
    for row in rows:
        texts = {column: text.split(";") for column, text in row.items()}
        for i in range(max(map(len, texts.values()))):
            yield {column: text[i if len(text) > 1 else 0] for column, text in texts.items()}
