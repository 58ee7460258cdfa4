#include "client/cli/interrupts.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

namespace solstice::cli {
namespace {
sigset_t Signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}
}  // namespace

void Interrupts::Block() {
  sigset_t set = Signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

Interrupts::Interrupts(std::function<void()> callback) : callback_(std::move(callback)) {
  thread_ = std::thread([this] {
    sigset_t set = Signals();
    while (!done_.load()) {
      timespec wait = {0, 50000000};
      if (sigtimedwait(&set, nullptr, &wait) < 0) continue;
      if (fired_.exchange(true)) _exit(130);
      callback_();
    }
  });
}

Interrupts::~Interrupts() {
  done_.store(true);
  thread_.join();
}

}  // namespace solstice::cli
