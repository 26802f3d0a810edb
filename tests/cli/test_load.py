#!/usr/bin/env python3
"""kc load, and the same through the C API: what becomes of each kernel on the GPUs of a machine. The GPUs are stand-ins
(tests/support/stub_driver); tests of real ones are elsewhere."""

import pathlib
import shutil
import subprocess

from kc_test import KC, KCLOAD, USE_LOADER, KcTest, loom, main, tile


class LoadTest(KcTest):
    def build(self, kernels, *arguments, name=None, release=None, out="b.kcb", env=None):
        """A bundle of kernels (name, its targets, directives); each one's function has its name."""
        head = ["version: 1"] + [f"name: {name}"] * bool(name) + [f"release: {release}"] * (release is not None)
        lines = head + ["kernels:"]
        for kernel, targets, directives in kernels:
            self.write(f"{kernel}.tilebc", tile(f"@entry={kernel} {directives}"))
            lines.append(f"  - {{ name: {kernel}, sources: {kernel}.tilebc, entry: {kernel}, targets: [{targets}] }}")
        self.write("kernels.yaml", "\n".join(lines) + "\n")
        self.kc("build", "-o", out, *arguments, env=env or self.with_fake())
        return self.work / out

    def through_the_api(self, bundle, kernels, env, device="cuda:0"):
        """What use_loader says: {name: (status, code, unit, message)} and how many kernels are held."""
        done = subprocess.run([USE_LOADER, bundle, device, *kernels], env=env, capture_output=True, text=True, timeout=120)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        found, held = {}, None
        for line in done.stdout.splitlines():
            if line.startswith("|"):
                status, code, unit, message = found[name]
                found[name] = (status, code, unit, message + line[1:] + "\n")
            elif line.startswith("held "):
                held = int(line.split()[1])
            else:
                name, status, code, unit = (line + " ").split(" ")[:4]
                found[name] = (status, int(code), unit, "")
        return found, held


class K01(LoadTest):
    """A tile cubin for sm_120 is refused by a 12.1 device; an exact sm_121 entry loads."""

    def setUp(self):
        super().setUp()
        self.bundle = self.build([("a", "sm_120, sm_121", "@suffix=none"), ("b", "sm_120", "@suffix=none"),
                                  ("c", "sm_120", "")])
        found = {event["unit"]: event["found_target"] for event in self.kc_json("show", self.bundle)[1:]}
        self.assertEqual(found, {"a@sm_120": "sm_120", "a@sm_121": "sm_121", "b@sm_120": "sm_120", "c@sm_120": "sm_120a"})
        self.log = self.root / "log"
        self.env = self.with_stub(
            f"device 12.1 NVIDIA GB10; fail cuLibraryGetKernel 209 sm 120; log {self.log}; "
            "text 209 no kernel image is available for execution on the device")

    def test_K01_check_tells_exact_cover_from_cover_by_the_rule(self):
        for program in (KC, KCLOAD):
            *covers, summary = self.kc_json("check", "b.kcb", "--device", "sm_121", program=program, expect=1)
            self.assertEqual([(event["kernel"], event["state"]) for event in covers],
                             [("a", "exact"), ("b", "by_rule"), ("c", "no")])
            self.assertEqual((summary["kernels"], summary["uncovered"], summary["ok"]), (3, 1, False))

    def assert_explains_b(self, message):
        for part in ("b", "sm_121", "NVIDIA GB10", "CUDA 13.0", "209", "no kernel image is available", "sm_120", "13.4",
                     "add sm_121 to the manifest's targets"):
            self.assertIn(part, message)
        self.assertEqual(message.count("likely cause:"), 1, message)
        self.assertEqual(message.count("cure:"), 1, message)

    def test_K01_load_takes_the_exact_one_and_explains_what_is_refused(self):
        done = self.kc("load", "b.kcb", env=self.env, expect=1)
        self.assertRegex(done.out, r"(?m)^a +loaded +sm_121 +exact$")
        self.assertRegex(done.out, r"(?m)^b +refused$")
        self.assertRegex(done.out, r"(?m)^c +no code$")
        self.assertIn("cuda:0: 1 loaded, 1 refused, 1 without code", done.out)
        self.assertEqual(done.err.count("kc: error: "), 2, done.err)
        about_b, about_c = done.err.split("kc: error: ")[1:]
        self.assert_explains_b(about_b)
        self.assertIn('"c" has no code that runs on sm_121', about_c)
        self.assertIn("sm_120a", about_c)
        # The driver was asked about two images, and not about c.
        log = self.log.read_text()
        self.assertEqual(log.count("cuLibraryLoadData"), 2, log)
        self.assertEqual([line for line in log.splitlines() if " c " in f"{line} "], [])

    def test_K01_through_the_api(self):
        found, held = self.through_the_api(self.bundle, "abc", self.env)
        self.assertEqual(found["a"][:3], ("KC_OK", 0, "a@sm_121"))
        self.assertEqual(found["b"][:2], ("KC_ERROR_NO_CODE", 209))
        self.assert_explains_b(found["b"][3])
        self.assertEqual(found["c"][:2], ("KC_ERROR_NO_CODE", 0))
        self.assertEqual(held, 1)


