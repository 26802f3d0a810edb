"""A store of this version, kept as files (tests/golden/store): whatever a later kc changes, it finds everything in it, or
the change was meant and the files were made anew."""

import platform
import shutil
import struct

from kc_test import SOURCE, KcTest, main, sealed

GOLDEN = SOURCE / "tests" / "golden" / "store"


class GoldenStore(KcTest):
    def setUp(self):
        super().setUp()
        head, *lines = (GOLDEN / "units.txt").read_text().splitlines()
        if not head.endswith(f"host {platform.machine()}"):
            self.skipTest(f"not run: {head[2:]}")
        self.units = {unit: (request, key, code) for unit, request, key, code in map(str.split, lines)}
        shutil.copytree(GOLDEN, self.work, dirs_exist_ok=True, ignore=shutil.ignore_patterns("store", "*.py", "*.txt"))
        shutil.copytree(GOLDEN / "store", self.store)  # the repository's own may be anybody's
        self.set_modes(self.store, 0o700, 0o444)

    def code_of(self, bundle):
        files = self.bare_json("extract", bundle, "--all", self.root / "code")
        return {e["unit"]: e["digest"] for e in files if e["event"] == "file"}

    def test_k09_everything_in_the_store_of_an_earlier_kc_is_found_without_a_compiler(self):
        self.assertGreaterEqual(len(self.units), 8)
        planned = self.bare_json("plan", "--locked")[:-1]
        built = self.bare_json("build", "--locked", "--require-cached")
        self.assertEqual(built[-1]["hits"] + built[-1]["skipped"], len(self.units))
        self.assertEqual(built[-1]["skipped"], 1)
        for events in (planned, built[:-1]):
            self.assertEqual([e["unit"] for e in events], list(self.units))
            for event in events:
                request, key, code = self.units[event["unit"]]
                self.assertEqual((event["request_key"] or "-", event["key"]), (request, key))
                self.assertEqual(event["state"], "skipped" if code == "unsupported" else "hit")
        self.assertEqual(
            self.code_of("golden_store.kcb"), {unit: code for unit, (_, _, code) in self.units.items() if code != "unsupported"}
        )
        # What an entry says beside the code is read as well.
        facts = {e["unit"]: e["facts"] for e in built[:-1]}
        self.assertEqual((facts["add@sm_90"]["registers"], facts["add@sm_90"]["shared_memory"]), (24, 512))
        warned = [e for e in built[:-1] if e["diagnostics"] and e["kernel"] == "scale"]
        self.assertEqual({d["message"] for e in warned for d in e["diagnostics"]}, {"a warning"})
        self.assertEqual(len(warned), 4)
        self.assertIn("is up to date", self.bare("build", "--locked").out)

    def test_k09_the_store_of_an_earlier_kc_is_whole_and_stays_as_it_is(self):
        before = {path: path.read_bytes() for path in self.store.rglob("*.kc?")}
        summary = self.bare_json("store", "verify")[-1]
        self.assertEqual((summary["damaged"], summary["newer"]), (0, 0))
        self.assertEqual((summary["entries"], summary["records"]), (len(self.store_files("e/*/*")), 5))
        self.bare("build", "--require-cached", "--store-mode=ro")
        self.bare("build", "--require-cached", "-o", "again.kcb")
        self.assertEqual({path: path.read_bytes() for path in self.store.rglob("*.kc?")}, before)

    def test_k09_the_golden_store_names_no_machine_and_no_time(self):
        for path in self.store_files("e/*/*.kce"):
            whole = path.read_bytes()
            self.assertEqual(struct.unpack_from("<q", whole, 216), (0,))
            self.assertEqual(sealed(whole), whole)
        origins = [path.read_bytes()[224] for path in self.store_files("e/*/*.kce")]
        self.assertEqual(sorted(set(origins)), [0, 1], "one is imported")


if __name__ == "__main__":
    main()
