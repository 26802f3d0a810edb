"""kc diff: what differs between two bundles, and --fail-on."""

import subprocess

from kc_test import KC, KcTest, main, tile


class Builds(KcTest):
    def test_a_kernel_that_lost_registers_is_told_and_fails_as_asked(self):
        self.make_units(4, "@registers=96 @size=9216")
        env = self.with_fake()
        self.kc("build", "-o", "before.kcb", env=env)
        self.write("k002.tilebc", tile("@entry=kernel n=2 @registers=76 @size=9088"))
        self.kc("build", "-o", "after.kcb", env=env)
        done = self.kc("diff", "before.kcb", "after.kcb")
        lines = done.out.splitlines()
        self.assertEqual(len(lines), 2, done.out)
        self.assertRegex(lines[0], r"^~ k002@sm_90  registers 96 -> 76, code \d+ -> \d+$")
        self.assertEqual(lines[1], "kc: 0 added, 0 removed, 1 changed, 3 the same")
        self.assertEqual(done.err, "")

        for condition, code in (("registers", 0), ("registers-19", 1), ("registers-20", 0), ("registers-20%", 1),
                                ("registers-21%", 0), ("changed", 1), ("local_memory,spills", 0), ("added,removed", 0)):
            self.kc("diff", "before.kcb", "after.kcb", "--fail-on", condition, expect=code)
        for condition, code in (("registers", 1), ("registers+19", 1), ("registers+20", 0), ("registers+26%", 1),
                                ("registers+27%", 0), ("registers-0", 0), ("code", 1), ("code+1MiB", 0)):
            done = self.kc("diff", "after.kcb", "before.kcb", "--fail-on", condition, expect=code)
            if condition.startswith("registers") and code == 1:
                self.assertEqual(
                    done.err, f"kc: error: --fail-on {condition}: k002@sm_90: registers 76 -> 96\n"
                )

    def test_a_build_does_not_differ_from_itself(self):
        self.make_units(3)
        env = self.with_fake()
        self.kc("build", "-o", "a.kcb", env=env)
        self.kc("build", "-o", "b.kcb", env=env)
        done = self.kc("diff", "a.kcb", "b.kcb", "--fail-on", "added,removed,changed,registers,code")
        self.assertEqual((done.out, done.err), ("kc: 0 added, 0 removed, 0 changed, 3 the same\n", ""))


