"""What test_lock.py and test_no_compiler.py share."""

from kc_test import KcTest, tile


class LockTest(KcTest):
    def both(self, **changes):
        """An environment with both stand-ins."""
        self.with_fake()
        loom = self.with_hostile()["KC_LOOM_LIBRARY"]
        return self.with_fake(KC_LOOM_LIBRARY=loom, **changes)

    def make(self):
        """Two kernels, one a compiler, in a folder of their own: three units with code, one without."""
        self.write("a.tilebc", tile("@entry=kernel a"))
        self.make_loom_units(1)
        self.write(
            "kernels.yaml",
            "version: 1\nkernels:\n"
            "  - { name: a, sources: a.tilebc, entry: kernel, targets: [sm_75, sm_90], unsupported: skip }\n"
            "  - { name: k000, sources: k000.loom, targets: [gfx1100, gfx1201] }\n",
        )
        return self.both()

    def lock(self, folder=None):
        return (folder or self.work) / "kc.lock"

    def states(self, events):
        return {e["unit"]: e["state"] for e in events if e["event"] == "unit"}
