"""Limits of a manifest on what AMD code objects tell of their kernels (test_build.py has those of cubins)."""

from kc_test import KcTest, loom, main

# What the stand-in for Loom is told to make, and the limits that this keeps exactly.
FACTS = "@registers=96 @sgprs=40 @spills=7 @local=1088 @shared=4352"
KEPT = {"registers": 96, "local_memory": 1088, "spills": 7, "shared_memory": 4352}
WORDS = {
    "registers": "registers 96, at most 95",
    "local_memory": "local memory 1088 bytes, at most 1087",
    "spills": "spills 7, at most 6",
    "shared_memory": "shared memory 4352 bytes, at most 4351",
}


class Limits(KcTest):
    def manifest(self, **limits):
        self.write("scale.loom", loom("scale", FACTS))
        text = ", ".join(f"{name}: {value}" for name, value in limits.items())
        self.write("kernels.yaml", "version: 1\ntargets: [gfx1100]\nkernels:\n"
                                   f"  - {{ name: scale, sources: scale.loom, limits: {{ {text} }} }}\n")

    def test_a_unit_at_its_limits_is_built_and_one_beyond_is_not(self):
        env = self.with_hostile()
        self.manifest(**KEPT)
        unit = self.kc_json("build", env=env)[0]
        self.assertEqual(unit["state"], "compiled")
        for fact, value in KEPT.items() | {("scalar_registers", 40), ("wave_size", 32)}:
            self.assertEqual(unit["facts"][fact], value, fact)
        # From here on the unit is a hit, and fails all the same.
        for limit, value in (KEPT | {"code": unit["code_bytes"]}).items():
            with self.subTest(limit):
                self.manifest(**{limit: value})
                self.assertEqual(self.summary("build", env=env)["hits"], 1)
                self.manifest(**{limit: value - 1})
                done = self.kc("build", env=env, expect=1)
                words = WORDS.get(limit, f"code {value} bytes, at most {value - 1}")
                self.assertIn(f"exceeds its limits: {words}", done.err)
                self.assertIn("scale@gfx1100", done.err)

    def test_every_limit_that_is_exceeded_is_told_at_once(self):
        self.manifest(**{name: 0 for name in KEPT})
        done = self.kc("build", env=self.with_hostile(), expect=1)
        self.assertIn("exceeds its limits: registers 96, at most 0; local memory 1088 bytes, at most 0; spills 7, at most 0; "
                      "shared memory 4352 bytes, at most 0", done.err)

    def test_a_bundle_keeps_what_the_limits_were_checked_on(self):
        self.manifest(**KEPT)
        self.kc("build", env=self.with_hostile())
        record = self.kc_json("show", "kernels.kcb")[1]
        for fact, value in KEPT.items() | {("scalar_registers", 40)}:
            self.assertEqual(record["facts"][fact], value, fact)


if __name__ == "__main__":
    main()
