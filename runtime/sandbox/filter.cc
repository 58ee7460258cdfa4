#include "runtime/sandbox/filter.h"

#if defined(__x86_64__)

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace solstice::sandbox {
namespace {

constexpr uint32_t kX32Bit = 0x40000000;
constexpr uint32_t kNamespaceFlags =
    CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

constexpr uint32_t kRefused[] = {SYS_ptrace,
                                 SYS_process_vm_readv,
                                 SYS_process_vm_writev,
                                 SYS_pidfd_getfd,
                                 SYS_kcmp,
                                 SYS_bpf,
                                 SYS_perf_event_open,
                                 SYS_userfaultfd,
                                 SYS_io_uring_setup,
                                 SYS_io_uring_enter,
                                 SYS_io_uring_register,
                                 SYS_keyctl,
                                 SYS_add_key,
                                 SYS_request_key,
                                 SYS_mount,
                                 SYS_umount2,
                                 SYS_pivot_root,
                                 SYS_chroot,
                                 SYS_move_mount,
                                 SYS_fsopen,
                                 SYS_fsconfig,
                                 SYS_fsmount,
                                 SYS_fspick,
                                 SYS_open_tree,
                                 SYS_mount_setattr,
                                 SYS_unshare,
                                 SYS_setns,
                                 SYS_kexec_load,
                                 SYS_kexec_file_load,
                                 SYS_init_module,
                                 SYS_finit_module,
                                 SYS_delete_module,
                                 SYS_reboot,
                                 SYS_swapon,
                                 SYS_swapoff,
                                 SYS_acct,
                                 SYS_quotactl,
                                 SYS_syslog,
                                 SYS_settimeofday,
                                 SYS_clock_settime,
                                 SYS_adjtimex,
                                 SYS_clock_adjtime,
                                 SYS_personality,
                                 SYS_open_by_handle_at,
                                 SYS_name_to_handle_at,
                                 SYS_vhangup,
                                 SYS_ioperm,
                                 SYS_iopl,
                                 SYS_modify_ldt,
                                 SYS_fanotify_init,
                                 SYS_sethostname,
                                 SYS_setdomainname};

constexpr uint32_t Error(int error) { return SECCOMP_RET_ERRNO | static_cast<uint32_t>(error); }

sock_filter Load(size_t offset) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)); }
sock_filter Return(uint32_t action) { return BPF_STMT(BPF_RET | BPF_K, action); }
// Skips `count` instructions unless the accumulator equals `value`.
sock_filter UnlessEqualSkip(uint32_t value, uint8_t count) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, count);
}

}  // namespace

std::string SystemCallFilter() {
  std::vector<sock_filter> program;
  program.push_back(Load(offsetof(seccomp_data, arch)));
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0));
  program.push_back(Return(SECCOMP_RET_KILL_PROCESS));
  program.push_back(Load(offsetof(seccomp_data, nr)));
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kX32Bit, 0, 1));
  program.push_back(Return(Error(ENOSYS)));
  for (uint32_t number : kRefused) {
    program.push_back(UnlessEqualSkip(number, 1));
    program.push_back(Return(Error(EPERM)));
  }
  // Its flags lie in memory, out of a filter's sight; the C library falls back to clone.
  program.push_back(UnlessEqualSkip(SYS_clone3, 1));
  program.push_back(Return(Error(ENOSYS)));
  program.push_back(UnlessEqualSkip(SYS_clone, 4));
  program.push_back(Load(offsetof(seccomp_data, args)));
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kNamespaceFlags, 0, 1));
  program.push_back(Return(Error(EPERM)));
  program.push_back(Return(SECCOMP_RET_ALLOW));
  program.push_back(UnlessEqualSkip(SYS_socket, 3));
  program.push_back(Load(offsetof(seccomp_data, args)));
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 1, 0));
  program.push_back(Return(Error(EPERM)));
  program.push_back(Return(SECCOMP_RET_ALLOW));
  return std::string(reinterpret_cast<const char*>(program.data()), program.size() * sizeof(sock_filter));
}

}  // namespace solstice::sandbox

#else

namespace solstice::sandbox {
std::string SystemCallFilter() { return ""; }
}  // namespace solstice::sandbox

#endif
