#!/usr/bin/env python3
"""kc check: which kernels have code for which devices. No GPU and no driver is asked."""

import subprocess

from kc_test import KC, KCLOAD, KcTest, main


class Check(KcTest):
    def setUp(self):
        super().setUp()
        self.bundle = self.make_bundle(
            "b.kcb",
            {"kernel": "amd", "target": "gfx1151"},
            {"kernel": "exact", "target": "sm_90", "found_target": "sm_90a", "lowest_driver": 580},
            {"kernel": "exact", "target": "gfx1151"},
            {"kernel": "generic", "target": "gfx11-generic"},
            {"kernel": "half", "specialization": "T=a", "target": "sm_90"},
            {"kernel": "half", "specialization": "T=b", "target": "sm_100"},
            {"kernel": "mixed", "specialization": "T=a", "target": "sm_90"},
            {"kernel": "mixed", "specialization": "T=b", "target": "sm_80"},
            {"kernel": "mixed", "specialization": "T=b", "target": "sm_90", "lowest_driver": 525},
            {"kernel": "rule", "target": "sm_80"},
        )

    def covers(self, *arguments, expect=1, program=KC):
        """{(kernel, device): state}"""
        *events, self.last = self.kc_json("check", "b.kcb", *arguments, expect=expect, program=program)
        return {(event["kernel"], event["device"]): event["state"] for event in events}

    def test_a_kernel_is_covered_when_each_of_its_configurations_is(self):
        for program in (KC, KCLOAD):
            found = self.covers("--device", "sm_90,gfx1151", program=program)
            self.assertEqual(found, {
                ("amd", "sm_90"): "no", ("amd", "gfx1151"): "exact",
                ("exact", "sm_90"): "exact", ("exact", "gfx1151"): "exact",
                ("generic", "sm_90"): "no", ("generic", "gfx1151"): "by_rule",
                ("half", "sm_90"): "partial", ("half", "gfx1151"): "no",
                ("mixed", "sm_90"): "exact", ("mixed", "gfx1151"): "no",
                ("rule", "sm_90"): "no", ("rule", "gfx1151"): "no",
            })
            self.assertEqual(self.last["devices"], ["sm_90", "gfx1151"])
            self.assertEqual((self.last["kernels"], self.last["uncovered"]), (6, 5))
        found = self.covers("--device", "sm_89")
        self.assertEqual((found["rule", "sm_89"], found["mixed", "sm_89"]), ("by_rule", "partial"))

    def test_all_covered_is_exit_0(self):
        self.make_bundle("b.kcb", {"kernel": "k", "target": "sm_80"}, {"kernel": "l", "target": "sm_86"})
        self.assertEqual(self.covers("--device", "sm_86", "--device", "sm_89", expect=0),
                         {("k", "sm_86"): "by_rule", ("k", "sm_89"): "by_rule", ("l", "sm_86"): "exact",
                          ("l", "sm_89"): "by_rule"})
        self.assertIn("2 kernels, all covered", self.kc("check", "b.kcb", "--device", "sm_86").out)
        self.assertEqual(self.kc("check", "b.kcb", "--device", "sm_86", "-q").out, "")

    def test_a_driver_that_is_older_than_the_code_needs_is_told(self):
        self.assertEqual(self.covers("--device", "sm_90", "--driver", "570")["exact", "sm_90"], "driver_too_old")
        self.assertEqual(self.covers("--device", "sm_90", "--driver", "580")["exact", "sm_90"], "exact")
        # Other code of the same configuration will do.
        self.assertEqual(self.covers("--device", "sm_90", "--driver", "520")["mixed", "sm_90"], "partial")
        found = self.covers("--device", "sm_90,gfx1151", "--driver", "1")
        self.assertEqual(found["amd", "gfx1151"], "exact")
        error = self.kc("check", "b.kcb", "--device", "sm_90", "--driver", "570", expect=1).err
        self.assertIn("driver 570 is too old for exact on sm_90: its code needs 580 or newer", error)
        for nonsense in ("0", "x", "-1", "99999999999"):
            self.kc("check", "b.kcb", "--device", "sm_90", "--driver", nonsense, expect=2)
        self.kc("check", "b.kcb", "--device", "gfx1151", "--driver", "580", expect=2)

    def test_the_reason_and_the_cure_are_told_once_a_kernel_and_device(self):
        error = self.kc("check", "b.kcb", "--device", "sm_90,gfx1151", expect=1).err
        self.assertEqual(error.count("kc: error: "), 7, error)
        for part in ('"rule" has no code that runs on gfx1151', '"half" with T=b has no code that runs on sm_90',
                     "add sm_90 to the manifest's targets", "the same for 1 other configuration of this kernel"):
            self.assertIn(part, error)

    def test_many_reasons_are_counted(self):
        self.make_bundle("b.kcb", *({"kernel": f"k{i:02}", "target": "sm_90"} for i in range(30)))
        error = self.kc("check", "b.kcb", "--device", "sm_100", expect=1).err
        self.assertEqual(error.count("kc: error: "), 21)
        self.assertIn("10 kernels more", error)
        self.assertEqual(self.kc("check", "b.kcb", "--device", "sm_100", "-v", expect=1).err.count("kc: error: "), 30)

    def test_devices_that_are_none_are_usage_errors(self):
        self.assertIn("sm_9x", self.kc("check", "b.kcb", "--device", "sm_9x", expect=2).err)
        self.assertIn('did you mean "gfx1152"', self.kc("check", "b.kcb", "--device", "gfx1152x", expect=2).err)
        self.assertIn("--device", self.kc("check", "b.kcb", expect=2).err)
        self.kc("check", "missing.kcb", "--device", "sm_90", expect=2)
        # Twice the same is once.
        self.assertEqual(self.covers("--device", "sm_90,sm_90", "--device", "sm_90").keys(),
                         self.covers("--device", "sm_90").keys())

    def test_the_table_fits_a_terminal_and_has_every_device(self):
        self.make_bundle("b.kcb", {"kernel": "k", "target": "sm_80"}, {"kernel": "x" * 100, "target": "sm_80"})
        devices = [f"sm_{n}" for n in (80, 86, 87, 88, 89)]
        shown = self.kc_on_terminal("check", "b.kcb", "--device", ",".join(devices), "--color=never", width=40)
        self.assertLessEqual(max(map(len, shown.splitlines())), 40, shown)
        for device in devices:
            self.assertIn(device, shown)
        self.assertEqual(shown.count("KERNEL"), 3, shown)
        plain = self.kc("check", "b.kcb", "--device", ",".join(devices)).out
        self.assertEqual(plain.count("KERNEL"), 1)
        self.assertIn("x" * 100, plain)

    def test_no_driver_is_looked_for(self):
        log = self.root / "trace"
        done = subprocess.run(["strace", "-f", "-o", log, "-e", "trace=openat", KC, "check", "b.kcb", "--device", "sm_80"],
                              cwd=self.work, env=self.environment(ASAN_OPTIONS="detect_leaks=0"), capture_output=True)
        self.assertEqual(done.returncode, 1)
        text = log.read_text()
        self.assertIn("b.kcb", text)
        self.assertNotIn("libcuda", text)
        self.assertNotIn("libamdhip64", text)


if __name__ == "__main__":
    main()