class K03(LoadTest):
    """What a driver says when it is too old, or when its files do not fit together, leads to the cure."""

    TEXTS = {200: "device kernel image is invalid", 209: "no kernel image is available",
             221: "PTX JIT compiler library not found", 222: "the provided PTX was compiled with an unsupported toolchain",
             300: "invalid device kernel image source", 999: "unknown error"}

    def setUp(self):
        super().setUp()
        self.bundle = self.build([(kernel, "sm_90", "") for kernel in ("first", "second", "third")])

    def driver(self, version, code, at):
        return self.with_stub(f"version {version}; device 9.0 NVIDIA H200; fail {at.format(code=code)}; "
                              f"text {code} {self.TEXTS[code]}")

    def cases(self):
        for version, text in ((12080, "CUDA 12.8"), (13000, "CUDA 13.0")):
            for code in self.TEXTS:
                yield version, text, code, "cuLibraryGetKernel {code} symbol second"
        # What comes when the code is loaded is told in the same way.
        yield 12080, "CUDA 12.8", 200, "cuLibraryLoadData {code} at 2"
        yield 13000, "CUDA 13.0", 300, "cuLibraryLoadData {code} at 2"

    def assert_explains(self, message, version, driver, code):
        for part in ("second", "NVIDIA H200", driver, "13.4", f"error {code}", self.TEXTS[code]):
            self.assertIn(part, message, (driver, code))
        self.assertEqual(message.count("likely cause:"), 1, message)
        self.assertEqual(message.count("cure:"), 1, message)
        if version < 13000:
            self.assertIn("is older than the toolkit that made the code (13.4)", message)
            self.assertIn("install NVIDIA driver 580 or newer", message)
        elif code != 209:
            self.assertIn("incomplete or of different versions", message)
            self.assertIn("libnvidia-ptxjitcompiler", message)
            self.assertIn("nvidia-container-toolkit", message)

    def test_K03_load_explains_and_goes_on(self):
        for version, driver, code, at in self.cases():
            done = self.kc("load", "b.kcb", env=self.driver(version, code, at), expect=1)
            self.assertRegex(done.out, r"(?m)^first +loaded")
            self.assertRegex(done.out, r"(?m)^second +refused")
            self.assertRegex(done.out, r"(?m)^third +loaded")
            self.assertEqual(done.err.count("kc: error: "), 1, done.err)
            self.assert_explains(done.err, version, driver, code)

    def test_K03_through_the_api_tells_too_old_from_no_code(self):
        for version, driver, code, at in self.cases():
            found, held = self.through_the_api(self.bundle, ("first", "second", "third"), self.driver(version, code, at))
            self.assertEqual((found["first"][0], found["third"][0], held), ("KC_OK", "KC_OK", 2))
            status, number, _, message = found["second"]
            self.assertEqual(status, "KC_ERROR_DRIVER_TOO_OLD" if version < 13000
                             else "KC_ERROR_NO_CODE" if code == 209 else "KC_ERROR_DRIVER", (driver, code))
            self.assertEqual(number, code)
            self.assert_explains(message, version, driver, code)


