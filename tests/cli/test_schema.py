"""The JSON schema of manifests and what kc reads: one accepts what the other accepts, in both directions.

kc's side is its read stage (build/bin/read_manifest), which looks at one document alone: the schema describes that
much. The other side is the Python package jsonschema; without it the tests that need it say `not run`.
"""

import copy
import json
import random
import re
import subprocess
import unittest
from typing import Callable, NamedTuple

from kc_test import BUILD, DEMO, SOURCE, KcTest, main
from schema_documents import Maker, ecma, mend, subschemas
from schema_mutants import mutate

try:
    import jsonschema
except ImportError:
    jsonschema = None

NOT_RUN = "not run: the Python package jsonschema is not installed"
SCHEMA = SOURCE / "manifests" / "kernels.schema.json"
READER = BUILD / "bin" / "read_manifest"
DOCUMENTS = 3000
MUTANTS = 6000


def kernel(**fields):
    return {"version": 1, "kernels": [{"name": "k", "sources": "k.tilebc", **fields}]}


def specialized(**fields):
    return kernel(specializations=fields)


def nested(depth):
    out = []
    for _ in range(depth - 1):
        out = [out]
    return out


class Rule(NamedTuple):
    """What kc's read stage refuses and JSON Schema cannot say."""

    message: str  # a pattern, no wider than the rule: it must not hide that the schema says too little elsewhere
    reason: str
    document: dict  # shows it
    needs: Callable[[str], bool] = lambda _text: True  # of a document's JSON, for messages that do not tell


def has_long_unicode(text):
    return any(not each.isascii() for each in re.findall(r'"([^"]{300,})"', text))


RULES = [
    Rule(r'must be .*, not "-?\d+\.0"', "1.0 is an integer for JSON Schema; kc reads the text",
         {**kernel(), "release": 1.0}),
    Rule(r'"[\d.]+e\+\d+" cannot be the name', "a number's text may hold a +; JSON Schema sees no text",
         {**kernel(), "name": 1e22}),
    Rule(r"the value of .* has \d+ bytes; at most 1024 are allowed", "JSON Schema counts characters, kc bytes",
         specialized(matrix={"K": ["é" * 1000]}), has_long_unicode),
    Rule(r"cannot be a symbol|cannot be an entry", "JSON Schema counts characters, kc bytes",
         kernel(symbol="é" * 1000), has_long_unicode),
    Rule(r"the metadata of a kernel may have", "JSON Schema adds nothing up",
         kernel(metadata={f"k{i}": "x" * 1000 for i in range(70)})),
    Rule(r'the target "gfx.*:.*" is listed twice', "features may stand in any order",
         {**kernel(), "targets": ["gfx942:xnack-:sramecc+", "gfx942:sramecc+:xnack-"]}),
    Rule(r"the (value|entry) .* is listed twice",
         'told apart by their text, 1 and "1" are one, 1 and 1.0 are two; uniqueItems says the opposite',
         specialized(matrix={"K": [1, "1"]})),
    Rule(r"this exclude matches nothing", "a rule between two fields",
         specialized(matrix={"K": [1]}, exclude=[{"K": 2}])),
    Rule(r"has \d+ items?, and the parameter .* has \d+ dimension", "a rule between two fields",
         kernel(parameters={"A": {"dtype": "int32", "ndim": 2, "stride_constant": [1]}})),
    Rule(r"a key of \d+ bytes|not YAML: end of map", "a bound of the file, not of its structure",
         {**kernel(), "x-" + "y" * 1100: 1}, lambda text: re.search(r'"[^"]{1000}', text) is not None),
    Rule(r"nested deeper than 64", "a bound of the file, not of its structure", {**kernel(), "x-deep": nested(70)}),
]  # fmt: skip

# The tables of keys in core/manifest/read_*.cpp, by the class that they are for, and where the schema has them.
TABLES = {
    "ManifestReader": "",
    "SettingsReader": "/$defs/settings",
    "DefaultsReader": "/$defs/defaults",
    "KernelReader": "/$defs/kernel",
    "LimitsReader": "/$defs/limits",
    "SpecializationsReader": "/$defs/specializations",
    "OverrideReader": "/$defs/override",
}
# The same of the words of a parameter, which are a table of their own.
WORDS = "/$defs/parameter"


def at(schema, pointer):
    for name in pointer.split("/")[1:]:
        schema = schema[int(name) if isinstance(schema, list) else name]
    return schema


