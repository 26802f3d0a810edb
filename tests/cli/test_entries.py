"""kc store ls, show and rm: single entries and records of a store."""


from kc_test import KcTest, main, sealed, tile


class Entries(KcTest):
    def setUp(self):
        super().setUp()
        self.env = self.with_fake()

    def files(self, kind="e"):
        return sorted((self.store / "v1" / kind).rglob("*.kc[er]"))

    def entry_of(self, unit):
        found = [event for event in self.kc_json("store", "ls", env=self.env)
                 if event["event"] == "entry" and event["unit"] == unit]
        self.assertEqual(len(found), 1, unit)
        return found[0]

    def path_of(self, key):
        return self.store / "v1" / "e" / key[:2] / f"{key}.kce"

    def newer(self, path):
        """Makes the file one of the next version, with a digest that holds."""
        data = bytearray(path.read_bytes())
        data[8] += 1
        self.replace(path, sealed(data))

    def warm(self, count=3, **arguments):
        manifest = self.make_units(count, **arguments)
        self.kc("build", "-f", manifest, env=self.env)
        return manifest

    # -- ls -------------------------------------------------------------------------------------------------

    def test_an_empty_store_and_one_that_is_not_there_list_nothing(self):
        self.assertEqual(self.kc("store", "ls", env=self.env).out, "kc: 0 entries, 0 B, and 0 records\n")
        self.assertFalse(self.store.exists())

    def test_entries_are_listed_by_name_with_what_they_are_of(self):
        self.warm(3, targets="[sm_90, sm_80]")
        done = self.kc("store", "ls", env=self.env)
        lines = done.out.splitlines()
        self.assertRegex(lines[0], r"^UNIT +TARGET +KEY +SIZE +COMPILED IN +USED +ORIGIN$")
        self.assertEqual([line.split()[0] for line in lines[1:-1]], ["k000", "k000", "k001", "k001", "k002", "k002"])
        self.assertEqual([line.split()[1] for line in lines[1:-1]], ["sm_80", "sm_90"] * 3)
        self.assertRegex(lines[-1], r"^kc: 6 entries, [0-9.]+ KiB, and 0 records$")
        keys = {path.stem for path in self.files()}
        for line in lines[1:-1]:
            self.assertEqual(len([key for key in keys if key.startswith(line.split()[2])]), 1)
            self.assertRegex(line, r" [0-9a-f]{12}  .* s ago +compiled$")
        whole = self.kc("store", "ls", "-v", env=self.env)
        for key in keys:
            self.assertIn(key, whole.out)

    def test_units_kernels_and_globs_choose_entries(self):
        self.warm(3, targets="[sm_90, sm_80]")
        for pattern, count in (("k001", 2), ("k00[12]", 4), ("k002@sm_90", 1), ("*@sm_80", 3), ("*", 6)):
            events = self.kc_json("store", "ls", pattern, env=self.env)
            self.assertEqual(len(events) - 1, count, pattern)
            self.assertEqual(events[-1]["entries"], count)
        self.assertIn("kc: 2 of 6 entries, ", self.kc("store", "ls", "k001", env=self.env).out)
        failed = self.kc("store", "ls", "k00l", env=self.env, expect=2)
        self.assertIn('nothing in the store is named "k00l"', failed.err)
        self.assertIn('did you mean "k00', failed.err)
        self.assertEqual(failed.out, "")

    def test_the_order_is_the_one_asked_for(self):
        self.write("a.tilebc", tile("@entry=kernel @size=9000"))
        self.write("b.tilebc", tile("@entry=kernel @size=90000"))
        self.write("c.tilebc", tile("@entry=kernel @sleep=300"))
        self.write("kernels.yaml", "version: 1\ntargets: [sm_90]\nkernels:\n" + "".join(
            f"  - {{ name: {name}, sources: {name}.tilebc, entry: kernel }}\n" for name in "abc"))
        self.kc("build", env=self.env)
        for hours, name in enumerate("bca"):
            self.age(self.path_of(self.entry_of(f"{name}@sm_90")["key"]), hours=hours)

        def order(*sort):
            return "".join(event["kernel"] for event in self.kc_json("store", "ls", *sort, env=self.env)[:-1])

        self.assertEqual(order(), "abc")
        self.assertEqual(order("--sort=kernel"), "abc")
        self.assertEqual(order("--sort=age"), "acb")
        self.assertEqual(order("--sort", "seconds")[0], "c")
        sizes = [event["disk_bytes"] for event in self.kc_json("store", "ls", "--sort=size", env=self.env)[:-1]]
        self.assertEqual(sizes, sorted(sizes, reverse=True))
        self.kc("store", "ls", "--sort=name", env=self.env, expect=2)

    def test_json_has_what_the_header_says(self):
        self.warm(1)
        entry, summary = self.kc_json("store", "ls", env=self.env)
        path = self.files()[0]
        self.assertEqual(entry["event"], "entry")
        self.assertEqual(entry["key"], path.stem)
        self.assertEqual((entry["unit"], entry["kernel"], entry["target"]), ("k000@sm_90", "k000", "sm_90"))
        self.assertEqual((entry["backend"], entry["imported"], entry["signer"]), ("tileiras", False, ""))
        self.assertEqual(entry["file_bytes"], path.stat().st_size)
        self.assertGreaterEqual(entry["disk_bytes"], entry["file_bytes"])
        self.assertAlmostEqual(entry["used"], path.stat().st_mtime, delta=1)
        self.assertEqual(summary, {"event": "summary", "entries": 1, "bytes": entry["disk_bytes"], "records": 0,
                                   "damaged": 0, "newer": 0})

    def test_damaged_files_are_warned_of_and_newer_ones_are_noted(self):
        self.warm(4)
        damaged, newer = self.files()[:2]
        self.damage(damaged, at=70)
        self.newer(newer)
        done = self.kc("store", "ls", env=self.env, expect=1)
        self.assertIn(f"warning: e/{damaged.parent.name}/{damaged.name}: has a header", done.err)
        self.assertIn(f"note: e/{newer.parent.name}/{newer.name}: has version 2, which this kc does not read", done.err)
        self.assertIn("kc: 2 entries, ", done.out)
        summary = self.kc_json("store", "ls", env=self.env, expect=1)[-1]
        self.assertEqual((summary["damaged"], summary["newer"]), (1, 1))
        self.assertTrue(damaged.exists())  # looking moves nothing
        damaged.unlink()
        self.kc("store", "ls", env=self.env)

    def test_the_table_fits_a_narrow_terminal(self):
        self.warm(2)
        for width in (30, 60, 100):
            text = self.kc_on_terminal("store", "ls", width=width, env=self.with_fake(TERM="xterm", NO_COLOR="1"))
            lines = text.splitlines()
            self.assertLessEqual(max(map(len, lines[:-1])), width, text)
            self.assertIn("k000", text)
        self.assertIn("compiled", text)

    def test_records_are_counted(self):
        env = self.with_hostile()
        self.kc("build", "-f", self.make_loom_units(3), env=env)
        self.assertRegex(self.kc("store", "ls", env=env).out, r"kc: 3 entries, .*, and 3 records\n$")
        self.assertRegex(self.kc("store", "ls", "k001", env=env).out, r"kc: 1 of 3 entries, .*, and 1 record\n$")

    # -- show -----------------------------------------------------------------------------------------------

    def test_an_entry_is_shown_by_its_key_the_start_of_it_and_its_unit(self):
        self.warm(2)
        key = self.entry_of("k001@sm_90")["key"]
        shown = self.kc("store", "show", key, env=self.env).out
        self.assertIn(f"entry {key}\n", shown)
        for name in (key[:6], key[:12], "k001", "k001@sm_90", "*1@sm_90"):
            self.assertEqual(self.kc("store", "show", name, env=self.env).out, shown, name)
        for text in ("unit       k001@sm_90", "target     sm_90, found sm_90", "backend    tileiras", "origin     compiled here",
                     "kernel     kernel: ", "key field  backend: tileiras", "used       20", "made       20"):
            self.assertIn("  " + text, shown)
        both = self.kc("store", "show", "k00*", env=self.env).out
        self.assertEqual(both.count("\n  unit "), 2)

    def test_an_entry_as_json_has_every_field(self):
        self.warm(1)
        listed = self.kc_json("store", "ls", env=self.env)[0]
        (entry,) = self.kc_json("store", "show", "k000", env=self.env)
        for name, value in listed.items():
            self.assertEqual(entry[name], value, name)
        self.assertEqual(entry["found_target"], "sm_90a")
        self.assertEqual(entry["facts"][0]["symbol"], "kernel")
        self.assertIn({"name": "target", "value": "sm_90"}, entry["key_fields"])
        self.assertEqual(entry["records"], [])

    def test_what_leads_to_an_entry_is_shown_and_where_a_record_leads(self):
        env = self.with_hostile()
        self.kc("build", "-f", self.make_loom_units(2), env=env)
        (entry,) = self.kc_json("store", "show", "k001", env=env)
        (record,) = entry["records"]
        self.assertEqual(record["unit"], "k001@gfx1100")
        (shown,) = self.kc_json("store", "show", record["request_key"][:12], env=env)
        self.assertEqual((shown["event"], shown["key"], shown["has_entry"]), ("record", entry["key"], True))
        self.assertEqual(shown["request_key"], record["request_key"])
        text = self.kc("store", "show", record["request_key"], env=env).out
        self.assertIn(f"  leads to   {entry['key']}\n", text)
        self.path_of(entry["key"]).unlink()
        (shown,) = self.kc_json("store", "show", record["request_key"], env=env)
        self.assertFalse(shown["has_entry"])
        self.assertIn("which is not in the store", self.kc("store", "show", "k001", env=env).out)

    def test_unknown_and_ambiguous_keys_are_input_errors(self):
        self.warm(2)
        failed = self.kc("store", "show", "0" * 12, env=self.env, expect=2)
        self.assertIn("nothing in the store is named", failed.err)
        self.assertIn("no key that starts so", failed.err)
        key = self.files()[0].stem
        self.kc("store", "show", key[:5], env=self.env, expect=2)  # too short for a key, and no unit
        twin = key[:20] + ("0" if key[20] != "0" else "1") * 44
        self.path_of(twin).write_bytes(b"")
        failed = self.kc("store", "show", key[:8], env=self.env, expect=2)
        self.assertIn(f'"{key[:8]}" is the start of 2 keys: ', failed.err)
        self.assertIn("write more of its digits", failed.err)
        self.kc("store", "show", key, env=self.env)
        self.kc("store", "show", env=self.env, expect=2)

    def test_a_damaged_entry_is_not_shown(self):
        self.warm(1)
        path = self.files()[0]
        self.damage(path)  # its payload
        failed = self.kc("store", "show", path.stem, env=self.env, expect=1)
        self.assertIn("does not match its digest", failed.err)
        self.assertEqual(failed.out, "")

    # -- rm -------------------------------------------------------------------------------------------------

    def test_what_was_named_goes_and_the_rest_stays(self):
        manifest = self.warm(4)
        key = self.entry_of("k001@sm_90")["key"]
        planned = self.kc("store", "rm", "-n", key[:10], "k003", env=self.env)
        self.assertIn(f"entry  {key} k001@sm_90\n", planned.out)
        self.assertRegex(planned.out, r"kc: would remove 2 entries and 0 records \([0-9.]+ KiB\)\n$")
        self.assertEqual(len(self.files()), 4)
        done = self.kc("store", "rm", key[:10], "k003", env=self.env)
        self.assertRegex(done.out, r"^kc: removed 2 entries and 0 records \([0-9.]+ KiB\)\n$")
        left = [event["kernel"] for event in self.kc_json("store", "ls", env=self.env)[:-1]]
        self.assertEqual(left, ["k000", "k002"])
        events = self.kc_json("plan", "-f", manifest, env=self.env)
        self.assertEqual(events[-1]["misses"], 2)
        self.kc("store", "rm", "k003", env=self.env, expect=2)
        self.kc("store", "rm", env=self.env, expect=2)

    def test_records_go_with_the_entries_that_they_lead_to(self):
        env = self.with_hostile()
        self.kc("build", "-f", self.make_loom_units(3), env=env)
        (entry,) = self.kc_json("store", "show", "k001", env=env)
        events = self.kc_json("store", "rm", entry["key"], env=env)
        self.assertEqual([event.get("kind") for event in events], ["record", "entry", None])
        self.assertEqual(events[0]["request_key"], entry["records"][0]["request_key"])
        self.assertEqual((len(self.files("e")), len(self.files("r"))), (2, 2))
        record = self.files("r")[0].stem
        summary = self.summary("store", "rm", record, env=env)
        self.assertEqual((summary["entries_removed"], summary["records_removed"]), (0, 1))
        self.assertEqual(len(self.files("e")), 2)
        self.kc("store", "rm", "*", env=env)
        self.assertEqual((self.files("e"), self.files("r")), ([], []))

    def test_a_damaged_entry_is_removed_by_its_key(self):
        self.warm(2)
        path = self.files()[0]
        self.replace(path, b"no entry")
        self.kc("store", "rm", "nothing", env=self.env, expect=2)
        self.kc("store", "rm", path.stem, env=self.env)
        self.assertFalse(path.exists())
        self.replace(self.files()[0], b"no entry")
        for bundle in self.work.glob("*.kcb"):
            bundle.unlink()
        self.warm(2)  # moves it aside and compiles again
        self.assertEqual(len(self.files()), 2)
        self.replace(self.files()[0], b"no entry")
        done = self.kc("store", "rm", "k*", env=self.env)
        self.assertIn("of 1 damaged file nobody can tell the unit", done.err)
        self.assertEqual(len(self.files()), 1)

    def test_what_a_pin_keeps_is_removed_only_by_force(self):
        env = self.with_hostile(KC_TILEIRAS=self.with_fake()["KC_TILEIRAS"])
        manifest = self.make_units(2)
        loom = self.make_loom_units(1, folder="loom")
        self.kc("build", "-f", manifest, env=env)
        self.kc("build", "-f", loom, env=env)
        self.kc("store", "pin", "release", "-f", manifest, env=env)
        self.kc("store", "pin", "amd", "-f", loom, env=env)
        before = len(self.files("e")) + len(self.files("r"))
        failed = self.kc("store", "rm", "k001@sm_90", env=env, expect=1)
        self.assertIn("the pin release keeps 1 file of them: nothing was removed", failed.err)
        self.assertIn("kc store unpin release", failed.err)
        self.assertEqual(failed.out, "")
        (entry,) = self.kc_json("store", "show", "k000@gfx1100", env=env)
        for key in (entry["key"], entry["records"][0]["request_key"]):
            self.assertIn("the pin amd keeps", self.kc("store", "rm", key, env=env, expect=1).err)
        self.assertEqual(len(self.files("e")) + len(self.files("r")), before)
        self.kc("store", "rm", "--force", "k001@sm_90", env=env)
        self.kc("store", "unpin", "release", env=env)
        self.kc("store", "rm", "*@sm_90", env=env)
        self.assertEqual(len(self.files("e")), 1)

    def test_names_from_a_store_cannot_write_to_the_terminal(self):
        self.warm(1)
        path = self.files()[0]
        data = path.read_bytes()
        size = int.from_bytes(data[16:24], "little")
        self.replace(path, sealed(data[:size].replace(b"k000@sm_90", b"\x1b[31mEVIL\n") + data[size:]))
        for arguments in (("ls",), ("show", path.stem), ("rm", "-n", path.stem)):
            out = self.kc("store", *arguments, env=self.env).stdout
            self.assertNotIn(b"\x1b", out)
            self.assertIn(b"\\x1b[31mEVIL\\x0a", out)


if __name__ == "__main__":
    main()