class Devices(LoadTest):
    EIGHT = ("device 9.0 NVIDIA H200; device 9.0 NVIDIA H200; device 8.9 NVIDIA L40S; device 10.0 NVIDIA B200; "
             "device 9.0 NVIDIA H200; device 8.9 NVIDIA L40S; device 10.0 NVIDIA B200; device 9.0 NVIDIA H200")

    def test_all_devices_of_both_makers_are_the_default(self):
        self.build([("k", "sm_89, sm_90, sm_100", "")])
        *events, summary = self.kc_json("load", "b.kcb", env=self.with_stub(self.EIGHT, hip="device gfx942 AMD Instinct"))
        devices = [event for event in events if event["event"] == "device"]
        self.assertEqual([event["device"] for event in devices], [f"cuda:{i}" for i in range(8)] + ["hip:0"])
        self.assertEqual([event["target"] for event in devices[1:4]], ["sm_90", "sm_89", "sm_100"])
        loads = [event for event in events if event["event"] == "load"]
        self.assertEqual([event["state"] for event in loads], ["loaded"] * 8 + ["no_code"])
        self.assertEqual([event["unit"] for event in loads[1:4]], ["k@sm_90", "k@sm_89", "k@sm_100"])
        # Code of another maker is no fault of a kernel.
        self.assertEqual((summary["devices"], summary["loaded"], summary["no_code"], summary["ok"]), (9, 8, 1, True))

    def test_devices_are_chosen_by_name_each_once(self):
        self.build([("k", "sm_90", "")])
        env = self.with_stub(self.EIGHT)

        def chosen(*arguments, **options):
            events = self.kc_json("load", "b.kcb", *arguments, env=env, **options)
            return [event["device"] for event in events if event["event"] == "device"]

        self.assertEqual(chosen("--device", "cuda:7", "--device", "cuda:0"), ["cuda:7", "cuda:0"])
        self.assertEqual(chosen("--device", "cuda:1,cuda:1"), ["cuda:1"])
        self.assertEqual(len(chosen("--device", "cuda", expect=1)), 8)  # the B200 and L40S have no code of it
        self.assertIn("cuda:8", self.kc("load", "b.kcb", "--device", "cuda:8", env=env, expect=3).err)
        for nonsense in ("gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:99999999999", "hip:0x1", "cudaa"):
            self.assertIn("is no device", self.kc("load", "b.kcb", f"--device={nonsense}", env=env, expect=2).err, nonsense)

    def test_without_a_driver_or_a_device_it_is_exit_3_and_says_where_it_looked(self):
        self.build([("k", "sm_90", "")])
        done = self.kc("load", "b.kcb", env=self.with_stub(), expect=3)
        self.assertIn("libcuda.so.1", done.err)
        self.assertIn("libamdhip64.so.6", done.err)
        self.kc("load", "b.kcb", "--device", "cuda:0", env=self.with_stub(), expect=3)
        done = self.kc("load", "b.kcb", env=self.with_stub("device none"), expect=3)
        self.assertIn("no device", done.err)
        done = self.kc("load", "b.kcb", env=self.with_stub("", variant="_without_cuInit"), expect=3)
        self.assertIn("cuInit", done.err)
        # What is wrong with the bundle is told first.
        self.kc("load", "missing.kcb", env=self.with_stub(), expect=2)

    def test_a_real_hip_runtime_without_a_device_says_so(self):
        library = next(filter(self.can_open, (f"libamdhip64.so.{n}" for n in (7, 6, 5))), None)
        if library is None or pathlib.Path("/dev/kfd").exists():
            self.skipTest("not run: " + ("there is an AMD GPU" if library else "no libamdhip64 is installed"))
        self.build([("k", "sm_90", "")])
        done = self.kc("load", "b.kcb", "--device", "hip:0", env=self.environment(), expect=3)
        self.assertIn(library, done.err)
        self.assertIn("no AMD GPU is visible to this process", done.err)

    def test_a_bundle_of_which_nothing_is_for_these_devices_is_exit_1(self):
        self.write("k.loom", loom("k"))
        self.write("kernels.yaml", "version: 1\ntargets: [gfx1100]\nkernels:\n  - { name: k, sources: k.loom }\n")
        self.kc("build", "-o", "b.kcb", env=self.with_hostile())
        done = self.kc("load", "b.kcb", env=self.with_stub(""), expect=1)
        self.assertIn("nothing of it was loaded", done.err)
        *events, summary = self.kc_json("load", "b.kcb", env=self.with_stub(hip="device gfx1100 AMD Radeon"))
        self.assertEqual([(event["state"], event["fit"]) for event in events[1:]], [("loaded", "exact")])

    def test_a_kernel_without_code_for_a_device_of_its_maker_is_exit_1(self):
        for name in ("k", "l"):
            self.write(f"{name}_a.tilebc", tile(f"@entry={name}"))
        self.write("kernels.yaml", """\
version: 1
targets: [sm_90, sm_100]
kernels:
  - { name: k, sources: "k_{T}.tilebc", entry: k, specializations: { matrix: { T: [a] } }, targets: [sm_90] }
  - { name: l, sources: "l_{T}.tilebc", entry: l, specializations: { matrix: { T: [a] } }, targets: [sm_90, sm_100] }
""")
        self.kc("build", "-o", "one.kcb", env=self.with_fake())
        env = self.with_stub("device 10.0 NVIDIA B200")
        done = self.kc("load", "one.kcb", env=env, expect=1)
        self.assertRegex(done.out, r"(?m)^k:T=a +no code$")
        self.assertRegex(done.out, r"(?m)^l:T=a +loaded")
        self.assertEqual(done.err.count("kc: error: "), 1, done.err)
        # Two configurations, each for another device, are a choice that somebody made.
        bundle = self.make_bundle("two.kcb", {"kernel": "k", "specialization": "T=a", "target": "sm_90"},
                                  {"kernel": "k", "specialization": "T=b", "target": "sm_80"})
        *events, summary = self.kc_json("load", bundle, env=self.with_stub("device 10.0 NVIDIA B200"), expect=1)
        self.assertEqual([(event["configuration"], event["state"]) for event in events[1:]],
                         [("T=a", "no_code"), ("T=b", "no_code")])
        self.assertEqual(self.kc("load", bundle, env=env, expect=1).err.count("kc: error: "), 1)

    def test_quiet_says_failures_alone(self):
        self.build([("good", "sm_90", ""), ("bad", "sm_90", "")])
        self.assertEqual(self.kc("load", "b.kcb", "-q", env=self.with_stub("")).out, "")
        done = self.kc("load", "b.kcb", "-q", env=self.with_stub("fail cuLibraryGetKernel 700 symbol bad"), expect=1)
        self.assertEqual(done.out, "")
        self.assertIn("700", done.err)
        self.assertNotIn("good", done.err)

    def test_the_report_fits_a_terminal(self):
        self.build([("k" + "x" * 100, "sm_90", "")])
        shown = self.kc_on_terminal("load", "b.kcb", width=60, env=self.with_stub("", TERM="xterm"))
        self.assertIn("loaded", shown)
        self.assertLessEqual(max(map(len, shown.splitlines())), 75, shown)  # with the codes of colours
        self.assertIn("..", shown)


