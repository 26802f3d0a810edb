"""The demo with the pinned tileiras that bootstrap installs."""

import os
import pathlib
import subprocess

from kc_test import DEMO, KC, SOURCE, KcTest, main, real_tileiras

# A few units of the demo that compile quickly, of every kind of kernel but the largest matmuls.
QUICK = ["vec_add", "softmax:T=f16,W=1024*", "row_sum*", "layer_norm:T=f32,W=512@sm_90"]


class Real(KcTest):
    def setUp(self):
        super().setUp()
        if real_tileiras() is None:
            self.skipTest("not run: there is no tileiras (packaging/bootstrap test installs one)")

    def reference(self, source, target, opt="3"):
        """What tileiras writes when it is run by hand."""
        program = pathlib.Path(real_tileiras())
        output = self.root / "reference.cubin"
        subprocess.run(
            [program, source, "-o", output, "--gpu-name", target, f"-O{opt}"], check=True, cwd=self.root,
            env={"PATH": str(program.parent), "HOME": str(self.root), "TMPDIR": str(self.root), "LC_ALL": "C"},
        )
        return output.read_bytes()

    def test_extract_gives_back_exactly_what_tileiras_writes(self):
        events = self.kc_json("build", "-f", DEMO, "-o", "demo.kcb", *QUICK)
        self.assertEqual(events[-1]["failed"], 0)
        self.kc("verify", "demo.kcb")
        plan = {e["unit"]: e for e in self.kc_json("plan", "-f", DEMO, *QUICK)[:-1]}
        # One of each kernel is enough: the path of the bytes is the same for all.
        checked = set()
        for unit, event in plan.items():
            if (event["kernel"], event["target"]) in checked or event["target"] not in ("sm_80", "sm_90"):
                continue
            checked.add((event["kernel"], event["target"]))
            self.kc("extract", "demo.kcb", unit, "-o", "unit.cubin")
            opt = "2" if event["kernel"] == "vec_add" else "3"
            self.assertEqual(
                (self.work / "unit.cubin").read_bytes(),
                self.reference(DEMO.parent / event["sources"][0], event["target"], opt), unit,
            )
        self.assertGreaterEqual(len(checked), 6)

    def test_line_tables_and_debug_code_are_built_for_every_generation(self):
        self.write("softmax.tilebc", (DEMO.parent / "bytecode" / "softmax_f32_1024.tilebc").read_bytes())
        self.write("kernels.yaml", """version: 1
targets: [sm_80, sm_90, sm_100, sm_120]
kernels:
  - { name: lines, sources: softmax.tilebc, entry: softmax, options: { lineinfo: true } }
  - { name: debug, sources: softmax.tilebc, entry: softmax, options: { opt: 0, debug: true } }
""")
        self.assertEqual(self.summary("build")["compiled"], 8)

    def test_a_foreign_toolkit_and_a_foreign_ptxas_change_nothing(self):
        self.kc("build", "-f", DEMO, "-o", "plain.kcb", "vec_add")
        foreign = self.root / "foreign"
        (foreign / "bin").mkdir(parents=True)
        for name in ("ptxas", "nvcc", "libnvvm.so.4"):
            (foreign / "bin" / name).write_text("#!/bin/sh\necho foreign >&2\nexit 9\n")
            os.chmod(foreign / "bin" / name, 0o755)
        toolkit = os.environ.get("CUDA_HOME", str(foreign))
        env = self.environment(
            CUDA_HOME=toolkit, CUDA_PATH=toolkit, CUDA_ROOT=toolkit, PATH=f"{foreign}/bin:/usr/bin:/bin",
            TILEIR_DUMP="1", LLVM_OVERRIDE_PRODUCER="x", KC_STORE_DIR=self.root / "store2",
        )
        summary = self.summary("build", "-f", DEMO, "-o", "foreign.kcb", "vec_add", env=env)
        self.assertEqual(summary["compiled"], 32)
        self.assertEqual(self.digest(self.work / "plain.kcb"), self.digest(self.work / "foreign.kcb"))

    def test_broken_bytecode_names_the_unit_and_what_the_compiler_said(self):
        good = (DEMO.parent / "bytecode" / "vec_add_f32_256.tilebc").read_bytes()
        newer = bytearray(good)
        newer[9] = 9
        cut = good[: len(good) // 2]
        damaged = bytearray(good)
        damaged[len(good) // 2] ^= 0xFF
        for name, content, words in [
            ("newer", newer, ["13.9"]),
            ("cut", cut, []),
            ("mlir", b"cuda_tile.module @m {\n}\n", ["bytecode"]),
            ("random", os.urandom(4096), ["bytecode"]),
            ("empty", b"", ["empty"]),
        ]:
            with self.subTest(name):
                self.write("bad.tilebc", bytes(content))
                self.write("good.tilebc", good)
                self.write(
                    "kernels.yaml",
                    "version: 1\ntargets: [sm_90]\nkernels:\n"
                    "  - { name: bad, sources: bad.tilebc, entry: vec_add }\n"
                    "  - { name: good, sources: good.tilebc, entry: vec_add }\n",
                )
                done = self.kc("build", expect=1)
                self.assertIn("bad@sm_90", done.err)
                for word in words:
                    self.assertIn(word, done.err)
                self.assertIn("1 failed", done.out)
                self.assertNotIn("good@sm_90", done.err)

    def test_an_entry_that_is_not_there_is_named_with_those_that_are(self):
        self.write("v.tilebc", (DEMO.parent / "bytecode" / "vec_add_f32_256.tilebc").read_bytes())
        self.write("kernels.yaml", "version: 1\ntargets: [sm_90]\nkernels:\n  - { name: v, sources: v.tilebc, entry: vec_sub }\n")
        done = self.kc("build", expect=1)
        self.assertIn('no entry "vec_sub"', done.err)
        self.assertIn("vec_add", done.err)

    def test_a_suffix_is_explained(self):
        self.write("v.tilebc", (DEMO.parent / "bytecode" / "vec_add_f32_256.tilebc").read_bytes())
        self.write("kernels.yaml", "version: 1\ntargets: [sm_90a]\nkernels:\n  - { name: v, sources: v.tilebc, entry: vec_add }\n")
        done = self.kc("build", expect=1)
        self.assertIn("sm_90", done.err)
        self.assertIn("suffix", done.err)

    def test_remarks_are_kept_as_the_report(self):
        self.write("v.tilebc", (DEMO.parent / "bytecode" / "vec_add_f32_256.tilebc").read_bytes())
        self.write(
            "kernels.yaml",
            "version: 1\ntargets: [sm_90]\nkernels:\n"
            "  - { name: v, sources: v.tilebc, entry: vec_add, options: { report: remarks } }\n",
        )
        self.kc("build")
        self.kc("verify", "kernels.kcb")

    def test_facts_are_those_of_the_cubin(self):
        unit = self.kc_json("build", "-f", DEMO, "vec_add:T=f32,TILE=256@sm_90")[0]
        self.assertEqual(unit["facts"]["symbol"], "vec_add")
        self.assertEqual(unit["facts"]["registers"], 19)
        self.assertEqual(unit["facts"]["argument_bytes"], 0x30)
        self.assertEqual(len(unit["facts"]["arguments"]), 9)


if __name__ == "__main__":
    main()