def validator(schema):
    """jsonschema with patterns as ECMA-262 means them."""

    def pattern(_validator, text, instance, _schema):
        if isinstance(instance, str) and not ecma(text).search(instance):
            yield jsonschema.ValidationError(f"{instance!r} does not match {text!r}")

    kind = jsonschema.validators.extend(jsonschema.Draft202012Validator, {"pattern": pattern})
    kind.check_schema(schema)
    return kind(schema)


def read_all(documents):
    """What kc says about each document: a list of errors."""
    lines = [json.dumps(document, ensure_ascii=False) for document in documents]
    done = subprocess.run([READER], input="".join(line + "\n" for line in lines).encode(), capture_output=True)
    out = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode != 0 or len(out) != len(lines):
        raise AssertionError(f"{done.returncode} after {len(out)} documents\n{done.stderr.decode()}")
    return out


def to_json(path):
    done = subprocess.run([READER, "--to-json", path], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)


def typed(value):
    """Texts that an editor reads as numbers and booleans, as those."""
    if isinstance(value, dict):
        return {key: typed(each) for key, each in value.items()}
    if isinstance(value, list):
        return [typed(each) for each in value]
    if isinstance(value, str) and re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?|true|false", value):
        return json.loads(value)
    return value


def example(document):
    """An example of the documentation as a whole manifest: it may show some kernels, or the top level without them."""
    if isinstance(document, list):
        document = {"kernels": document}
    return {"version": "1", "kernels": [{"name": "k", "sources": "k.tilebc"}], **document}


class Tables(KcTest):
    def setUp(self):
        super().setUp()
        self.schema = json.loads(SCHEMA.read_text())

    def test_kc_schema_prints_the_file_byte_by_byte(self):
        self.assertEqual(self.kc("schema").stdout, SCHEMA.read_bytes())
        self.assertEqual(self.kc("schema", "--format=json").stdout, SCHEMA.read_bytes())

    def test_the_keys_that_kc_reads_are_those_of_the_schema(self):
        found = {}
        for path in sorted((SOURCE / "core" / "manifest").glob("*.cpp")):
            tables = re.findall(r"Handler<(\w+)> kHandlers\[\] = \{(.*?)\n? *\};", path.read_text(), re.DOTALL)
            for reader, table in tables:
                self.assertNotIn(reader, found)
                keys = re.findall(r'\{\s*"([^"]+)"', table)
                self.assertTrue(keys, f"{path}: no key was found in the table of {reader}")
                found[reader] = set(keys)
        self.assertEqual(found.keys(), TABLES.keys())
        text = (SOURCE / "core" / "manifest" / "read_parameters.cpp").read_text()
        words = re.search(r"Word kWords\[\] = \{(.*?)\n\};", text, re.DOTALL)[1]
        self.assertEqual(set(re.findall(r'\{"(\w+)"', words)), set(at(self.schema, WORDS)["properties"]))
        for reader, pointer in TABLES.items():
            self.assertEqual(found[reader], set(at(self.schema, pointer)["properties"]), reader)
        # The other way round: nothing in the schema has a fixed set of keys but what such a table reads.
        closed = {p for p, part in subschemas(self.schema) if part.get("additionalProperties") is False}
        self.assertEqual(closed, {*TABLES.values(), WORDS})

    def test_every_field_of_the_schema_has_a_title_for_editors(self):
        for pointer, part in subschemas(self.schema):
            if not re.search(r"(?<!/then)(?<!/else)/properties/[^/]+$", pointer):
                continue
            target = at(self.schema, part["$ref"].removeprefix("#")) if "$ref" in part else {}
            self.assertIn("title", {**target, **part}, pointer)


class Examples(KcTest):
    def documents(self):
        """(name, document) of the demo and of each example in the documentation."""
        yield str(DEMO), to_json(DEMO)
        for page in [SOURCE / "README.md", *sorted((SOURCE / "docs").glob("*.md"))]:
            fences = re.findall(r"^( *)```yaml\n(.*?)^\1```$", page.read_text(), re.DOTALL | re.MULTILINE)
            for number, (_, text) in enumerate(fences, 1):
                yield f"{page}, example {number}", example(to_json(self.write("example.yaml", text)))

    def test_kc_reads_the_demo_and_the_examples_of_the_documentation(self):
        documents = list(self.documents())
        self.assertGreater(len(documents), 10)
        for (name, _), errors in zip(documents, read_all(document for _, document in documents)):
            with self.subTest(name):
                self.assertEqual(errors, [])

    @unittest.skipIf(jsonschema is None, NOT_RUN)
    def test_they_are_valid_by_the_schema_as_text_and_as_an_editor_reads_them(self):
        judge = validator(json.loads(SCHEMA.read_text()))
        for name, document in self.documents():
            for each in (document, typed(document)):
                with self.subTest(name):
                    self.assertIsNone(jsonschema.exceptions.best_match(judge.iter_errors(each)))

    def test_the_demo_tells_editors_where_the_schema_is(self):
        first = DEMO.read_text().split("\n")[0]
        self.assertEqual(first, "# yaml-language-server: $schema=../kernels.schema.json")
        self.assertEqual((DEMO.parent / first.partition("=")[2]).resolve(), SCHEMA)