class Refused(LoadTest):
    """Bundles that do not open, kernels that do not load."""

    def setUp(self):
        super().setUp()
        self.env = self.with_stub("")

    def test_a_bundle_signed_by_another_key_or_by_none_does_not_open(self):
        self.kc("keygen", "release")
        self.kc("keygen", "other")
        self.build([("k", "sm_90", "")], "--sign", "other.key")
        for command in (["load"], ["check", "--device", "sm_90"]):
            error = self.kc(*command, "b.kcb", "--key", "release.pub", env=self.env, expect=1).err
            self.assertIn("sign", error)
            self.kc(*command, "b.kcb", "--key", "release.pub", "--key", "other.pub", env=self.env)
            folder = self.work / "keys"
            folder.mkdir(exist_ok=True)
            self.kc(*command, "b.kcb", "--key-dir", "keys", env=self.env, expect=2)
            shutil.copy(self.work / "other.pub", folder)
            self.kc(*command, "b.kcb", "--key-dir", "keys", env=self.env)
            shutil.rmtree(folder)
            self.kc(*command, "b.kcb", "--key", "k.tilebc", env=self.env, expect=2)
        self.build([("k", "sm_90", "@registers=7")])
        self.kc("load", "b.kcb", env=self.env)
        self.assertIn("not signed", self.kc("load", "b.kcb", "--key", "other.pub", env=self.env, expect=1).err)

    def test_another_name_a_lower_release_and_a_partial_bundle_do_not_open(self):
        self.build([("k", "sm_90", ""), ("l", "sm_90", "")], name="demo", release=7)
        for command in (["load"], ["check", "--device", "sm_90"]):
            self.kc(*command, "b.kcb", "--name", "demo", "--min-release", "7", env=self.env)
            error = self.kc(*command, "b.kcb", "--name", "other", env=self.env, expect=1).err
            self.assertIn("demo", error)
            self.assertIn("other", error)
            error = self.kc(*command, "b.kcb", "--min-release", "8", env=self.env, expect=1).err
            self.assertIn("7", error)
            self.assertIn("8", error)
        self.kc("build", "k", "-o", "subset.kcb", env=self.with_fake())
        self.write("l.tilebc", tile("@entry=l @exit=5"))
        self.kc("build", "-o", "partial.kcb", "--allow-partial", env=self.with_fake(), expect=1)
        for bundle, word in (("subset.kcb", "part"), ("partial.kcb", "partial")):
            for command in (["load"], ["check", "--device", "sm_90"]):
                self.assertIn(word, self.kc(*command, bundle, env=self.env, expect=1).err)
                self.kc(*command, bundle, "--allow-partial", env=self.env)
            status, _, _, message = self.through_the_api(self.work / bundle, ["k"], self.env)[0]["open"]
            self.assertEqual(status, "KC_ERROR_POLICY", message)

    def test_one_flipped_byte_in_a_frame_refuses_that_kernel_alone(self):
        bundle = self.build([(kernel, "sm_90", "@size=9000") for kernel in ("first", "second", "third")],
                            "--frame-size", "4KiB")
        data = bundle.read_bytes()
        offset, size = self.frame_of(bundle, "second@sm_90")
        for at in (offset, offset + size // 2, offset + size - 1):
            bad = bytearray(data)
            bad[at] ^= 0x10
            self.write("bad.kcb", bytes(bad))
            done = self.kc("load", "bad.kcb", env=self.env, expect=1)
            self.assertRegex(done.out, r"(?m)^first +loaded")
            self.assertRegex(done.out, r"(?m)^second +refused")
            self.assertRegex(done.out, r"(?m)^third +loaded")
            self.assertEqual(done.err.count("kc: error: "), 1, done.err)
            self.assertIn("digest", done.err)
            found, held = self.through_the_api(self.work / "bad.kcb", ("first", "second", "third"), self.env)
            self.assertEqual([found[name][0] for name in ("first", "second", "third")],
                             ["KC_OK", "KC_ERROR_DAMAGED", "KC_OK"])
            self.assertEqual(held, 2)

    def test_files_that_are_no_bundles_are_told_apart(self):
        self.assertIn("missing.kcb", self.kc("load", "missing.kcb", env=self.env, expect=2).err)
        self.write("text.kcb", "no bundle\n" * 100)
        self.kc("load", "text.kcb", env=self.env, expect=1)
        bundle = self.build([("k", "sm_90", "")])
        self.write("cut.kcb", bundle.read_bytes()[:-100])
        self.kc("load", "cut.kcb", env=self.env, expect=1)


if __name__ == "__main__":
    main()
