"""kc show: the table on terminals of every width, what -v and JSON tell, filters, damage."""

import os

from kc_test import KC, KcTest, main

LONG = {"kernel": "matmul", "specialization": "ACCUMULATE=f32,BLOCK_K=64,BLOCK_M=128,BLOCK_N=256,STAGES=4",
        "target": "gfx1151", "registers": 255, "local_memory": 123456, "spills": 3, "shared_memory": 163840}
SHORT = {"kernel": "matmul", "specialization": "TM=64,act=a%2Cb", "registers": 96, "default": True, "lowest_driver": 580,
         "found_target": "sm_90a", "shared_memory": 4294967295, "arguments": [8, 8, 4],
         "metadata": {"owner": "attention team", "when": "m=64,n=x%3By;m=128"}}
PLAIN = {"kernel": "vec_add"}


class Show(KcTest):
    def on_terminal(self, width, *arguments, **changes):
        """The lines that kc writes to a terminal of `width` columns."""
        env = self.environment(TERM="xterm", NO_COLOR=1, **changes)
        return self.kc_on_terminal(*arguments, width=width, env=env).splitlines()

    def test_without_a_terminal_nothing_is_cut(self):
        self.make_bundle("b.kcb", LONG, SHORT, PLAIN, release=7)
        lines = self.kc("show", "b.kcb").out.splitlines()
        self.assertRegex(lines[0], r"^b\.kcb: made, release 7, 3 units in \d frames?, .* KiB$")
        self.assertEqual(lines[1].split(), ["UNIT", "TARGET", "REGS", "LOCAL", "SPILLS", "SHARED", "CODE"])
        self.assertEqual(
            lines[2].split(),
            ["matmul:" + LONG["specialization"], "gfx1151", "255", "123456", "3", "163840", "73"],
        )
        self.assertEqual(
            lines[3].split(),
            ["matmul:TM=64,act=a%2Cb", "(default)", "sm_90", "(sm_90a)", "96", "0", "-", "4294967295", "28"],
        )
        self.assertEqual(lines[4].split(), ["vec_add", "sm_90", "32", "0", "-", "0", "13"])
        # Numbers end where their titles end.
        for title, numbers in (("REGS", ("255", "96", "32")), ("CODE", ("73", "28", "13"))):
            end = lines[1].index(title) + len(title)
            for line, number in zip(lines[2:], numbers):
                self.assertTrue(line[:end].endswith(" " + number), line)

    def test_a_very_long_name_does_not_fill_the_lines_of_others(self):
        name = "A=" + "x" * 1000
        self.make_bundle("b.kcb", PLAIN, {"kernel": "long", "specialization": name})
        lines = self.kc("show", "b.kcb").out.splitlines()
        self.assertEqual(lines[2].split()[0], "long:" + name)
        self.assertEqual(lines[2].split()[1], "sm_90")
        self.assertEqual(lines[1].index("TARGET"), lines[3].index("sm_90"))
        self.assertLess(len(lines[3]), 200)

    def test_spills_have_a_column_when_a_record_tells_them(self):
        self.make_bundle("b.kcb", LONG, PLAIN)
        self.assertIn("SPILLS", self.kc("show", "b.kcb").out)
        self.assertNotIn("SPILLS", self.kc("show", "b.kcb", "vec_add").out)
        self.make_bundle("none.kcb", PLAIN | {"spills": 0})
        self.assertIn("SPILLS", self.kc("show", "none.kcb").out)

    def test_no_line_is_wider_than_the_terminal(self):
        self.make_bundle("b.kcb", LONG, SHORT, PLAIN, partial=True, subset=True)
        whole = [line.split() for line in self.kc("show", "b.kcb").out.splitlines()[1:]]
        before = []
        for width in [*range(20, 60), *range(60, 125, 7), *range(113, 123)]:
            with self.subTest(width):
                lines = self.on_terminal(width, "show", "b.kcb")
                for line in lines:
                    self.assertLessEqual(len(line), width, line)
                self.assertEqual(lines[0].split()[0], "b.kcb:")
                head, rows = lines[-4].split(), lines[-3:]
                # Columns come one after another as the terminal grows, and none goes again.
                self.assertEqual(head[0], "UNIT")
                self.assertLessEqual(set(before), set(head))
                self.assertEqual(head, [title for title in whole[0] if title in head])
                before = head
                # A number that is shown is whole.
                self.assertTrue(rows[2].startswith("vec_add"))
                self.assertEqual(rows[2].split(), [cell for title, cell in zip(whole[0], whole[3]) if title in head])
        self.assertEqual(before, whole[0])
        self.assertEqual(self.on_terminal(20, "show", "b.kcb")[-4:][0], "UNIT")

    def test_the_target_stays_longer_than_the_numbers_and_names_keep_both_ends(self):
        self.make_bundle("b.kcb", LONG, SHORT)
        lines = self.on_terminal(40, "show", "b.kcb")
        self.assertEqual(lines[-3].split(), ["UNIT", "TARGET", "REGS"])
        self.assertRegex(lines[-2], r"^matmul:\S*\.\.\S*STAGES=4  gfx1151 ")
        self.assertRegex(lines[-1], r"^matmul:T\S*\.\.\S*default\)  sm_90 \(sm_90a\) ")

    def test_a_terminal_that_is_wide_enough_shows_what_a_pipe_gets(self):
        self.make_bundle("b.kcb", LONG, SHORT)
        self.assertEqual(self.on_terminal(400, "show", "b.kcb"), self.kc("show", "b.kcb").out.splitlines())
        self.assertEqual(self.on_terminal(30, "show", "b.kcb", COLUMNS=400), self.kc("show", "b.kcb").out.splitlines())
        self.assertLessEqual(max(map(len, self.on_terminal(400, "show", "b.kcb", COLUMNS=30))), 30)

    def test_absurdly_narrow_terminals_get_something(self):
        self.make_bundle("b.kcb", LONG, PLAIN)
        for width in range(1, 20):
            lines = self.on_terminal(width, "show", "b.kcb")
            self.assertLessEqual(max(map(len, lines[-3:])), width)

    def test_verbose_tells_everything_of_each_unit(self):
        self.make_bundle("b.kcb", LONG, SHORT)
        record = self.kc_json("show", "b.kcb", "*TM=64*")[1]
        lines = self.kc("show", "-v", "b.kcb", "*TM=64*").out.splitlines()
        details = [tuple(line.split(maxsplit=1)) for line in lines if line.startswith("    ")]
        self.assertEqual(details, [
            ("unit", "matmul:TM=64,act=a%2Cb@sm_90"),
            ("entry", "matmul"),
            ("symbol", "matmul"),
            ("backend", "tileiras"),
            ("compiler", "tileiras 13.4.92"),
            ("identity", record["compiler_identity"]),
            ("toolkit", "13.4"),
            ("driver", "580 or newer"),
            ("key", record["key"]),
            ("digest", record["code_digest"]),
            ("place", f"frame {record['frame']}, offset {record['frame_offset']}"),
            ("arguments", "3 in 20 B: 8 B at 0, 8 B at 8, 4 B at 16"),
            ("block", "any"),
            ("when", "m=64, n=x;y"),
            ("when", "m=128"),
            ("metadata", "owner: attention team"),
        ])
        self.assertTrue(any(line.startswith("header digest ") for line in lines))

    def test_scalar_registers_are_told_where_a_code_object_tells_them(self):
        self.make_bundle("b.kcb", LONG | {"scalar_registers": 1}, PLAIN)
        text = self.kc("show", "-v", "b.kcb").out
        self.assertEqual(text.count("\n    scalar    1 register\n"), 1)
        self.assertEqual([event["facts"]["scalar_registers"] for event in self.kc_json("show", "b.kcb")[1:]], [1, None])

    def test_verbose_wraps_on_a_terminal_and_cuts_no_digest(self):
        self.make_bundle("b.kcb", SHORT | {"arguments": [8] * 40})
        lines = self.on_terminal(80, "show", "-v", "b.kcb")
        details = [line for line in lines if line.startswith("    ")]
        self.assertLessEqual(max(map(len, details)), 80)
        self.assertGreater(len([line for line in details if line.startswith(" " * 14)]), 3)
        key = self.kc_json("show", "b.kcb")[1]["key"]
        self.assertIn(f"    key       {key}", self.on_terminal(30, "show", "-v", "b.kcb"))

    def test_json_has_every_field(self):
        self.make_bundle("b.kcb", SHORT, LONG, release=7, subset=True)
        bundle, long, short = self.kc_json("show", "b.kcb")
        self.assertEqual((bundle["event"], bundle["name"], bundle["release"], bundle["records"]), ("bundle", "made", 7, 2))
        self.assertEqual((bundle["partial"], bundle["subset"]), (False, True))
        self.assertEqual(long["facts"]["spills"], 3)
        self.assertEqual(long["selection"], [])
        self.assertIsNone(long["lowest_driver"])
        self.assertEqual(short["config"], {"TM": "64", "act": "a,b"})
        self.assertEqual(short["selection"], [{"m": "64", "n": "x;y"}, {"m": "128"}])
        self.assertEqual(short["metadata"], SHORT["metadata"])
        self.assertTrue(short["default"])
        self.assertEqual(
            set(short),
            {"event", "unit", "kernel", "specialization", "config", "default", "target", "found_target", "backend",
             "entry", "symbol", "compiler", "compiler_version", "compiler_identity", "toolkit", "lowest_driver", "key",
             "code_digest", "code_bytes", "frame", "frame_offset", "facts", "selection", "metadata"},
        )

    def test_what_a_terminal_obeys_is_escaped_in_text_and_in_json(self):
        odd = "\u009b31m \u202e \u2028 \x1b[2J caf\u00e9"
        self.make_bundle("b.kcb", PLAIN | {"metadata": {"owner": odd}})
        for arguments in (["-v"], ["--format=json"]):
            out = self.kc("show", "b.kcb", *arguments).out
            for control in "\u009b\u202e\x1b":
                self.assertNotIn(control, out)
        self.assertEqual(len(self.kc("show", "b.kcb", "--format=json").out.splitlines()), 2)
        self.assertEqual(self.kc_json("show", "b.kcb")[1]["metadata"], {"owner": odd})

    def test_selection_data_that_cannot_be_read_is_null(self):
        self.make_bundle("b.kcb", PLAIN | {"metadata": {"when": "m=64;nonsense"}})
        self.assertIsNone(self.kc_json("show", "b.kcb")[1]["selection"])
        self.assertIn("    when      m=64;nonsense\n", self.kc("show", "-v", "b.kcb").out)

    def test_units_are_chosen_by_name_kernel_or_glob(self):
        self.make_bundle("b.kcb", LONG, SHORT, PLAIN)
        for pattern, count in (("vec_add", 1), ("matmul", 2), ("*@gfx*", 1), ("vec_add@sm_90", 1), ("*", 3),
                               ("matmul:TM=64,act=a%2Cb", 1)):
            self.assertEqual(len(self.kc_json("show", "b.kcb", pattern)), 1 + count, pattern)
        self.assertEqual(len(self.kc_json("show", "b.kcb", "vec_add", "*@gfx*")), 3)
        done = self.kc("show", "b.kcb", "matmul", "vec_ad", expect=2)
        self.assertEqual(done.out, "")
        self.assertIn('no unit or kernel in the bundle is named "vec_ad"', done.err)
        self.assertIn('did you mean "vec_add"?', done.err)

    def test_damage_is_told_before_any_output(self):
        path = self.make_bundle("b.kcb", *({"kernel": f"k{i:04}"} for i in range(500)))
        data = bytearray(path.read_bytes())
        # The strings are in the last pages; the name of the last kernel stands there once.
        data[data.rindex(b"k0499")] ^= 1
        path.write_bytes(data)
        for arguments in ([], ["--format=json"], ["k0001"]):
            done = self.kc("show", "b.kcb", *arguments, expect=1)
            self.assertEqual(done.out, "")
            self.assertIn("b.kcb: the bundle is damaged", done.err)

    def test_an_empty_bundle_has_no_table(self):
        self.make_bundle("b.kcb")
        self.assertEqual(len(self.kc("show", "b.kcb").out.splitlines()), 1)
        self.assertEqual(len(self.kc_json("show", "b.kcb")), 1)
        self.kc("show", "b.kcb", "*", expect=2)

    def test_memory_does_not_grow_with_the_records(self):
        # Held in memory, these would take 15 MB.
        text = "x" * 5000
        self.make_bundle("small.kcb", PLAIN)
        self.make_bundle("large.kcb", *({"kernel": f"k{i}", "metadata": {"n": f"{i} {text}"}} for i in range(3000)))
        # Without a quarantine of freed memory the sanitizer's build behaves as the others.
        options = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=0"
        for arguments in (["show", "large.kcb"], ["show", "large.kcb", "--format=json"], ["diff", "small.kcb", "large.kcb"]):
            with self.subTest(arguments):
                peaks = [self.peak(*(a.replace("large", size) for a in arguments), options=options)
                         for size in ("small", "large")]
                self.assertLess(peaks[1] - peaks[0], 7 << 20, peaks)

    def peak(self, *arguments, options):
        """Peak memory of a run in bytes."""
        with open(os.devnull, "wb") as null:
            pid = os.posix_spawn(KC, [KC, *(self.work / a if a.endswith(".kcb") else a for a in arguments)], self.environment(ASAN_OPTIONS=options),
                                 file_actions=[(os.POSIX_SPAWN_DUP2, null.fileno(), 1)])
        _, status, usage = os.wait4(pid, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)
        return usage.ru_maxrss * 1024


if __name__ == "__main__":
    main()