class Bundles(KcTest):
    def setUp(self):
        super().setUp()
        self.before = [
            {"kernel": "conv", "registers": 40},
            {"kernel": "matmul", "specialization": "TM=128", "registers": 96, "spills": 0},
            {"kernel": "matmul", "specialization": "TM=64", "registers": 96, "metadata": {"owner": "a"}},
            {"kernel": "old"},
            {"kernel": "vec_add", "code": "one"},
        ]
        self.after = [
            {"kernel": "conv", "registers": 40},
            {"kernel": "matmul", "specialization": "TM=128", "registers": 128, "spills": 8, "local_memory": 64},
            {"kernel": "matmul", "specialization": "TM=64", "registers": 96, "metadata": {"owner": "b"}, "default": True},
            {"kernel": "new", "target": "gfx1151", "registers": 4294967295},
            {"kernel": "vec_add", "code": "two"},
        ]
        self.make_bundle("a.kcb", *self.before)
        self.make_bundle("b.kcb", *self.after)

    def diff(self, *arguments, **options):
        return self.kc("diff", "a.kcb", "b.kcb", *arguments, **options)

    def test_text_has_a_line_for_what_differs_in_order_of_names(self):
        self.assertEqual(self.diff().out.splitlines(), [
            "~ matmul:TM=128@sm_90  registers 96 -> 128, local memory 0 -> 64, spills 0 -> 8",
            "~ matmul:TM=64@sm_90  now the default, metadata owner differs",
            "+ new@gfx1151",
            "- old@sm_90",
            "~ vec_add@sm_90  code differs",
            "kc: 1 added, 1 removed, 3 changed, 1 the same",
        ])

    def test_scalar_registers_are_told_but_are_no_metric(self):
        self.make_bundle("a.kcb", {"kernel": "scan", "target": "gfx942", "scalar_registers": 18})
        self.make_bundle("b.kcb", {"kernel": "scan", "target": "gfx942", "scalar_registers": 0})
        self.assertEqual(self.diff().out.splitlines()[0], "~ scan@gfx942  scalar registers 18 -> 0")
        changed = self.kc_json("diff", "a.kcb", "b.kcb")[1]
        self.assertEqual((changed["changes"], changed["differs"]), ([], ["scalar_registers"]))
        self.assertEqual((changed["before"]["scalar_registers"], changed["after"]["scalar_registers"]), (18, 0))

    def test_differences_of_the_bundles_come_first(self):
        self.make_bundle("c.kcb", *self.before, bundle="other", release=4, partial=True, subset=True)
        first = "~ bundle  name made -> other, release 0 -> 4, now partial, now a subset"
        self.assertEqual(self.kc("diff", "a.kcb", "c.kcb").out.splitlines(),
                         [first, "kc: 0 added, 0 removed, 0 changed, 5 the same"])
        back = "~ bundle  name other -> made, release 4 -> 0, no longer partial, no longer a subset"
        self.assertEqual(self.kc("diff", "c.kcb", "a.kcb").out.splitlines()[0], back)

    def test_verbose_tells_other_compilers_of_what_changed(self):
        made_by = {"compiler_version": "13.5.1", "toolkit": "13.5"}
        self.make_bundle("c.kcb", *({**r, **made_by, "registers": 1 if r["kernel"] == "conv" else r.get("registers", 32)}
                                    for r in self.before))
        done = self.kc("diff", "a.kcb", "c.kcb", "-v")
        self.assertEqual(done.out.splitlines(), [
            "~ conv@sm_90  registers 40 -> 1, compiler tileiras 13.4.92 -> 13.5.1, toolkit 13.4 -> 13.5",
            "kc: 0 added, 0 removed, 1 changed, 4 the same",
        ])
        self.assertNotIn("compiler", self.kc("diff", "a.kcb", "c.kcb").out)

    def test_quiet_says_failures_alone(self):
        done = self.diff("-q")
        self.assertEqual((done.out, done.err), ("", ""))
        done = self.diff("-q", "--fail-on", "added", expect=1)
        self.assertEqual((done.out, done.err), ("", "kc: error: --fail-on added: new@gfx1151: added\n"))

    def test_json(self):
        events = self.kc_json("diff", "a.kcb", "b.kcb", "--fail-on", "registers+10%,spills,code", expect=1)
        self.assertEqual([e["event"] for e in events], ["bundles", "changed", "changed", "added", "removed", "changed", "summary"])
        self.assertEqual((events[0]["before"]["path"], events[0]["after"]["records"]), ("a.kcb", 5))
        tm128 = events[1]
        self.assertEqual((tm128["unit"], tm128["kernel"], tm128["target"], tm128["config"]),
                         ("matmul:TM=128@sm_90", "matmul", "sm_90", {"TM": "128"}))
        self.assertEqual(tm128["changes"], [
            {"metric": "registers", "before": 96, "after": 128},
            {"metric": "local_memory", "before": 0, "after": 64},
            {"metric": "spills", "before": 0, "after": 8},
        ])
        self.assertEqual(tm128["differs"], [])
        self.assertEqual(tm128["failed_on"], ["registers+10%", "spills"])
        self.assertEqual((tm128["before"]["registers"], tm128["after"]["registers"]), (96, 128))
        self.assertEqual(events[2]["differs"], ["default", "metadata"])
        self.assertIsNone(events[3]["before"])
        self.assertEqual(events[3]["after"]["registers"], 4294967295)
        self.assertIsNone(events[4]["after"])
        self.assertEqual(events[5]["differs"], ["code_digest"])
        self.assertNotEqual(events[5]["before"]["code_digest"], events[5]["after"]["code_digest"])
        self.assertEqual(events[6], {"event": "summary", "added": 1, "removed": 1, "changed": 3, "same": 1,
                                     "failed_on": ["registers+10%", "spills"]})

    def test_conditions_that_hold_are_told_one_by_one(self):
        done = self.diff("--fail-on", "registers+10%,removed", "--fail-on", "spills", expect=1)
        self.assertEqual(done.err.splitlines(), [
            "kc: error: --fail-on registers+10%: matmul:TM=128@sm_90: registers 96 -> 128",
            "kc: error: --fail-on removed: old@sm_90: removed",
            "kc: error: --fail-on spills: matmul:TM=128@sm_90: spills 0 -> 8",
        ])
        self.assertIn("kc: 1 added", done.out)
        self.diff("--fail-on", "registers+34%,shared_memory,code,registers-0")

    def test_a_condition_that_has_nothing_to_compare_is_told(self):
        warning = ("kc: warning: --fail-on spills+10% has nothing to compare: no unit tells its spills in both bundles\n"
                   "  cubins do not tell spills, Loom only with its option report: use local_memory\n")
        arguments = ("diff", "a.kcb", "b.kcb", "conv", "new", "--fail-on", "spills+10%,registers,changed")
        self.assertEqual(self.kc(*arguments).err, warning)
        self.assertEqual(self.kc(*arguments, "-q").err, "")
        # TM=128 tells them in both; a unit of one bundle is no reason.
        self.assertEqual(self.diff("--fail-on", "spills+10", "conv", "matmul").err, "")
        self.assertEqual(self.diff("--fail-on", "spills", "new").err, "")

    def test_options_may_stand_before_the_bundles(self):
        self.kc("diff", "--fail-on", "spills,code", "a.kcb", "b.kcb", expect=1)
        self.kc("diff", "--fail-on=code", "a.kcb", "b.kcb", "conv")

    def test_a_condition_that_holds_for_many_units_is_counted(self):
        self.make_bundle("c.kcb", *({"kernel": f"k{i:03}", "registers": 10} for i in range(50)))
        self.make_bundle("d.kcb", *({"kernel": f"k{i:03}", "registers": 11, "spills": 1} for i in range(50)))
        done = self.kc("diff", "c.kcb", "d.kcb", "--fail-on", "registers,changed", expect=1)
        lines = done.err.splitlines()
        self.assertEqual(len(lines), 42)
        self.assertEqual(lines[20], "kc: error: --fail-on registers: and 30 more units")
        self.assertEqual(lines[41], "kc: error: --fail-on changed: and 30 more units")
        self.assertEqual(len(done.out.splitlines()), 51)

    def test_a_faulty_condition_is_exit_2_before_anything_is_opened(self):
        for condition, text in (("register+10%", 'did you mean "registers"?'), ("registers+x", "not a whole number"),
                                ("added+1", "takes no amount"), ("code+1MB!", "not a size"),
                                ("spills,nonsense", "known are registers, local_memory, spills")):
            done = self.kc("diff", "missing.kcb", "b.kcb", "--fail-on", condition, expect=2)
            self.assertIn(text, done.err)
            self.assertNotIn("missing.kcb", done.err)
            self.assertEqual(done.out, "")

    def test_named_units_alone_are_compared(self):
        self.assertEqual(self.diff("matmul:TM=64", "new").out.splitlines(), [
            "~ matmul:TM=64@sm_90  now the default, metadata owner differs",
            "+ new@gfx1151",
            "kc: 1 added, 0 removed, 1 changed, 0 the same",
        ])
        self.diff("matmul:TM=64", "--fail-on", "registers,removed")
        self.assertEqual(len(self.diff("mat*").out.splitlines()), 3)
        done = self.diff("matmul", "ol", expect=2)
        self.assertEqual(done.out, "")
        self.assertIn('no unit or kernel in either bundle is named "ol"', done.err)
        self.assertIn('did you mean "old"?', done.err)

    def test_damage_is_exit_1_with_the_bundle_that_has_it(self):
        data = bytearray((self.work / "a.kcb").read_bytes())
        data[data.rindex(b"vec_add")] ^= 1
        (self.work / "bad.kcb").write_bytes(data)
        (self.work / "cut.kcb").write_bytes(data[:5000])
        (self.work / "text.kcb").write_text("no bundle")
        for name in ("bad.kcb", "cut.kcb", "text.kcb"):
            for pair in ((name, "a.kcb"), ("a.kcb", name)):
                done = self.kc("diff", *pair, expect=1)
                self.assertRegex(done.err, f"^kc: error: {name}: ")
                self.assertNotIn("the same", done.out)

    def test_what_cannot_be_opened_is_exit_2(self):
        for name in ("missing.kcb", "."):
            for pair in ((name, "a.kcb"), ("a.kcb", name)):
                self.assertIn(name, self.kc("diff", *pair, expect=2).err)
        self.kc("diff", "a.kcb", expect=2)

    def test_a_result_that_cannot_be_written_is_exit_3(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([KC, "diff", "a.kcb", "b.kcb"], cwd=self.work, env=self.environment(), stdout=full,
                                  stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 3)

    def test_added_is_green_and_removed_red_on_terminals_alone(self):
        self.assertNotIn("\x1b", self.diff().out)
        out = self.diff("--color=always").out
        self.assertIn("\x1b[32m+ new@gfx1151\x1b[0m\n", out)
        self.assertIn("\x1b[1;31m- old@sm_90\x1b[0m\n", out)
        self.assertIn("\x1b[1;33m~ vec_add@sm_90\x1b[0m  code differs\n", out)
        self.assertIn("\x1b[32m+ new", self.kc_on_terminal("diff", "a.kcb", "b.kcb"))


if __name__ == "__main__":
    main()
