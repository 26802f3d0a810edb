"""Makes documents from a JSON schema: by walking the schema itself, so that a new field is made without a change here.

Knows the keywords that KEYWORDS lists; a schema that uses another one is refused, so that nothing is passed over in
silence. Every part of a schema is a goal, and so is each type, each allowed value, each bound and each alternative of
a pattern; what no document has hit yet is chosen first.
"""

import functools
import random
import re

try:
    from re import _constants as sre, _parser as sre_parser
except ImportError:  # before Python 3.11
    import sre_constants as sre
    import sre_parse as sre_parser

# Say nothing about what a document may be.
NOTES = {"$schema", "$id", "$defs", "$comment", "title", "description", "examples", "patternErrorMessage"}
# Are judged by the validator alone, once a document is there.
JUDGED = {"if", "not", "uniqueItems"}
BOUNDS = {"minimum", "maximum", "minLength", "maxLength", "minItems", "minProperties"}
KEYWORDS = NOTES | JUDGED | BOUNDS | {
    "$ref", "allOf", "anyOf", "then", "else", "type", "enum", "const", "pattern", "required", "dependentRequired",
    "properties", "patternProperties", "additionalProperties", "propertyNames", "items",
}  # fmt: skip

TEXTS = ["a", "0", "064", "1.0", "1e3", "true", "null", "~", "a b", "{key}", "é", "'", '"', "#x", "- a", "@l.txt",
         "*.loom"]  # fmt: skip
NUMBERS = [0, 1, 7, 64, 100000, 2.5, 1000.0, -3, -0.5]


@functools.cache
def ecma(pattern):
    """A pattern as JSON Schema means it (ECMA-262): `$` is the very end."""
    return re.compile(re.sub(r"(?<!\\)\$", r"\\Z", pattern))


def subschemas(schema, pointer=""):
    """(pointer, schema) of each part of a schema that says what a document may be."""
    if not isinstance(schema, dict):
        return
    yield pointer, schema
    unknown = schema.keys() - KEYWORDS
    if unknown:
        raise ValueError(f"{pointer or '/'}: keywords that no document is made from: {sorted(unknown)}")
    for keyword in ("items", "additionalProperties", "propertyNames", "then", "else"):
        yield from subschemas(schema.get(keyword), f"{pointer}/{keyword}")
    for keyword in ("properties", "patternProperties", "$defs"):
        for name, part in schema.get(keyword, {}).items():
            yield from subschemas(part, f"{pointer}/{keyword}/{name}")
    for keyword in ("allOf", "anyOf"):
        for i, part in enumerate(schema.get(keyword, [])):
            yield from subschemas(part, f"{pointer}/{keyword}/{i}")


def branches(parsed):
    """How many `a|b` a parsed pattern has, with the number of their alternatives, in the order walked."""
    for op, argument in parsed:
        if op is sre.BRANCH:
            yield argument
            for part in argument[1]:
                yield from branches(part)
        elif op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            yield from branches(argument[2])
        elif op is sre.SUBPATTERN:
            yield from branches(argument[3])


