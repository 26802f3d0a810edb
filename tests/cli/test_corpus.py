"""A real corpus with a real compiler: the 56 Loom sources of an LLM pipeline that the pinned wheel carries, unpacked
into the test's folder (tests/support/loom_bridge/corpus.py). 105 kernels for gfx1100 and gfx1151; 55 fit gfx1201.
"""

import collections
import glob
import re
import sys

import readelf
from kc_test import BUILD, SOURCE, KcTest, llvm_tool, main

sys.path.insert(0, str(SOURCE / "tests" / "support" / "loom_bridge"))
import corpus  # noqa: E402


class Reach:
    """Which files a kernel reaches, read off the text without any compiler: definitions at the start of a line, the
    symbols that stand in them, and the providers of a template. An oracle for what kc finds out by linking."""

    HEAD = re.compile(r"([a-z_]+(?:\.[a-z_]+)+)(?: target\(@[\w.]+\))?(?:<@([\w.]+)>)?[^@\n]*@([\w.]+)")

    def __init__(self, folder):
        self.definitions = collections.defaultdict(dict)  # symbol -> {file: symbols in it}
        self.providers = collections.defaultdict(set)  # template -> symbols
        self.kernels = {}  # exported symbol -> file
        for file in (folder / "sources.txt").read_text().split():
            text = re.sub(r"//[^\n]*", "", (folder / file).read_text())
            for part in re.split(r"(?m)^(?=[a-z])", text):
                self.read(file, part)

    def read(self, file, part):
        head = self.HEAD.match(part)
        if not head or head[1].startswith("check."):
            return
        operation, template, name = head.groups()
        symbols = set(re.findall(r"@([A-Za-z_][\w.]*)", part)) - {name}
        if operation == "kernel.def" and "export(" in part.split("{")[0]:
            self.kernels[name] = file
        if template:
            self.providers[template].add(name)
        if operation == "template.decl":
            self.definitions[name][file] = set()  # what provides it is followed instead
        elif not operation.endswith(".decl"):
            self.definitions[name][file] = symbols

    def symbols(self, kernel):
        """All that a kernel reaches: pairs of symbol and the file that uses it, declared or defined there."""
        seen, open_ = set(), [(kernel, self.kernels[kernel])]
        while open_:
            symbol, user = open_.pop()
            if (symbol, user) in seen:
                continue
            seen.add((symbol, user))
            for file in self.homes(symbol, user):
                open_ += [(other, file) for other in self.definitions[symbol][file]]
            for provider in self.providers[symbol]:
                open_ += [(provider, file) for file in self.definitions[provider]]
        return seen

    def homes(self, symbol, user):
        """The files whose definition of a symbol a file means: its own before others'."""
        homes = self.definitions[symbol]
        return [user] if user in homes else list(homes)

    def files(self, kernel):
        return {file for symbol, user in self.symbols(kernel) for file in self.homes(symbol, user)}


