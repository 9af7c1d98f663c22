"""Writes down what a client returned; for the tests in Python."""

import os

OUT = os.environ["OUT"]
HOST, PORT = os.environ["PGHOST"], int(os.environ["PGPORT"])
DATABASE, USER, PASSWORD = os.environ["PGDATABASE"], os.environ["PGUSER"], os.environ["PGPASSWORD"]


def version(text):
    with open(f"{OUT}/version", "w") as file:
        file.write(f"{text}\n")


def returned(relation, note, id):
    with open(f"{OUT}/ids", "a") as file:
        file.write(f"{relation}\t{note}\t{id}\n")


def check(is_ok, what):
    with open(f"{OUT}/checks", "a") as file:
        file.write("{}\t{}\n".format("ok" if is_ok else "failed", what.replace("\n", " ")))
