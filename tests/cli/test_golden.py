"""Keys across programs and releases. The list of golden keys is compared in tests/unit/build/keys_test.cpp, where the
compiler is fixed too; here: that every command means the same keys, and what is said when their format changes."""

import hashlib
import os
import shutil
import struct

from kc_test import SOURCE, KcTest, main

GOLDEN = SOURCE / "tests" / "golden" / "keys"
KEY_DOMAINS = b"kc-content-v1\0kc-request-v1\0"


def text_at(payload, at):
    """The bytes of a u32-prefixed text and where the next field begins."""
    (size,) = struct.unpack_from("<I", payload, at)
    return payload[at + 4 : at + 4 + size], at + 4 + size


def sealed_again(whole, payload):
    """The state file `whole` with another payload of the same size (docs/store-format.md)."""
    head = bytearray(whole[:128])
    head[96:128] = hashlib.sha256(payload).digest()
    head[32:64] = hashlib.sha256(head[:32] + head[64:128]).digest()
    return bytes(head) + payload


class Golden(KcTest):
    def setUp(self):
        super().setUp()
        shutil.copytree(GOLDEN, self.work, dirs_exist_ok=True)

    def keys(self, *arguments, **options):
        events = self.kc_json(*arguments, **options)
        return {event["unit"]: event["key"] for event in events if event["event"] == "unit"}

    def as_of_another_kc(self, domain):
        """Rewrites the state as another build of kc would have, whose keys are of `domain`."""
        (state,) = self.store_files("state/*")
        whole = state.read_bytes()
        payload = bytearray(whole[128:])
        build_id, at = text_at(payload, 0)
        now, end = text_at(payload, at)
        self.assertEqual(now, KEY_DOMAINS)
        self.assertEqual(len(domain), len(now))
        payload[4 : 4 + len(build_id)] = bytes(len(build_id) * [ord("x")])
        payload[at + 4 : end] = domain
        os.chmod(state, 0o644)
        state.write_bytes(sealed_again(whole, bytes(payload)))

    def test_k09_plan_and_build_mean_the_same_keys(self):
        env = self.with_fake()
        planned = self.keys("plan", env=env)
        listed = [line.split()[0] for line in (GOLDEN / "keys.txt").read_text().splitlines()[1:]]
        self.assertEqual(list(planned), listed)
        self.assertEqual(len(set(planned.values())), len(planned))
        self.assertEqual(self.keys("build", "-n", env=env), planned)
        self.assertEqual(self.keys("build", env=env), planned)
        names = {path.stem for path in self.store_files("e/*/*.kce")}
        self.assertEqual(names, set(planned.values()))
        self.assertEqual({event["state"] for event in self.kc_json("plan", env=env)[:-1]}, {"hit"})
        # Each unit on its own, and from another folder.
        one = next(iter(planned))
        self.assertEqual(self.keys("plan", one, env=env), {one: planned[one]})
        elsewhere = self.root / "elsewhere"
        shutil.copytree(GOLDEN, elsewhere)
        self.assertEqual(self.keys("plan", env=env, cwd=elsewhere), planned)

    def test_k09_another_key_format_is_said_once(self):
        env = self.with_fake()
        self.kc("build", env=env)
        self.as_of_another_kc(KEY_DOMAINS.replace(b"content-v1", b"content-v0"))
        told = self.kc("plan", env=env)
        self.assertEqual((told.out + told.err).count("key format changed"), 1, told.out + told.err)
        told = self.kc("build", env=env)
        self.assertEqual((told.out + told.err).count("key format changed"), 1, told.out + told.err)
        again = self.kc("build", env=env)
        self.assertNotIn("key format changed", again.out + again.err)

    def test_k09_another_build_of_kc_with_the_same_key_format_hits(self):
        env = self.with_fake()
        self.kc("build", env=env)
        self.as_of_another_kc(KEY_DOMAINS)
        done = self.kc("build", "--format=json", env=env)
        self.assertIn('"hits":7,"compiled":0', done.out)
        self.assertEqual(done.out.count('"event":"unit"'), 7, "planned anew")
        self.assertNotIn("key format changed", done.out + done.err)

    def test_k09_entries_of_another_key_format_are_misses_and_harm_nothing(self):
        env = self.with_fake()
        self.kc("build", env=env)
        before = self.digest(self.work / "golden.kcb")
        # As if all keys had been made in another way: the same entries under other names, each of them whole.
        for path in self.store_files("e/*/*.kce"):
            other = hashlib.sha256(path.name.encode()).hexdigest()
            whole = path.read_bytes()
            (size,) = struct.unpack_from("<Q", whole, 16)
            head = bytearray(whole[:size])
            head[64:96] = bytes.fromhex(other)
            head[32:64] = hashlib.sha256(head[:32] + head[64:]).digest()
            target = self.store / "v1" / "e" / other[:2] / f"{other}.kce"
            target.parent.mkdir(mode=0o700, exist_ok=True)
            os.unlink(path)
            target.write_bytes(bytes(head) + whole[size:])
            os.chmod(target, 0o444)
        self.as_of_another_kc(KEY_DOMAINS.replace(b"content-v1", b"content-v0"))
        os.unlink(self.work / "golden.kcb")
        summary = self.summary("build", env=env)
        self.assertEqual((summary["hits"], summary["compiled"]), (0, 7))
        self.assertEqual(self.digest(self.work / "golden.kcb"), before)
        self.kc("store", "verify", env=env)

    def test_k09_plan_and_build_mean_the_same_keys_of_loom_units(self):
        for path in (GOLDEN.parent / "keys_loom").iterdir():
            (shutil.copytree if path.is_dir() else shutil.copy)(path, self.work / path.name)
        self.install_hostile(generation="g4-hrx")  # one that knows processor modes
        env = self.with_hostile()
        listed = [line.split()[0] for line in (GOLDEN.parent / "keys_loom" / "keys.txt").read_text().splitlines()[1:]]
        planned = self.kc_json("plan", env=env)[:-1]
        self.assertEqual([e["unit"] for e in planned], listed)
        self.assertEqual({e["key"] for e in planned}, {None})
        requests = {e["unit"]: e["request_key"] for e in planned}
        self.assertEqual(len(set(requests.values())), len(listed))
        built = self.kc_json("build", env=env)[:-1]
        self.assertEqual({e["unit"]: e["request_key"] for e in built}, requests)
        keys = {e["unit"]: e["key"] for e in built}
        self.assertEqual({path.stem for path in self.store_files("r/*/*.kcr")}, set(requests.values()))
        self.assertEqual({path.stem for path in self.store_files("e/*/*.kce")}, set(keys.values()))
        self.assertEqual(self.keys("plan", env=env), keys)
        self.assertEqual(self.keys("build", "-n", env=env), keys)
        self.assertEqual({e["state"] for e in self.kc_json("plan", env=env)[:-1]}, {"hit"})
        # From another folder, and from a store that has lost its records: the engine finds the entries.
        elsewhere = self.root / "elsewhere"
        shutil.copytree(self.work, elsewhere)
        self.assertEqual(self.keys("plan", env=env, cwd=elsewhere), keys)
        shutil.rmtree(self.store / "v1" / "r")
        os.unlink(self.work / "golden_loom.kcb")
        again = self.kc_json("build", env=env)
        self.assertEqual((again[-1]["hits"], again[-1]["compiled"]), (len(listed), 0))
        self.assertEqual({path.stem for path in self.store_files("r/*/*.kcr")}, set(requests.values()))

    def test_k09_another_format_of_request_keys_is_said_once(self):
        env = self.with_fake()
        self.kc("build", env=env)
        self.as_of_another_kc(KEY_DOMAINS.replace(b"request-v1", b"request-v0"))
        told = self.kc("build", env=env)
        self.assertEqual((told.out + told.err).count("key format changed"), 1, told.out + told.err)


if __name__ == "__main__":
    main()
