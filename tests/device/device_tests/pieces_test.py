"""The pieces that could go wrong without a word: what is submitted, what is expected, how outcomes are read."""
import glob
import json
import os
import unittest

from device_tests import catalogue, context, gpu, submissions
from device_tests.parts import cases, isolation, ncu
from device_tests.report import Result, table
from device_tests.server import Answer

ROOT = context.find_root()


def read(*parts):
    with open(os.path.join(ROOT, *parts), encoding="utf-8") as file:
        return file.read()


class SubmissionsTest(unittest.TestCase):
    def test_parameters_become_lets_above_the_plan(self):
        text = submissions.from_reference("// a\n//@ launch k grid=(1) block=(1) args=(f32(e))\n//@  x\nkernel\n",
                                          {"e": 1e-06, "n": 4, "f": 4.0})
        self.assertEqual(text, "// a\n//@ let e = 1e-06\n//@ let n = 4\n//@ let f = 4.0\n"
                               "//@ launch k grid=(1) block=(1) args=(f32(e))\n//@  x\nkernel\n")

    def test_what_is_no_plan_or_no_number_is_refused(self):
        with self.assertRaises(ValueError):
            submissions.from_reference("kernel\n", {})
        for value in (True, "1", None):
            with self.assertRaises(ValueError):
                submissions.formula(value)

    def test_every_definition_has_a_reference_submission(self):
        known = catalogue.definitions(ROOT)
        self.assertEqual(len(known), 17)
        for definition in known.values():
            text = submissions.reference_submission(ROOT, definition)
            self.assertIn("//@ launch", text)
            for name, value in definition.companion.get("parameters", {}).items():
                self.assertIn(f"//@ let {name} = {value!r}\n", text)
            # A let counts from where it stands.
            self.assertTrue(text.find("//@ let") <= text.find("//@ launch"))

    def test_variants_differ_and_keep_the_arguments(self):
        definition = catalogue.definitions(ROOT)["rmsnorm_h2048"]
        honest = submissions.reference_submission(ROOT, definition)
        variants = [submissions.variant(honest, number) for number in range(100)]
        self.assertEqual(len(set(variants)), 100)
        self.assertIn("block=(96)", variants[2])
        self.assertIn("args=(hidden_states, weight, output, i32(hidden_size), f32(epsilon))", variants[2])
        with self.assertRaises(ValueError):
            submissions.variant("kernel\n", 1)

    def test_another_plan_replaces_the_first(self):
        text = submissions.with_plan("// a\n//@ let b = 1\n//@ launch k\n//@   more\nkernel\n", ["launch other"])
        self.assertEqual(text, "//@ launch other\n// a\nkernel\n")

    def test_every_faulty_example_says_what_is_expected(self):
        paths = glob.glob(os.path.join(ROOT, "examples/faulty/*.cu"))
        expected = {os.path.basename(path): submissions.expected_of(read(path)) for path in paths}
        self.assertGreaterEqual(len(expected), 12)
        self.assertEqual(expected["endless_loop.cu"], ("rmsnorm_h2048", "TIMEOUT"))
        self.assertEqual(expected["device_state.cu"], ("rmsnorm_h2048", "REWARD_HACK"))
        with self.assertRaises(ValueError):
            submissions.expected_of("// A kernel.\n")


class CatalogueTest(unittest.TestCase):
    def test_the_table_of_examples_names_every_example(self):
        known = catalogue.definitions(ROOT)
        examples = {example.file: example for example in catalogue.examples(ROOT)}
        files = {os.path.basename(path) for path in glob.glob(os.path.join(ROOT, "examples/*.cu"))}
        self.assertEqual(set(examples), files)
        for example in examples.values():
            self.assertTrue(example.definitions(known), example.file)
        self.assertEqual(examples["fused_add_rmsnorm.cu"].definitions(known),
                         ["fused_add_rmsnorm_h2048", "fused_add_rmsnorm_h7168"])
        self.assertEqual(len(examples["gemm_mma.cu"].definitions(known)), 8)
        self.assertTrue(examples["gemm_mma.cu"].emulator)
        self.assertTrue(examples["gemm_tiled.cu"].emulator)

    def test_sizes(self):
        known = catalogue.definitions(ROOT)
        norm, gemm = known["rmsnorm_h2048"], known["gemm_n128_k2048"]
        self.assertEqual(norm.bytes(norm.smallest("batch_size")), 2 * (2048 + 2048 + 2048))
        self.assertEqual(norm.multiplications(norm.workloads[0]), 0)
        largest = gemm.largest("M")
        self.assertEqual(gemm.multiplications(largest), largest["axes"]["M"] * 128 * 2048)
        self.assertEqual(gemm.var_axes(largest), {"M": largest["axes"]["M"]})
        for definition in known.values():
            self.assertTrue(set(definition.smoke) <= {workload["uuid"] for workload in definition.workloads})


