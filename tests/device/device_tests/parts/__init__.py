"""The parts, in the order in which they run. A part is a module with NAME, TITLE, NEEDS_GPU, LIMIT_S and
run(ctx, result); to add one, write it and name it here. The longest comes last and takes what time is left."""
from device_tests.parts import (cases, concurrency, conformance, doctor, emulator, evaluate, faulty, hundred, isolation, latency,
                                ncu, nvcc)

ALL = [doctor, latency, faulty, cases, hundred, isolation, concurrency, ncu, emulator, conformance, nvcc, evaluate]
