#include "runtime/base/strings.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/nvjitlink/nvjitlink_linker.h"
#include "tests/conformance/runner.h"

namespace solstice::conformance {
namespace {

class LinkerAssembler : public Assembler {
 public:
  explicit LinkerAssembler(std::unique_ptr<compile::Linker> linker) : linker_(std::move(linker)) {}
  StatusOr<std::string> Assemble(const Module& module) override {
    SOLSTICE_ASSIGN_OR_RETURN(compile::Linker::Output output,
                              linker_->Link(module.ptx, /*input_is_ptx=*/true, "conformance",
                                            {base::StrCat("-arch=", module.arch), "-no-cache"}));
    if (!output.ok) return base::InvalidArgument(base::StrCat("the assembler refuses it: ", output.log));
    return std::move(output.image);
  }

 private:
  std::unique_ptr<compile::Linker> linker_;
};

}  // namespace

StatusOr<std::unique_ptr<Assembler>> OpenAssembler() {
  SOLSTICE_ASSIGN_OR_RETURN(compile::Toolkit toolkit, compile::FindToolkit());
  SOLSTICE_ASSIGN_OR_RETURN(auto linker, compile::OpenNvJitLink(toolkit.nvjitlink));
  return std::make_unique<LinkerAssembler>(std::move(linker));
}

}  // namespace solstice::conformance
