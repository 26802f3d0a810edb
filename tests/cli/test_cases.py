"""Faults that happened to users of other tools, each as a test named after its number in the project's case list."""

import os
import shutil
import signal
import subprocess
import time

from kc_test import KC, LOOM_KERNEL, KcTest, events, main, tile


class Cases(KcTest):
    def k04(self):
        """A build in checkout X with HOME A, of both compilers, and the store as a container copy leaves it: folders
        0755, files 0644, new times. Returns X, checkout Y without a bundle, and the copy."""
        checkout_x, checkout_y = self.root / "checkout-x" / "sub", self.root / "checkout-y"
        self.work = self.root / "checkout-x"
        lines = ["version: 1", "kernels:"]
        for i in range(2):
            self.write(f"sub/t{i}.tilebc", tile(f"@entry=kernel n={i}"))
            self.write(f"sub/loom/l{i}.loom", LOOM_KERNEL.format(name=f"l{i}", factor=i + 2, more=""))
            lines += [f"  - {{ name: t{i}, sources: t{i}.tilebc, entry: kernel, targets: [sm_80, sm_90] }}",
                      f"  - {{ name: l{i}, sources: loom/l{i}.loom, libraries: loom/lib.loom, targets: [gfx1100, gfx1201],"
                      " options: { report: summary } }"]
        self.write("sub/loom/lib.loom", "func.def inline @f() {\n  func.return\n}\n")
        self.write("sub/kernels.yaml", "\n".join(lines) + "\n")
        self.with_fake()
        env_a = self.with_hostile(KC_TILEIRAS=self.root / "compiler" / "bin" / "tileiras", HOME=self.root / "home-a", TZ="UTC")
        self.compilers = {name: env_a[name] for name in ("KC_TILEIRAS", "KC_LOOM_LIBRARY")}
        self.kc("build", env=env_a, cwd=checkout_x)
        self.kc("lock", env=env_a, cwd=checkout_x)
        shutil.copytree(checkout_x, checkout_y)
        os.unlink(checkout_y / "kernels.kcb")
        copied = self.root / "copied-store"
        shutil.copytree(self.store, copied, copy_function=shutil.copyfile)
        self.set_modes(copied, 0o755, 0o644)
        return checkout_x, checkout_y, copied

    def test_k04_a_copied_store_serves_another_checkout_user_and_time_zone(self):
        checkout_x, checkout_y, copied = self.k04()
        made = self.digest(checkout_x / "kernels.kcb")
        env_x = self.environment(HOME=self.root / "home-a", **self.compilers)
        keys = {e["unit"]: (e["request_key"], e["key"]) for e in self.kc_json("plan", env=env_x, cwd=checkout_x)[:-1]}
        self.assertEqual(len(keys), 8)
        self.assertNotIn(None, [key for _, key in keys.values()])
        log, traces = self.root / "execs", (str(checkout_x), "checkout-x", "home-a", str(self.store) + "/")
        changes = {"HOME": self.root / "home-b", "TZ": "Asia/Tokyo", "LANG": "C", "LC_ALL": "C", "KC_STORE_DIR": copied,
                   "ASAN_OPTIONS": "detect_leaks=0"}  # strace is in the way of it
        bare = self.install_bare()
        for program, compilers, more in [
            (KC, self.compilers, ["--require-cached"]),
            (KC, self.compilers, ["--locked"]),
            (bare, {}, ["--require-cached"]),
            (bare, {}, ["--require-cached", "--locked", "--store-mode=ro"]),
        ]:
            with self.subTest(program=str(program), more=more):
                (checkout_y / "kernels.kcb").unlink(missing_ok=True)
                shutil.rmtree(copied / "v1" / "state")  # what the last round left
                done = subprocess.run(
                    [shutil.which("strace"), "-f", "-e", "trace=execve", "-o", log, shutil.which("sh"), "-c",
                     f"umask 077; exec {program} build --format=json {' '.join(more)}"],
                    cwd=checkout_y, env=self.environment(PATH="", **changes, **compilers), capture_output=True, text=True,
                )
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn('"hits":8,"compiled":0', done.stdout)
                self.assertEqual({e["unit"]: (e["request_key"], e["key"]) for e in events(done.stdout)[:-1]}, keys)
                self.assertEqual(log.read_text().count("execve("), 2, "the shell, and kc in its place")
                self.assertEqual(made, self.digest(checkout_y / "kernels.kcb"))
                for trace in traces:
                    self.assertNotIn(trace, done.stdout + done.stderr)
        # No path of X or A is in what is stored, shown or packed.
        shown = self.kc("show", "kernels.kcb", "--format=json", cwd=checkout_y).out
        shown += self.kc("plan", "--format=json", cwd=checkout_y, env=self.environment(PATH="", **changes), program=bare).out
        texts = [self.entry_text(path) for kind in ("e/*/*.kce", "r/*/*.kcr") for path in sorted(copied.glob(f"v1/{kind}"))]
        self.assertEqual(len(texts), 8 + 4)
        self.assertTrue(any(b"loom/lib.loom" in text for text in texts), "they can be read")
        texts += [shown.encode(), (checkout_y / "kernels.kcb").read_bytes(), (checkout_y / "kc.lock").read_bytes()]
        for text in texts:
            for trace in traces:
                self.assertNotIn(trace.encode(), text)

    def entry_text(self, path):
        """All bytes of an entry, compressed parts also decompressed."""
        data = path.read_bytes()
        at = data.find(b"\x28\xb5\x2f\xfd")
        if at < 0:
            return data
        plain = subprocess.run(["zstd", "-dcq"], input=data[at:], capture_output=True).stdout
        return data + plain

    def replace_compiler_in_mid_build(self, victim):
        """Runs 20 units of half a second; after the fifth the file `victim` of the compiler is replaced."""
        self.make_units(20, directives="@sleep=500")
        env = self.with_fake()
        self.kc("build", "k000", env=env)
        old = (self.work / "kernels.kcb").exists()
        process = self.start("build", "-j2", env=env)
        deadline = time.time() + 60
        while len(self.store_files("e/*/*.kce")) < 5 and time.time() < deadline:
            time.sleep(0.02)
        if victim == "tileiras":
            self.install_fake(variant="2")
        else:
            new = self.root / "compiler" / "bin" / "ptxas.new"
            new.write_text((self.root / "compiler" / "bin" / victim).read_text() + "# another\n")
            os.chmod(new, 0o755)
            os.rename(new, self.root / "compiler" / "bin" / victim)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 3, out + err)
        self.assertIn("compiler changed during the build", err)
        self.assertEqual((self.work / "kernels.kcb").exists(), old)
        kept = len(self.store_files("e/*/*.kce"))
        self.assertGreaterEqual(kept, 5)
        self.assertLess(kept, 20)
        # What was kept is the first compiler's, under its identity: the second run compiles all anew and is right.
        events = self.kc_json("build", "-j4", env=env)
        self.assertEqual((events[-1]["hits"], events[-1]["compiled"]), (0, 20))
        self.kc("store", "verify")
        # Nothing the second compiler made lies under a key of the first, or the other way round.
        first = self.root / "first"
        second = self.root / "second"
        self.kc("extract", "kernels.kcb", "--all", second)
        self.kc("build", "-o", "clean.kcb", "-j4", "--store-mode=off", env=env)
        self.kc("extract", "clean.kcb", "--all", first)
        self.assertEqual(
            subprocess.run(["diff", "-r", first, second], capture_output=True, text=True).stdout, ""
        )
        self.install_fake(variant="1")

    def test_k07_the_compiler_is_replaced_in_mid_build(self):
        self.replace_compiler_in_mid_build("tileiras")

    def test_k07_the_assembler_beside_it_is_replaced_in_mid_build(self):
        self.replace_compiler_in_mid_build("ptxas")

    def test_k07_the_loom_library_is_replaced_between_planning_and_loading(self):
        self.make_loom_units(4)
        env = self.with_hostile()
        self.kc("build", env=env)
        first = self.digest(self.work / "kernels.kcb")
        entries = self.store_files("e/*/*.kce")
        self.write("k000.loom", self.loom_text("k000", 77))
        # The engine is started when all is planned: what stands in its place replaces the library, then starts it.
        engine = KC.parent.parent / "libexec" / "kc" / "kc-engine"
        program = self.root / "prefix" / "bin" / "kc"
        program.parent.mkdir(parents=True)
        shutil.copy(KC, program)
        wrapper = self.root / "prefix" / "libexec" / "kc" / "kc-engine"
        wrapper.parent.mkdir(parents=True)
        other = self.root / "other.so"
        shutil.copy(self.install_hostile("another", variant="2"), other)
        library = env["KC_LOOM_LIBRARY"]
        wrapper.write_text(f'#!/bin/sh\nif [ -e {other} ]; then mv {other} {library}; fi\nexec {engine} "$@"\n')
        wrapper.chmod(0o755)
        done = subprocess.run([program, "build"], cwd=self.work, env=env, capture_output=True, text=True)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn("compiler changed during the build", done.stderr)
        self.assertFalse(other.exists(), "the library was replaced")
        self.assertEqual(self.digest(self.work / "kernels.kcb"), first)
        self.assertEqual(self.store_files("e/*/*.kce"), entries)
        # The second run is right: all of the second library, and nothing of it under a key of the first.
        self.assertEqual(self.summary("build", env=env)["compiled"], 4)
        self.kc("store", "verify")
        self.kc("build", "-o", "clean.kcb", "--store-mode=off", env=env)
        self.assertEqual(self.digest(self.work / "kernels.kcb"), self.digest(self.work / "clean.kcb"))

    def loom_text(self, name, factor):
        return LOOM_KERNEL.format(name=name, factor=factor, more="")

    # Each kernel reaches two of the 20 libraries. A third declares the value that the first two kernels read, so that
    # all take it.
    def make_library_kernels(self, kernels=30, libraries=20):
        for i in range(libraries):
            self.write_library(i)
        lines = ["version: 1", "targets: [gfx1100, gfx1201]", "defaults:", "  libraries: [\"lib/*.loom\"]",
                 "  config: { shared.bias: 5 }", "kernels:"]
        for i in range(kernels):
            name = f"k{i:02}"
            first, second = i % 10, 10 + i % 10
            more = (f"    %a = func.call @f{first:02}(%product) : (i32) -> (i32)\n"
                    f"    %b = func.call @f{second:02}(%a) : (i32) -> (i32)\n")
            result = "%b"
            if i < 2:
                more += "    %bias = config.get @shared.bias : i32\n    %c = scalar.addi %b, %bias : i32\n"
                result = "%c"
            text = LOOM_KERNEL.format(name=name, factor=i + 2, more=more)
            text = text.replace("view.store %product,", f"view.store {result},")
            heads = [f"func.decl @f{n:02}(%x: i32) -> (i32)\n" for n in (first, second)]
            if i < 2:
                heads.append("config.decl @shared.bias : i32\n")
            self.write(f"{name}.loom", "".join(heads) + text)
            lines.append(f"  - {{ name: {name}, sources: {name}.loom }}")
        self.write("kernels.yaml", "\n".join(lines) + "\n")

    def write_library(self, number, factor=None):
        name = f"f{number:02}"
        self.write(
            f"lib/{name}.loom",
            ("config.decl @shared.bias : i32\n" if number == 19 else "")
            + f"func.def public inline @{name}(%x: i32) -> (i32) {{\n"
            f"  %k = scalar.constant {factor or number + 2} : i32\n"
            f"  %y = scalar.muli %x, %k : i32\n"
            f"  func.return %y : i32\n}}\n",
        )

    def test_k08_a_touched_library_or_value_compiles_only_what_reaches_it(self):
        env = self.with_loom()
        self.make_library_kernels()
        planned = self.kc_json("plan", env=env)
        self.assertEqual({(e["state"], e["key"]) for e in planned[:-1]}, {("miss", None)})
        self.assertNotIn(None, [e["request_key"] for e in planned[:-1]])
        built = self.kc_json("build", env=env)
        self.assertEqual((built[-1]["compiled"], built[-1]["hits"]), (60, 0))
        self.assertEqual([e["request_key"] for e in built[:-1]], [e["request_key"] for e in planned[:-1]])
        keys = {e["unit"]: e["key"] for e in built[:-1]}
        self.assertEqual({e["unit"]: e["key"] for e in self.kc_json("plan", env=env)[:-1]}, keys)

        # A function that the kernels 3, 13 and 23 reach.
        self.write_library(3, factor=99)
        planned = self.kc_json("plan", env=env)
        self.assertEqual({(e["state"], e["key"]) for e in planned[:-1]}, {("miss", None)})
        built = self.kc_json("build", env=env)
        compiled = {e["kernel"] for e in built[:-1] if e["state"] == "compiled"}
        self.assertEqual(compiled, {"k03", "k13", "k23"})
        self.assertEqual((built[-1]["compiled"], built[-1]["hits"]), (6, 54))
        same = {e["unit"] for e in built[:-1] if e["key"] == keys[e["unit"]]}
        self.assertEqual(len(same), 54)

        # A value that the kernels 0 and 1 read and the manifest gives to all.
        manifest = (self.work / "kernels.yaml").read_text()
        self.write("kernels.yaml", manifest.replace("shared.bias: 5", "shared.bias: 6"))
        planned = self.kc_json("plan", env=env)
        self.assertEqual({(e["state"], e["key"]) for e in planned[:-1]}, {("miss", None)})
        built = self.kc_json("build", env=env)
        self.assertEqual({e["kernel"] for e in built[:-1] if e["state"] == "compiled"}, {"k00", "k01"})
        self.assertEqual((built[-1]["compiled"], built[-1]["hits"]), (4, 56))
        # And what was linked only is known from now on.
        self.assertEqual({e["state"] for e in self.kc_json("plan", env=env)[:-1]}, {"hit"})
        self.kc("build", "-o", "clean.kcb", "--store-mode=off", env=env)
        self.assertEqual(self.digest(self.work / "kernels.kcb"), self.digest(self.work / "clean.kcb"))

    def test_units_of_one_build_that_ask_differently_for_the_same_are_compiled_once(self):
        # The stand-in compiles nothing of a library that the root does not name, so its bytes change requests alone.
        lines = ["version: 1", "targets: [gfx1100]", "kernels:"]
        self.write("k.loom", self.loom_text("k", 3).replace("kernel.def", "//! @sleep=100\nkernel.def", 1))
        for i in range(6):
            self.write(f"lib{i}.loom", f"func.def inline @f{i}() {{\n  func.return\n}}\n")
            lines.append(f"  - {{ name: k{i}, sources: k.loom, entry: k, libraries: lib{i}.loom }}")
        self.write("kernels.yaml", "\n".join(lines) + "\n")
        env = self.with_hostile()
        for slots in ("-j1", "-j6"):
            with self.subTest(slots):
                shutil.rmtree(self.store, ignore_errors=True)
                events = self.kc_json("build", slots, "-o", f"{slots[1:]}.kcb", env=env)
                self.assertEqual(len({e["request_key"] for e in events[:-1]}), 6)
                self.assertEqual(len({e["key"] for e in events[:-1]}), 1)
                self.assertEqual((events[-1]["compiled"], events[-1]["hits"]), (1, 5))
                self.assertEqual(len(self.store_files("e/*/*.kce")), 1)
                self.assertEqual(len(self.store_files("r/*/*.kcr")), 6)
                self.assertEqual(self.summary("plan", env=env)["hits"], 6)
        off = self.summary("build", "-o", "off.kcb", "--store-mode=off", env=env)
        self.assertEqual((off["compiled"], off["hits"]), (6, 0))
        digests = {self.digest(self.work / f"{name}.kcb") for name in ("j1", "j6", "off")}
        self.assertEqual(len(digests), 1)

    def test_k14_an_interrupted_build_keeps_what_it_finished(self):
        for number, least in [(signal.SIGTERM, 0), (signal.SIGKILL, 2)]:
            with self.subTest(number.name):
                shutil.rmtree(self.store, ignore_errors=True)
                self.make_units(24, directives="@sleep=300")
                env = self.with_fake()
                process = self.start("build", "-j2", env=env)
                time.sleep(2)
                process.send_signal(number)
                sent = time.time()
                out, err = process.communicate(timeout=20)
                if number == signal.SIGTERM:
                    self.assertLess(time.time() - sent, 1.0)
                    self.assertEqual(process.returncode, 143, err)
                    self.assertEqual(len(out.splitlines()), 1)
                    self.assertRegex(out, r"24 units: \d+ compiled, 0 hits, \d+ not tried")
                else:
                    self.assertEqual(process.returncode, -9)
                    time.sleep(0.5)  # the engine sees the closed socket and cleans up
                kept = len(self.store_files("e/*/*.kce"))
                self.assertGreater(kept, 4)
                self.assertLess(kept, 24)
                self.assert_no_temporaries()
                running = subprocess.run(["pgrep", "-f", str(self.root / "compiler")], capture_output=True)
                self.assertEqual(running.stdout, b"")
                summary = self.summary("build", "-j4", env=env)
                self.assertEqual(summary["hits"], kept)
                self.assertEqual(summary["compiled"], 24 - kept)
                self.kc("store", "verify")
                self.assert_no_temporaries()
                os.unlink(self.work / "kernels.kcb")

    def test_a_source_saved_while_its_unit_compiles_is_compiled_again_next_time(self):
        self.make_units(2, directives="@sleep=1000")
        env = self.with_fake()
        process = self.start("build", "-j2", env=env)
        time.sleep(0.5)
        self.write("k000.tilebc", tile("@entry=kernel n=0 saved"))
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0)
        self.kc("extract", "kernels.kcb", "k000@sm_90", "-o", "before.cubin")
        summary = self.summary("build", env=env)
        self.assertEqual((summary["hits"], summary["compiled"]), (1, 1))
        self.kc("extract", "kernels.kcb", "k000@sm_90", "-o", "after.cubin")
        self.assertNotEqual(self.digest(self.work / "before.cubin"), self.digest(self.work / "after.cubin"))
        # And the first bundle held the first bytes: a build of those alone gives the same code.
        self.write("k000.tilebc", tile("@entry=kernel n=0 @sleep=1000"))
        self.assertEqual(self.summary("build", env=env)["compiled"], 0)
        self.kc("extract", "kernels.kcb", "k000@sm_90", "-o", "again.cubin")
        self.assertEqual(self.digest(self.work / "before.cubin"), self.digest(self.work / "again.cubin"))

    def test_two_builds_at_once_compile_each_unit_once(self):
        self.make_units(8, directives="@sleep=200")
        env = self.with_fake()
        builds = [self.start("build", "-j2", "-o", f"{i}.kcb", "--format=json", env=env) for i in range(2)]
        outs = [b.communicate(timeout=60)[0] for b in builds]
        self.assertEqual([b.returncode for b in builds], [0, 0])
        compiled = sum(out.count('"state":"compiled"') for out in outs)
        self.assertEqual(compiled, 8)
        self.assertEqual(self.digest(self.work / "0.kcb"), self.digest(self.work / "1.kcb"))

    def test_signals_end_a_build_within_a_second_with_their_code(self):
        self.make_units(6, directives="@sleep=700")
        env = self.with_fake()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
            with self.subTest(number.name):
                process = self.start("build", "-j2", env=env)
                time.sleep(0.4)
                process.send_signal(number)
                sent = time.time()
                process.communicate(timeout=20)
                self.assertLess(time.time() - sent, 1.0)
                self.assertEqual(process.returncode, 128 + number)
                self.assert_no_temporaries()


if __name__ == "__main__":
    main()