@unittest.skipIf(jsonschema is None, NOT_RUN)
class BothDirections(KcTest):
    def setUp(self):
        super().setUp()
        self.schema = json.loads(SCHEMA.read_text())
        self.validator = validator(self.schema)

    @staticmethod
    def unexplained(document, errors):
        """The errors that no rule of RULES accounts for."""
        text = json.dumps(document, ensure_ascii=False)
        return [e for e in errors if not any(re.search(rule.message, e) and rule.needs(text) for rule in RULES)]

    def makes(self, seed, count):
        """`count` documents that the schema and kc accept, and the maker. A document that breaks a rule of RULES is
        thrown away; any other that kc does not accept fails the test."""
        maker = Maker(self.schema, seed)
        good = []
        for _ in range(20):
            made = [maker.document() for _ in range(count // 2)]
            made = [(document, mend(document, trail)) for document, trail in made]
            made = [(document, trail) for document, trail in made if self.validator.is_valid(document)]
            for (document, trail), errors in zip(made, read_all(document for document, _ in made)):
                if not errors:
                    maker.accept(trail)
                    good.append(document)
                elif self.unexplained(document, errors):
                    self.fail(f"the schema accepts what kc refuses:\n{errors}\n{json.dumps(document)}")
            if len(good) >= count and not maker.missed():
                break
        self.assertGreaterEqual(len(good), count)
        return good, maker

    def test_kc_accepts_what_is_made_from_the_schema_and_all_of_it_is_made(self):
        good, maker = self.makes(1, DOCUMENTS)
        self.assertEqual(maker.missed(), [], f"of {len(maker.goals)} goals, in {len(good)} documents")

    def test_kc_refuses_what_the_schema_refuses_and_the_other_way_round(self):
        chance = random.Random(2)
        good, _ = self.makes(3, 1000)
        mutants = []
        while len(mutants) < MUTANTS:
            mutants.append(mutate(copy.deepcopy(chance.choice(good)), good, chance))
        refused = 0
        for document, errors in zip(mutants, read_all(mutants)):
            valid = self.validator.is_valid(document)
            refused += not valid
            if valid and self.unexplained(document, errors):
                self.fail(f"the schema accepts what kc refuses:\n{errors}\n{json.dumps(document)}")
            if not valid and not errors:
                why = jsonschema.exceptions.best_match(self.validator.iter_errors(document))
                self.fail(f"kc accepts what the schema refuses:\n{why}\n{json.dumps(document)}")
        # Both verdicts must be common, or the comparison says little.
        self.assertGreater(refused, MUTANTS // 3)
        self.assertLess(refused, MUTANTS * 9 // 10)

    def test_kc_refuses_what_is_one_step_beyond_a_bound_of_the_schema(self):
        maker = Maker(self.schema, 4)
        goals = maker.bounds_of()
        self.assertGreater(len(goals), 30)
        documents = [maker.beyond_bound(goal) for goal in goals]
        for goal, document, errors in zip(goals, documents, read_all(documents)):
            with self.subTest(goal):
                self.assertFalse(self.validator.is_valid(document))
                self.assertNotEqual(self.unexplained(document, errors), [], json.dumps(document))

    def test_numbers_have_the_same_bounds_as_numbers_and_as_text(self):
        for pointer, part in subschemas(self.schema):
            if "maximum" not in part or part.get("type") != ["integer", "string"]:
                continue
            low, high = part["minimum"], part["maximum"]
            for number in (low - 1, low, low + 1, (low + high) // 2, high - 1, high, high + 1, 10 * high):
                with self.subTest(pointer, number=number):
                    self.assertEqual(bool(ecma(part["pattern"]).search(str(number))), low <= number <= high)

    def test_each_rule_that_the_schema_cannot_say_is_one_that_kc_has(self):
        for rule, errors in zip(RULES, read_all(rule.document for rule in RULES)):
            with self.subTest(message=rule.message, reason=rule.reason):
                self.assertTrue(self.validator.is_valid(rule.document), "the schema can say it")
                self.assertEqual(len(errors), 1, errors)
                self.assertEqual(self.unexplained(rule.document, errors), [])
                self.assertRegex(errors[0], rule.message)


if __name__ == "__main__":
    main()
