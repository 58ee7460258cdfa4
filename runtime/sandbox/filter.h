// The system call filter of a jail.
#pragma once

#include <string>

namespace solstice::sandbox {

// A classic BPF program (struct sock_filter array as bytes) that refuses what no worker needs and what has the kernel's
// worst record: tracing, mounting, new namespaces, io_uring, bpf, keys, sockets other than unix ones (vsock and
// algorithm sockets belong to no network namespace). "" on an architecture that it is not written for.
std::string SystemCallFilter();

}  // namespace solstice::sandbox
