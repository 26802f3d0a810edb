"""Changes documents so that they may be wrong: one thing, chosen by chance."""

import copy
import re

OTHERS = [
    None, [], {}, [None], [[]], {"": 1}, "", " ", "x", "~", 0, 1, -1, 20, 4294967296, 2**64, 0.5, 1.0, 1e22, True,
    False, "exported", "constant", "skip", "true", "yes", "sm_90", "sm_9x", "gfx942:xnack+", "1KiB", "0s", "3654d",
    "a.kcb", "../a.kcb", "{entry}", "k.{entry}", "@", "*", ["x"], {"x": "y"}, {"x": ["y"]},
]  # fmt: skip
KEYS = ["zz", "", "<<", "x-", "x-1", "X-1", "1a", "a-b", "option.", "option.opt", "when", "when.m", "target", "entry",
        "k" * 129]  # fmt: skip
TAILS = [" ", "\n", "\t", "\u007f", "é", "/", ".", "..", "-", "0", "9", "a", "f", "x", "B", "{", "}", "{entry}", ":",
         ":xnack+", "é" * 600, "x" * 1100]  # fmt: skip


def places(value, path=()):
    """(path, value) of everything in a document."""
    yield path, value
    if isinstance(value, dict):
        for key, each in value.items():
            yield from places(each, (*path, key))
    elif isinstance(value, list):
        for i, each in enumerate(value):
            yield from places(each, (*path, i))


def mutate(document, others, chance):
    """The document with one thing changed, which may make it wrong or not."""
    path, value = chance.choice(list(places(document))[1:])
    parent = document
    for step in path[:-1]:
        parent = parent[step]
    ways = ["replace", "remove", "other"]
    if isinstance(value, dict):
        ways += ["add", "rename"] * 2
    elif isinstance(value, list):
        ways += ["twice", "empty", "append"]
    elif not isinstance(value, bool) and value is not None:
        ways += ["tail", "digit", "text"] * 2
    way = chance.choice(ways)
    if way == "remove":
        del parent[path[-1]]
    elif way == "other":  # something from elsewhere
        parent[path[-1]] = copy.deepcopy(chance.choice(list(places(chance.choice(others))))[1])
    elif way == "add":
        key = chance.choice(KEYS + [str(p[-1]) for p, _ in places(chance.choice(others)) if p])
        value[key] = copy.deepcopy(chance.choice(OTHERS))
    elif way == "rename" and value:
        key = chance.choice(list(value))
        value[chance.choice([key[:-1], key + "s", *KEYS])] = value.pop(key)
    elif way == "twice" and value:
        value.append(copy.deepcopy(chance.choice(value)))
    elif way == "empty":
        value.clear()
    elif way == "append":
        value.append(copy.deepcopy(chance.choice(OTHERS)))
    elif way == "tail":
        tail = chance.choice(TAILS)
        parent[path[-1]] = chance.choice([f"{value}{tail}", f"{tail}{value}"])
    elif way == "digit":
        parent[path[-1]] = near_number(value, chance)
    elif way == "text":
        parent[path[-1]] = str(value)
    else:
        parent[path[-1]] = copy.deepcopy(chance.choice(OTHERS))
    return document


def near_number(value, chance):
    """The same with its number a little larger or smaller, a number where it was one."""
    found = re.search(r"\d+", str(value))
    if not found:
        return chance.choice(OTHERS)
    number = int(found[0]) + chance.choice([-1, 1, -10, 10, 10 ** len(found[0])])
    if isinstance(value, int):
        return number
    return f"{value[: found.start()]}{max(number, 0)}{value[found.end() :]}" if isinstance(value, str) else str(number)
