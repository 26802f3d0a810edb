"""The same plan and compiler give the same bundle, whatever else differs."""

import itertools
import os
import shutil
import subprocess

from kc_test import KC, KcTest, main


class Determinism(KcTest):
    def test_bundle_bytes_depend_on_plan_and_artifacts_alone(self):
        self.make_units(12, targets="[sm_80, sm_90, sm_120]", folder="a")
        shutil.copytree(self.work / "a", self.work / "deeper" / "b")
        self.install_fake()
        digests = {}
        surroundings = itertools.cycle(
            [
                {"TZ": "UTC", "LANG": "C"},
                {"TZ": "Asia/Tokyo", "LANG": "de_DE.UTF-8", "HOME": "/nonexistent"},
                {"TZ": "America/St_Johns", "LC_ALL": "tr_TR.UTF-8", "MAKEFLAGS": "-j9", "CUDA_HOME": "/usr"},
            ]
        )
        for count, (jobs, folder, umask) in enumerate(
            itertools.product(["-j1", "-j2", "-j16"], ["a", "deeper/b"], ["022", "077"])
        ):
            store = self.root / f"store-{count}"
            env = self.with_fake(KC_STORE_DIR=store, **next(surroundings))
            output = self.work / folder / "kernels.kcb"
            subprocess.run(
                ["sh", "-c", f"umask {umask}; exec {KC} build {jobs}"], cwd=self.work / folder, env=env, check=True,
                stdout=subprocess.DEVNULL,
            )
            digests[(jobs, folder, umask)] = self.digest(output)
            os.unlink(output)
        self.assertEqual(len(set(digests.values())), 1, digests)

    def test_hits_and_compiles_give_the_same_bytes(self):
        self.make_units(6)
        env = self.with_fake()
        self.kc("build", "k00[024]", env=env)
        self.kc("build", "-o", "mixed.kcb", env=env)
        self.kc("build", "-o", "fresh.kcb", "--store-mode=off", env=env)
        self.assertEqual(self.digest(self.work / "mixed.kcb"), self.digest(self.work / "fresh.kcb"))

    def test_longest_first_order_does_not_reach_the_bundle(self):
        self.make_units(8, directives="@sleep={i}0")
        env = self.with_fake()
        self.kc("build", "-j2", env=env)
        first = self.digest(self.work / "kernels.kcb")
        self.kc("build", "-j2", "--store-mode=refresh", env=env)
        self.assertEqual(self.digest(self.work / "kernels.kcb"), first)


if __name__ == "__main__":
    main()