class Corpus(KcTest):
    def setUp(self):
        super().setUp()
        self.env = self.with_loom()
        wheels = glob.glob(str(BUILD / "loom" / "wheel" / "*.whl"))
        if not wheels:
            self.skipTest("not run: there is no wheel (packaging/bootstrap test downloads it)")
        self.wheel = wheels[0]

    def lay_out(self, *targets):
        corpus.lay_out(self.wheel, self.work, targets or corpus.TARGETS)

    def build(self, *arguments):
        """The events of the units, by kernel and target."""
        events = self.kc_json("build", "-j2", *arguments, env=self.env, timeout=600)
        self.assertEqual(events[-1]["failed"], 0)
        return {(e["kernel"], e["target"]): e for e in events[:-1]}

    def check_facts(self, events):
        """llvm-readelf says of each code object what kc has recorded."""
        tool = llvm_tool("readelf")
        if tool is None:
            self.skipTest("not run: there is no llvm-readelf (packaging/bootstrap test installs it)")
        self.kc("extract", "corpus.kcb", "--all", "objects")
        files = {self.digest(path): path for path in (self.work / "objects").rglob("*") if path.is_file()}
        seen = readelf.read(tool, files.values())
        records = [event for event in self.kc_json("show", "corpus.kcb") if event["event"] == "record"]
        self.assertEqual(len(records), sum(event["state"] != "skipped" for event in events.values()))
        for record in records:
            facts = seen[str(files[record["code_digest"]])]
            symbol = record["symbol"]
            self.assertEqual(facts["kernels"], {symbol: record["facts"]}, record["unit"])
            self.assertEqual(facts["symbols"], {symbol, f"{symbol}.kd"})
            self.assertEqual({facts["target"], facts["stated_target"], record["found_target"]}, {record["target"]})
            self.assertEqual(events[record["kernel"], record["target"]]["facts"], record["facts"])

    def test_every_kernel_that_fits_compiles_and_llvm_agrees_with_every_fact(self):
        self.lay_out()
        events = self.build()
        states = collections.Counter((target, event["state"]) for (_, target), event in events.items())
        self.assertEqual(states, {("gfx1100", "compiled"): 105, ("gfx1151", "compiled"): 105,
                                  ("gfx1201", "compiled"): 55, ("gfx1201", "skipped"): 50})
        # Two exports are the name of another kernel's code.
        renamed = {k for (k, target), e in events.items() if target == "gfx1100" and e["facts"]["symbol"] != k}
        self.assertEqual(len(renamed), 2)
        self.kc("verify", "corpus.kcb")
        self.check_facts(events)
        summary = self.summary("build", env=self.env)
        self.assertEqual((summary["compiled"], summary["skipped"], summary["output_state"]), (0, 50, "unchanged"))

    def test_any_number_of_slots_gives_the_same_bundle(self):
        self.lay_out("gfx1201")
        for slots in (1, 2, 24):
            self.kc("build", f"-j{slots}", "-o", f"j{slots}.kcb", "--store-mode=off", env=self.env, timeout=300)
        self.assertEqual(len({self.digest(self.work / f"j{slots}.kcb") for slots in (1, 2, 24)}), 1)

    def test_equal_content_keys_have_equal_code(self):
        """Each build compiles all kernels anew; what differs between them leaves the keys of many kernels alone."""
        self.lay_out("gfx1100")
        sources = (self.work / "sources.txt").read_text()
        manifest = (self.work / "kernels.yaml").read_text()
        reached = self.work / "llm/qwen/kernels/qwen38/spans.loom"
        text = reached.read_text()
        code = {}
        changes = {
            "as it is": None,
            "another value": lambda: self.write("kernels.yaml", manifest.replace(": 4096", ": 2048")),
            "a shifted line": lambda: reached.write_text("// one line more\n" + text),
            "sources reversed": lambda: self.write("sources.txt", "\n".join(reversed(sources.split())) + "\n"),
        }
        for name, change in changes.items():
            self.write("sources.txt", sources)
            self.write("kernels.yaml", manifest)
            reached.write_text(text)
            if change:
                change()
            self.build("--store-mode=off")
            records = [e for e in self.kc_json("show", "corpus.kcb") if e["event"] == "record"]
            self.assertEqual(len(records), 105)
            known = set(code)
            for record in records:
                other = code.setdefault(record["key"], record)
                units = f"{name}: {record['unit']} and {other['unit']}"
                self.assertEqual(record["code_digest"], other["code_digest"], units)
            if name in ("another value", "a shifted line"):
                shared = sum(record["key"] in known for record in records)
                self.assertGreater(shared, 105 // 2, f"{name}: most kernels do not see it")
                self.assertLess(shared, 105, f"{name}: some kernels see it")

    def test_a_touched_file_compiles_exactly_the_kernels_that_reach_it(self):
        self.lay_out("gfx1100")
        reach = Reach(self.work)
        self.assertEqual(len(reach.kernels), 105)
        self.build()
        users = collections.defaultdict(set)
        for kernel in reach.kernels:
            for file in reach.files(kernel):
                users[file].add(kernel)
        for file in (
            "llm/motifs/ggml/linear_qk_common.loom",
            "llm/qwen/kernels/qwen38/gdn_common.loom",
            "llm/qwen/kernels/qwen38/spans.loom",
            "llm/qwen/kernels/qwen38/token_embedding.loom",
            "llm/qwen/config.loom",
            "llm/qwen/control.loom",
        ):
            with self.subTest(file):
                path = self.work / file
                text = path.read_text()
                path.write_text("// touched\n" + text)
                events = self.build()
                self.assertEqual({k for (k, _), e in events.items() if e["state"] == "compiled"}, users[file])
                self.assertEqual({e["state"] for (k, _), e in events.items() if k not in users[file]}, {"hit"})
                path.write_text(text)
                self.assertEqual({e["state"] for e in self.build().values()}, {"hit"})
        self.assertEqual(users["llm/qwen/control.loom"], set())

    def test_a_changed_value_compiles_exactly_the_kernels_that_read_it(self):
        self.lay_out("gfx1100")
        self.build()
        key = "qwen38.attention.pool_capacity"
        manifest = (self.work / "kernels.yaml").read_text()
        self.write("kernels.yaml", manifest.replace(f"{key}: 8192", f"{key}: 16384"))
        events = self.build()
        compiled = {k for (k, _), e in events.items() if e["state"] == "compiled"}
        reach = Reach(self.work)
        reading = {kernel for kernel in reach.kernels if key in dict(reach.symbols(kernel))}
        self.assertTrue(compiled)
        self.assertEqual(compiled, reading)


if __name__ == "__main__":
    main()