class Maker:
    """Documents of `schema`, the same for the same seed."""

    def __init__(self, schema, seed):
        self.schema = schema
        self.random = random.Random(seed)
        self.hit = set()
        self.goals = set()
        self.trail = set()
        self.beyond = None  # the goal of a bound: values that reach it go one step beyond
        self.patterns = {}  # text -> (parsed, {id of a branch: its number})
        for pointer, part in subschemas(schema):
            self.goals.add((pointer, "used"))
            for kind in self.types(part) or []:
                self.goals.add((pointer, "type", kind))
            for value in part.get("enum", []):
                self.goals.add((pointer, "enum", repr(value)))
            for bound in BOUNDS & part.keys():
                self.goals.add((pointer, bound))
            if "type" in part:  # an arm of an `if` names properties that its object may require
                for name in part.get("properties", {}).keys() - set(part.get("required", [])):
                    self.goals.add((pointer, "without", name))
            if "pattern" in part:
                parsed = sre_parser.parse(part["pattern"])
                found = list(branches(parsed))
                self.patterns[part["pattern"]] = (parsed, {id(b): i for i, b in enumerate(found)})
                for i, branch in enumerate(found):
                    for alternative in range(len(branch[1])):
                        self.goals.add((pointer, "pattern", i, alternative))

    @staticmethod
    def types(part):
        kinds = part.get("type")
        return [kinds] if isinstance(kinds, str) else kinds

    def bounds_of(self):
        """The goals of all bounds."""
        return sorted(goal for goal in self.goals if goal[1] in BOUNDS)

    def beyond_bound(self, goal):
        """A document with one value a step beyond this bound, and perhaps more."""
        self.beyond = goal
        self.hit = self.goals - {goal}
        while True:
            document, trail = self.document()
            if goal in trail:
                return document

    def missed(self):
        return sorted(map(str, self.goals - self.hit))

    def document(self):
        """A document and the goals that it reaches, to be handed to accept() when it proves to be valid."""
        self.trail = set()
        document = self.make([("", self.schema)])
        return document, self.trail

    def accept(self, trail):
        self.hit |= trail & self.goals

    # -- choices ----------------------------------------------------------------------------------------------

    def choose(self, options, goal_of):
        """One of `options`, rather one whose goal nothing has reached yet."""
        options = list(options)
        new = [o for o in options if goal_of(o) not in self.hit and goal_of(o) not in self.trail]
        chosen = self.random.choice(new if new and self.random.random() < 0.7 else options)
        self.trail.add(goal_of(chosen))
        return chosen

    def wants(self, goal, otherwise):
        if goal in self.hit or goal in self.trail:
            return self.random.random() < otherwise
        return self.random.random() < 0.7

    # -- values -----------------------------------------------------------------------------------------------

    def flat(self, parts):
        """All that holds at once, references and choices resolved."""
        out = []
        todo = list(parts)
        while todo:
            pointer, part = todo.pop(0)
            if not isinstance(part, dict):
                continue
            self.trail.add((pointer, "used"))
            out.append((pointer, part))
            if "$ref" in part:
                target = part["$ref"].removeprefix("#")
                node = self.schema
                for name in target.split("/")[1:]:
                    node = node[name]
                todo.append((target, node))
            for i, each in enumerate(part.get("allOf", [])):
                todo.append((f"{pointer}/allOf/{i}", each))
            if "anyOf" in part:
                index = self.choose(range(len(part["anyOf"])), lambda i: (f"{pointer}/anyOf/{i}", "used"))
                todo.append((f"{pointer}/anyOf/{index}", part["anyOf"][index]))
            if "if" in part:
                arm = self.choose(["then", "else"], lambda arm: (f"{pointer}/{arm}", "used"))
                if part["if"].keys() != {"required"}:
                    raise ValueError(f"{pointer}/if: no document is made from this condition")
                out.append((f"{pointer}/if", {"required" if arm == "then" else "without": part["if"]["required"]}))
                todo.append((f"{pointer}/{arm}", part[arm]))
        return out

    def make(self, parts, kind=None):
        parts = self.flat(parts)
        for pointer, part in parts:
            if "const" in part:
                return part["const"]
            if "enum" in part:
                return self.choose(part["enum"], lambda value: (pointer, "enum", repr(value)))
        if kind is None:
            typed = [(pointer, self.types(part)) for pointer, part in parts if "type" in part]
            if not typed:
                return self.anything()
            kinds = set(typed[0][1]).intersection(*[kinds for _, kinds in typed])
            if not kinds:  # a number that must be whole
                kinds = {"integer"}
            kind = self.choose(sorted(kinds), lambda kind: (typed[0][0], "type", kind))
            self.trail.update((pointer, "type", kind) for pointer, _ in typed)
        return getattr(self, f"make_{kind}")(parts)

    def anything(self):
        return self.random.choice([None, True, 3, -1.5, "x", [], {}, [1, [2, {"a": None}]], {"y": {"z": ["~"]}}])

    def make_boolean(self, _parts):
        return self.random.random() < 0.5

    def bounds(self, parts, least, most):
        """The tightest bounds of these names, each with the pointer of who says it."""
        low = max(((part[least], pointer) for pointer, part in parts if least in part), default=(None, ""))
        high = min(((part[most], pointer) for pointer, part in parts if most in part), default=(None, ""))
        return low, high

    def at_bound(self, bound, name):
        """Whether to go to a bound; then its goal counts as reached."""
        if bound[0] is None or not self.wants((bound[1], name), 0.1):
            return False
        self.trail.add((bound[1], name))
        return True

    def value_at(self, bound, name):
        """What the bound says, or a step beyond it."""
        if (bound[1], name) != self.beyond:
            return bound[0]
        return bound[0] - 1 if name.startswith("min") else bound[0] + 1

    def make_integer(self, parts):
        low, high = self.bounds(parts, "minimum", "maximum")
        if self.at_bound(low, "minimum"):
            return self.value_at(low, "minimum")
        if self.at_bound(high, "maximum"):
            return self.value_at(high, "maximum")
        return self.random.randint(low[0] or 0, high[0] if high[0] is not None else 10**6)

    def make_number(self, parts):
        low, high = self.bounds(parts, "minimum", "maximum")
        if self.at_bound(low, "minimum"):
            return self.value_at(low, "minimum")
        if self.at_bound(high, "maximum"):
            return self.value_at(high, "maximum")
        fits = [n for n in NUMBERS if (low[0] is None or n >= low[0]) and (high[0] is None or n <= high[0])]
        return self.random.choice(fits)

    def make_string(self, parts):
        patterned = [(pointer, part["pattern"]) for pointer, part in parts if "pattern" in part]
        if patterned:
            pointer, pattern = self.random.choice(patterned)
            parsed, numbers = self.patterns[pattern]
            before = self.trail
            for _ in range(20):  # what looks ahead or behind is not made, only judged
                self.trail = set(before)
                text = self.text_of(parsed, pointer, numbers)
                if all(ecma(each).search(text) for _, each in patterned):
                    break
            return text
        low, high = self.bounds(parts, "minLength", "maxLength")
        if self.at_bound(high, "maxLength"):
            return "x" * self.value_at(high, "maxLength")
        if self.at_bound(low, "minLength"):
            return "x" * self.value_at(low, "minLength")
        return self.random.choice(TEXTS)

    def make_array(self, parts):
        low, _ = self.bounds(parts, "minItems", "maxItems")
        items = [(f"{pointer}/items", part["items"]) for pointer, part in parts if "items" in part]
        least = low[0] or 0
        count = least + self.random.choice([0, 1, 2])
        if self.at_bound(low, "minItems"):
            count = self.value_at(low, "minItems")
        return [self.make(items) for _ in range(count)]

    def make_object(self, parts):
        required = {name for _, part in parts for name in part.get("required", [])}
        without = {name for _, part in parts for name in part.get("without", [])}  # flat() says so
        for _, part in parts:
            without |= {name for name, each in part.get("properties", {}).items() if each is False}
        pool = {name for _, part in parts for name in part.get("properties", {})} - required
        names = sorted(required)
        for name in sorted(pool):
            known = [pointer for pointer, part in parts if name in part.get("properties", {})]
            goals = [(f"{pointer}/properties/{name}", "used") for pointer in known]
            if name not in without and all(self.wants(goal, 0.25) for goal in goals):
                names.append(name)
            else:
                self.trail.update((pointer, "without", name) for pointer in known)
        for _, part in parts:
            for name, needed in part.get("dependentRequired", {}).items():
                names += [each for each in needed if name in names and each not in names]
        for pointer, part in parts:
            for pattern in part.get("patternProperties", {}):
                if self.wants((f"{pointer}/patternProperties/{pattern}", "used"), 0.1):
                    names.append(pattern.removeprefix("^") + self.random.choice("abc"))
        low, _ = self.bounds(parts, "minProperties", "maxProperties")
        at_least = self.at_bound(low, "minProperties")
        if any(isinstance(part.get("additionalProperties"), dict) for _, part in parts):
            rules = [(f"{p}/propertyNames", part["propertyNames"]) for p, part in parts if "propertyNames" in part]
            more = self.random.choice([0, 1, 1, 2])
            if at_least:
                more = self.value_at(low, "minProperties") - len(names)
            else:
                more = max(more, (low[0] or 0) - len(names))
            for _ in range(more):
                names.append(self.make(rules, "string") if rules else self.random.choice("abcdefgh") + "_1")
        if at_least and len(set(names)) != self.value_at(low, "minProperties"):
            self.trail.discard((low[1], "minProperties"))
        return {name: self.make(self.parts_of(name, parts)) for name in dict.fromkeys(names)}

    def parts_of(self, name, parts):
        """What holds for the property `name`."""
        out = []
        for pointer, part in parts:
            known = False
            if name in part.get("properties", {}):
                out.append((f"{pointer}/properties/{name}", part["properties"][name]))
                known = True
            for pattern, each in part.get("patternProperties", {}).items():
                if ecma(pattern).search(name):
                    out.append((f"{pointer}/patternProperties/{pattern}", each))
                    known = True
            if not known and "additionalProperties" in part:
                out.append((f"{pointer}/additionalProperties", part["additionalProperties"]))
        return out

    # -- texts of a pattern -----------------------------------------------------------------------------------

    def text_of(self, parsed, pointer, numbers):
        out = ""
        for op, argument in parsed:
            if op is sre.LITERAL:
                out += chr(argument)
            elif op is sre.ANY:
                out += self.random.choice("ab/.")
            elif op is sre.IN:
                out += self.one_of(argument)
            elif op is sre.BRANCH:
                number = numbers[id(argument)]
                index = self.choose(range(len(argument[1])), lambda i: (pointer, "pattern", number, i))
                out += self.text_of(argument[1][index], pointer, numbers)
            elif op is sre.SUBPATTERN:
                out += self.text_of(argument[3], pointer, numbers)
            elif op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
                least, most, part = argument
                most = min(most, least + 6) if self.random.random() < 0.95 else min(most, least + 200)
                for _ in range(self.random.randint(least, most)):
                    out += self.text_of(part, pointer, numbers)
            elif op not in (sre.AT, sre.ASSERT, sre.ASSERT_NOT):  # these are judged by the validator
                raise ValueError(f"{pointer}: the pattern has {op}, which no text is made from")
        return out

    def one_of(self, argument):
        if argument[0][0] is sre.NEGATE:
            pattern = [(op, value) for op, value in argument[1:]]
            return self.random.choice([c for c in "abzAZ09_.-+:$é/\\'\"@" if not self.is_in(c, pattern)])
        op, value = self.random.choice(argument)
        return chr(value) if op is sre.LITERAL else chr(self.random.randint(*value))

    @staticmethod
    def is_in(character, pattern):
        for op, value in pattern:
            low, high = (value, value) if op is sre.LITERAL else value
            if low <= ord(character) <= high:
                return True
        return False


def mend(document, trail=frozenset()):
    """Makes a document of the schema keep the rules between fields that it would nearly always break; gives what is
    left of its trail."""
    dropped = set()
    for item in document.get("kernels", []):
        specializations = item.get("specializations", {})
        matrix = specializations.get("matrix", {})
        for exclude in specializations.get("exclude", []):
            exclude.clear()
            exclude.update((key, values[0]) for key, values in list(matrix.items())[:2])
        for parameter in item.get("parameters", {}).values():
            if isinstance(parameter, dict) and any(isinstance(each, list) for each in parameter.values()):
                # A list has an item for each dimension.
                if not (isinstance(parameter["ndim"], int) and 0 < parameter["ndim"] < 4):
                    parameter["ndim"] = 2
                    dropped = {goal for goal in trail if "/ndim" in goal[0]}
                for word, each in parameter.items():
                    if isinstance(each, list) and each and word != "alias_groups":
                        parameter[word] = (each * parameter["ndim"])[: parameter["ndim"]]
    return trail - dropped
