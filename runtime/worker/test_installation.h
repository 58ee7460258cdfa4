// For tests: the workers of this build tree, in real jails.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "runtime/compile/compile.h"
#include "runtime/worker/worker.h"

namespace solstice::worker {

class InstallationTest : public testing::Test {
 protected:
  void SetUp() override {
    auto spawner = sandbox::Spawner::Create({});
    ASSERT_TRUE(spawner.ok()) << spawner.status();
    spawner_ = *std::move(spawner);
    auto toolkit = compile::FindToolkit();
    ASSERT_TRUE(toolkit.ok()) << toolkit.status();
    installation_.worker_program = SOLSTICE_BINARY_DIR "/bin/solstice-worker";
    installation_.header_pack = SOLSTICE_SOURCE_DIR "/runtime/compile/headers";
    installation_.toolkit_root = toolkit->root;
  }

  std::unique_ptr<sandbox::Spawner> spawner_;
  Installation installation_;
};

}  // namespace solstice::worker