def answer(status, reason="", device_output=None):
    workload = {"status": status, "reason": reason, "device_output": device_output}
    return Answer({"verdict": status, "workloads": [workload]}, 0, 0.0)


class OutcomesTest(unittest.TestCase):
    def test_status_and_reason(self):
        refused = Answer({"error": {"code": "INVALID_ARGUMENT", "reason": "no"}}, 2, 0.0)
        self.assertEqual((refused.status, refused.reason), ("INVALID_ARGUMENT", "no"))
        failed = Answer({"state": "FAILED", "verdict": None, "error": {"code": "INTERNAL", "reason": "x"}}, 3, 0.0)
        self.assertEqual(failed.status, "INTERNAL")
        self.assertEqual(answer("TIMEOUT", "late").reason, "late")

    def test_rows_are_judged_by_the_device(self):
        row = {"expect": "NEEDS_DEVICE", "expect_reason_contains": "wgmma", "expect_on_device": "PASSED"}
        self.assertEqual(cases.judge(row, False, answer("NEEDS_DEVICE", "uses wgmma")), "")
        self.assertNotEqual(cases.judge(row, False, answer("NEEDS_DEVICE", "uses mma")), "")
        self.assertNotEqual(cases.judge(row, True, answer("NEEDS_DEVICE", "uses wgmma")), "")
        self.assertEqual(cases.judge(row, True, answer("PASSED")), "")
        row = {"expect": "RUNTIME_ERROR", "expect_reason_contains": "16", "expect_reason_on_device": "misaligned"}
        self.assertEqual(cases.judge(row, True, answer("RUNTIME_ERROR", "a misaligned access")), "")
        self.assertNotEqual(cases.judge(row, True, answer("RUNTIME_ERROR", "16")), "")
        row = {"expect": "X", "expect_on_device": ["A", "B"]}
        self.assertEqual([bool(cases.judge(row, True, answer(status))) for status in "ABX"], [False, False, True])
        self.assertIn("root:", cases.judge({"expect": "A", "log_excludes": ["root:"]}, True, answer("A", "root:x")))

    def test_which_rows_wait(self):
        rows = json.loads(read("tests/cases/cases.json"))
        self.assertGreater(len([row for row in rows if not cases.waits_for(row, True)]), 120)
        self.assertEqual(cases.waits_for({"needs_device": True, "later_issue": None}, True), "")
        self.assertNotEqual(cases.waits_for({"needs_device": True, "later_issue": None}, False), "")
        self.assertEqual(cases.waits_for({"later_issue": "more"}, True), "more")

    def test_probes(self):
        self.assertEqual(isolation.wrong_with_probe(answer("RUNTIME_ERROR", "fault"), False), "")
        own, other, wrote = [answer("PASSED", "", f"probe: {text}\n") for text in
                             ("read own=1 value=1", "read own=0 value=1", "wrote own=1")]
        self.assertEqual(isolation.wrong_with_probe(own, False), "")
        for wrong in (isolation.wrong_with_probe(other, False), isolation.wrong_with_probe(wrote, True),
                      isolation.wrong_with_probe(answer("PASSED"), False),
                      isolation.wrong_with_probe(answer("TIMEOUT"), False)):
            self.assertNotEqual(wrong, "")
        self.assertEqual(isolation.parse_scans("scan 1: reached=6291456 own_output=0 elsewhere=0\n"
                                               "scan 2: reached=6291456 own_output=1 elsewhere=0\nscan 1: reached=5 "
                                               "own_output=9 elsewhere=9\n"),
                         {1: (6291456, 0, 0), 2: (6291456, 1, 0)})

    def test_durations_of_ncu(self):
        text = ('==PROF== Connected\n"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n'
                '"0","1","k","gpu__time_duration.sum","ns","1,234"\n"0","1","k","other","ns","7"\n'
                '"1","1","k","gpu__time_duration.sum","us","2.5"\n')
        self.assertEqual(ncu.parse_durations(text), [1234.0, 2500.0])
        self.assertEqual(ncu.parse_durations("==ERROR== no permission\n"), [])

    def test_what_nvidia_smi_says(self):
        self.assertEqual(gpu.parse_memory("4\n81000\n"), [4, 81000])
        self.assertEqual(gpu.parse_processes("20, 512\n3, [N/A]\nNo running processes found\n"), [(3, None), (20, 512)])


class ResultTest(unittest.TestCase):
    def test_a_part_that_checked_nothing_failed(self):
        result = Result("part")
        self.assertEqual(result.status, "FAILED")
        result.check(True, "")
        self.assertEqual(result.status, "right")
        result.check(False, "this")
        self.assertEqual((result.status, result.failures), ("FAILED", ["this"]))

    def test_tables_are_aligned(self):
        self.assertEqual(table([["a", "b"], ["longer", 1]]), "a       b\nlonger  1")


if __name__ == "__main__":
    unittest.main()
