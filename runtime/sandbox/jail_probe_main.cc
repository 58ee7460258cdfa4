// Says on stderr, as "key=value" lines, what a jail looks like from inside; other modes misbehave on purpose. Only for
// the tests of the sandbox.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <string>

extern char** environ;

#if defined(__SANITIZE_ADDRESS__)
// The leak check at exit traces, which a jail forbids.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }
#endif

namespace {

void Say(const char* key, const std::string& value) { fprintf(stderr, "%s=%s\n", key, value.c_str()); }
std::string Code(long result) { return result >= 0 ? "ok" : strerrorname_np(errno); }

void SayRoot() {
  std::string names;
  if (DIR* folder = opendir("/")) {
    while (dirent* entry = readdir(folder)) {
      if (entry->d_name[0] != '.') names += std::string(entry->d_name) + " ";
    }
    closedir(folder);
  }
  Say("root", names);
}

void SayDescriptors() {
  std::string open;
  for (int fd = 0; fd < 1024; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) open += std::to_string(fd) + " ";
  }
  Say("fds", open);
}

void SayLimits() {
  const struct {
    const char* name;
    int resource;
  } kinds[] = {{"limit_as", RLIMIT_AS},         {"limit_cpu", RLIMIT_CPU},     {"limit_fsize", RLIMIT_FSIZE},
               {"limit_nofile", RLIMIT_NOFILE}, {"limit_nproc", RLIMIT_NPROC}, {"limit_core", RLIMIT_CORE}};
  for (const auto& kind : kinds) {
    rlimit limit;
    getrlimit(kind.resource, &limit);
    Say(kind.name, limit.rlim_cur == RLIM_INFINITY ? "none" : std::to_string(limit.rlim_cur));
  }
}

void Describe(int argc, char** argv) {
  Say("uid", std::to_string(getuid()) + " " + std::to_string(geteuid()));
  Say("gid", std::to_string(getgid()) + " " + std::to_string(getgroups(0, nullptr)));
  std::string environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment += std::string(*entry) + " ";
  Say("environment", environment);
  utsname names;
  uname(&names);
  Say("host", names.nodename);
  SayRoot();
  SayDescriptors();
  SayLimits();
  Say("proc", Code(open("/proc/self/status", O_RDONLY)));
  Say("etc", Code(open("/etc/passwd", O_RDONLY)));
  std::string outside;
  for (int i = 2; i < argc; ++i) outside += Code(open(argv[i], O_RDONLY)) + " ";
  Say("outside", outside);
  Say("write_root", Code(open("/new", O_CREAT | O_WRONLY, 0600)));
  Say("write_self", Code(open(argv[0], O_WRONLY)));
  Say("write_mounted", Code(open("/data/new", O_CREAT | O_WRONLY, 0600)));
  Say("write_tmp", Code(open("/tmp/new", O_CREAT | O_WRONLY, 0600)));
  Say("inet", Code(socket(AF_INET, SOCK_STREAM, 0)));
  Say("vsock", Code(socket(40, SOCK_STREAM, 0)));
  Say("unix", Code(socket(AF_UNIX, SOCK_STREAM, 0)));
  Say("signal_parent", Code(kill(getppid(), 0)) + " " + std::to_string(getppid()));
  Say("signal_all", Code(kill(-1, 0)));
  Say("unshare", Code(unshare(CLONE_NEWUSER)));
  Say("ptrace", Code(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr)));
  Say("mount", Code(mount("none", "/", "tmpfs", 0, nullptr)));
  Say("chroot", Code(chroot("/")));
  Say("setuid", Code(setuid(0)));
}

void Daemon() {
  // A grandchild in a session of its own, which holds the channel and ignores what can be ignored.
  if (fork() == 0) {
    setsid();
    if (fork() == 0) {
      for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_IGN);
      while (true) pause();
    }
    _exit(0);
  }
  Say("ready", "1");
  while (true) pause();
}

void Allocate(size_t mebibytes) {
  for (size_t i = 0; i < mebibytes; ++i) {
    void* block = malloc(1 << 20);
    if (block == nullptr) {
      Say("allocation", "refused");
      _exit(3);
    }
    memset(block, 1, 1 << 20);
  }
  Say("allocation", "granted");
  while (true) pause();
}

}  // namespace

int main(int argc, char** argv) {
  std::string mode = argc > 1 ? argv[1] : "describe";
  setvbuf(stderr, nullptr, _IOFBF, 1 << 16);
  if (mode == "describe") Describe(argc, argv);
  if (mode == "exit") return atoi(argv[2]);
  if (mode == "daemon") {
    setvbuf(stderr, nullptr, _IONBF, 0);
    Daemon();
  }
  if (mode == "sleep") {
    while (true) pause();
  }
  if (mode == "spin") {
    volatile int more = 1;
    while (more == 1) {
    }
  }
  if (mode == "allocate") {
    setvbuf(stderr, nullptr, _IONBF, 0);
    Allocate(static_cast<size_t>(atoi(argv[2])));
  }
  if (mode == "crash") abort();
  if (mode == "forks") {
    int made = 0;
    for (; made < 1000; ++made) {
      pid_t pid = fork();
      if (pid < 0) break;
      if (pid == 0) {
        while (true) pause();
      }
    }
    Say("forks", std::to_string(made));
  }
  if (mode == "flood") {
    std::string line(1023, 'x');
    for (int i = 0; i < 4096; ++i) fprintf(stderr, "%s\n", line.c_str());
    fprintf(stderr, "the end\n");
  }
  if (mode == "echo") {
    char packet[4096];
    ssize_t count;
    while ((count = recv(3, packet, sizeof packet, 0)) > 0) send(3, packet, static_cast<size_t>(count), MSG_NOSIGNAL);
  }
  fflush(stderr);
  return 0;
}
