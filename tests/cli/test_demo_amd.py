"""The demo for AMD GPUs: its plan, and with a real Loom its bundle against what llvm-readelf says."""

import collections
import itertools
import struct

import readelf
from kc_test import DEMO_AMD, SOURCE, KcTest, llvm_tool, main

TARGETS = ["gfx942", "gfx950", "gfx1100", "gfx1151", "gfx1201"]
SIZE = "tuner.workgroup_size"
# Kernel -> its configurations: names and values are what programs ask the bundle for.
CONFIGURATIONS = {
    "vadd_f32": [{SIZE: size} for size in (32, 64, 128, 256, 512, 1024)],
    "scale_i32": [{"scale.factor": factor, SIZE: size}
                  for factor, size in itertools.product((-3, 2, 3, 1000003), (64, 128, 256))],
    "saxpy_f32": [{"saxpy.negate": negate, SIZE: size}
                  for negate, size in itertools.product(("false", "true"), (64, 128, 256, 512))],
    "rowsum_f32": [{"rowsum.columns": columns, SIZE: size}
                   for columns, size in itertools.product((1, 16, 33, 1000), (32, 64, 128, 256))
                   if (columns, size) != (1000, 256)],
    "pair_i32": [{SIZE: size} for size in (32, 64, 128, 256)],
}
# Sizes of the arguments in their order; an index has 4 or 8 bytes, as the compiler likes.
ARGUMENTS = {
    "vadd_f32": ["index", 8, 8, 8],
    "scale_i32": ["index", 8, 8],
    "saxpy_f32": ["index", 4, 8, 8],
    "rowsum_f32": ["index", 8, 8],
    "pair_i32": ["index", 8, 8],
}


def unit_name(kernel, config, target):
    return f"{kernel}:{','.join(f'{key}={value}' for key, value in sorted(config.items()))}@{target}"


UNITS = {unit_name(kernel, config, target): (kernel, config, target)
         for kernel, configs in CONFIGURATIONS.items() for config in configs for target in TARGETS}


class DemoAmd(KcTest):
    def build(self):
        """Builds the demo with a real Loom; returns the events."""
        events = self.kc_json("build", "-f", DEMO_AMD, "-o", "demo.kcb", env=self.with_loom())
        self.assertEqual(events[-1]["compiled"], len(UNITS))
        return events

    def test_the_plan_has_at_least_200_units_of_the_promised_names(self):
        # Planning compiles nothing, so the stand-in does.
        events = self.kc_json("plan", "-f", DEMO_AMD, env=self.with_hostile())
        names = [event["unit"] for event in events if event["event"] == "unit"]
        self.assertGreaterEqual(len(names), 200)
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(set(names), set(UNITS))

    def test_llvm_readelf_agrees_with_every_fact(self):
        self.build()
        tool = llvm_tool("readelf")
        if tool is None:
            self.skipTest("not run: there is no llvm-readelf (packaging/bootstrap test installs it)")
        self.kc("verify", "demo.kcb")
        self.kc("extract", "demo.kcb", "--all", "code")
        records = [event for event in self.kc_json("show", "demo.kcb") if event["event"] == "record"]
        self.assertEqual({record["unit"] for record in records}, set(UNITS))
        files = {self.digest(path): path for path in (self.work / "code").rglob("*") if path.is_file()}
        seen = readelf.read(tool, files.values())
        for record in records:
            with self.subTest(record["unit"]):
                kernel, config, target = UNITS[record["unit"]]
                facts = seen[str(files[record["code_digest"]])]
                self.assertEqual(record["found_target"], facts["target"])
                self.assertEqual((facts["target"], facts["stated_target"]), (target, target))
                self.assertEqual((record["symbol"], record["entry"]), (kernel, kernel))
                self.assertEqual(facts["symbols"], {kernel, f"{kernel}.kd"})
                self.assertEqual(facts["kernels"], {kernel: record["facts"]})
                # What the manifest asked for is what a launch needs.
                size = config[SIZE]
                self.assertEqual(record["facts"]["required_block"], [size, 1, 1])
                self.assertEqual(record["facts"]["max_threads"], size)
                self.assertEqual(record["facts"]["wave_size"], 64 if target.startswith("gfx9") else 32)
                sizes = [argument["size"] for argument in record["facts"]["arguments"]]
                self.assertIn(sizes[0], (4, 8))
                self.assertEqual(["index", *sizes[1:]], ARGUMENTS[kernel])

    def test_every_value_of_the_matrix_makes_other_code(self):
        self.build()
        records = [event for event in self.kc_json("show", "demo.kcb") if event["event"] == "record"]
        units = collections.defaultdict(list)
        for record in records:
            units[record["code_digest"]].append(record["unit"])
        self.assertEqual([names for names in units.values() if len(names) > 1], [])
        defaults = {record["unit"] for record in records if record["default"]}
        self.assertEqual(defaults, {
            unit_name(kernel, config, target) for target in TARGETS
            for kernel, config in (("vadd_f32", {SIZE: 256}), ("saxpy_f32", {"saxpy.negate": "false", SIZE: 256}))})

    def test_a_generic_target_and_features_are_told_as_llvm_readelf_tells_them(self):
        env = self.with_loom()
        tool = llvm_tool("readelf")
        if tool is None:
            self.skipTest("not run: there is no llvm-readelf (packaging/bootstrap test installs it)")
        targets = ["gfx942:sramecc+:xnack-", "gfx950:xnack+", "gfx9-4-generic", "gfx11-generic", "gfx12-generic"]
        self.write("vector_add.loom", (DEMO_AMD.parent / "kernels" / "vector_add.loom").read_bytes())
        self.write("kernels.yaml", f"""version: 1
targets: ["{'", "'.join(targets)}"]
kernels:
  - {{ name: vadd_f32, sources: vector_add.loom, config: {{ {SIZE}: 64 }} }}
""")
        self.assertEqual(self.summary("build", env=env)["compiled"], len(targets))
        for record in self.kc_json("show", "kernels.kcb")[1:]:
            with self.subTest(record["target"]):
                self.kc("extract", "kernels.kcb", record["unit"], "-o", "code.hsaco")
                path = self.work / "code.hsaco"
                facts = readelf.read(tool, [path])[str(path)]
                self.assertEqual(record["found_target"], record["target"])
                self.assertEqual((facts["target"], facts["stated_target"]), (record["target"], record["target"]))
                self.assertEqual(facts["kernels"], {"vadd_f32": record["facts"]})
                generic_version = struct.unpack_from("<I", path.read_bytes(), 48)[0] >> 24
                self.assertEqual(generic_version != 0, record["target"].endswith("generic"))
                path.unlink()

    def test_the_readme_names_every_kernel_and_configuration_key(self):
        text = (SOURCE / "manifests" / "demo_amd" / "README.md").read_text()
        self.assertIn(f"{len(UNITS)} units", text)
        for kernel, configs in CONFIGURATIONS.items():
            row = next(line for line in text.splitlines() if line.startswith(f"| `{kernel}` |"))
            for key in configs[0]:
                self.assertIn(f"`{key}`", row)


if __name__ == "__main__":
    main()
