#include "server/store/rocksdb/rocksdb_store.h"

#include <fcntl.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <thread>

#include "runtime/base/file.h"
#include "runtime/base/mutex.h"
#include "runtime/base/strings.h"
#include "runtime/base/unique_fd.h"
#include "server/store/rocksdb/mark.h"

namespace solstice::store {
namespace {

constexpr char kAcceptLoss[] = "restore the folder from a backup, or start once with `solsticed --accept-loss`";

rocksdb::Slice Slice(std::string_view text) { return rocksdb::Slice(text.data(), text.size()); }
std::string_view View(const rocksdb::Slice& slice) { return std::string_view(slice.data(), slice.size()); }

Status Convert(const rocksdb::Status& status, std::string_view what) {
  if (status.ok()) return absl::OkStatus();
  std::string message = base::StrCat(what, ": ", status.ToString());
  if (status.IsNotFound()) return base::NotFound(message);
  if (status.IsNoSpace()) return base::ResourceExhausted(message, "free space on the disk that holds the data folder");
  if (status.IsCorruption()) return base::DataLoss(message, kAcceptLoss);
  if (status.IsInvalidArgument()) return base::FailedPrecondition(message);
  return base::Unavailable(message, "check the disk that holds the data folder, and the log in its db/ folder");
}

// The kernel drops the lock with the process, so that a crash never leaves a stale one.
StatusOr<base::UniqueFd> TakeOwnership(const std::string& path, std::chrono::milliseconds timeout) {
  std::string file = path + "/owner";
  base::UniqueFd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return base::FromErrno(errno, file);
  auto give_up = std::chrono::steady_clock::now() + timeout;
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return base::FromErrno(errno, file);
    if (std::chrono::steady_clock::now() >= give_up) {
      auto owner = base::ReadFile(file, 64);
      std::string process = owner.ok() ? std::string(base::Trim(*owner)) : "";
      return base::FailedPrecondition(
          base::StrCat(path, ": another instance", process.empty() ? "" : base::StrCat(" (process ", process, ")"),
                       " holds this data folder"),
          "stop it, or give this one another folder with --data-dir");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  std::string pid = base::StrCat(::getpid(), "\n");
  if (::ftruncate(fd.get(), 0) != 0 || ::pwrite(fd.get(), pid.data(), pid.size(), 0) < 0) {
    return base::FromErrno(errno, file);
  }
  return fd;
}

rocksdb::Options DatabaseOptions() {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.paranoid_checks = true;
  // Up to the first damaged record: a torn tail after a crash is ordinary, a hole is not. The mark tells them apart.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  options.max_background_jobs = 2;
  options.write_buffer_size = 16 << 20;
  options.max_total_wal_size = 64 << 20;
  options.keep_log_file_num = 4;
  options.max_log_file_size = 4 << 20;
  options.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  options.max_open_files = 256;
  std::vector<rocksdb::CompressionType> built_in = rocksdb::GetSupportedCompressions();
  bool lz4 = std::find(built_in.begin(), built_in.end(), rocksdb::kLZ4Compression) != built_in.end();
  options.compression = lz4 ? rocksdb::kLZ4Compression : rocksdb::kNoCompression;
  return options;
}

// The key after every key with `prefix`; empty if there is none.
std::string AfterPrefix(std::string_view prefix) {
  std::string next(prefix);
  while (!next.empty() && static_cast<unsigned char>(next.back()) == 0xFF) next.pop_back();
  if (!next.empty()) next.back() = static_cast<char>(static_cast<unsigned char>(next.back()) + 1);
  return next;
}

class RocksDbStore : public Store {
 public:
  RocksDbStore(base::UniqueFd owner, std::unique_ptr<rocksdb::DB> db, Mark mark, std::chrono::milliseconds interval)
      : owner_(std::move(owner)),
        db_(std::move(db)),
        mark_(std::move(mark)),
        marker_([this, interval] { FollowMark(interval); }) {}

  ~RocksDbStore() override {
    {
      base::MutexLock lock(mutex_);
      stopping_ = true;
      wake_.NotifyAll();
    }
    marker_.join();
    rocksdb::Status status = db_->Close();
    (void)status.ok();  // everything acknowledged is in the log already
  }

  Status Write(const Batch& batch, Durability durability) override {
    if (batch.empty()) return absl::OkStatus();
    rocksdb::WriteBatch writes;
    for (const Batch::Operation& operation : batch.operations()) {
      rocksdb::Status status =
          operation.value ? writes.Put(operation.key, *operation.value) : writes.Delete(operation.key);
      if (!status.ok()) return Convert(status, "store: write");
    }
    rocksdb::WriteOptions options;
    options.sync = durability == Durability::kSynced;
    rocksdb::Status status = db_->Write(options, &writes);
    if (!status.ok()) {
      // After a background error (a full disk) the data base refuses writes until told to go on.
      rocksdb::Status resumed = db_->Resume();
      (void)resumed.ok();
      return Convert(status, "store: write");
    }
    if (options.sync) NoteSynced();
    return absl::OkStatus();
  }

  StatusOr<std::string> Get(std::string_view key) const override {
    std::string value;
    rocksdb::Status status = db_->Get(rocksdb::ReadOptions(), Slice(key), &value);
    if (status.IsNotFound()) return base::NotFound("store: no such key");
    SOLSTICE_RETURN_IF_ERROR(Convert(status, "store: read"));
    return value;
  }

  Status Scan(std::string_view prefix, std::string_view start, bool reverse,
              const std::function<bool(std::string_view, std::string_view)>& visit) const override {
    std::string end = AfterPrefix(prefix);
    rocksdb::Slice upper = end;
    rocksdb::ReadOptions options;
    if (!end.empty()) options.iterate_upper_bound = &upper;
    std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(options));
    if (reverse) {
      // Descending stops at `start`, so it begins at the last key of the prefix.
      it->SeekToLast();
    } else {
      it->Seek(Slice(start.empty() || start < prefix ? prefix : start));
    }
    for (; it->Valid(); reverse ? it->Prev() : it->Next()) {
      std::string_view key = View(it->key());
      if (!key.starts_with(prefix) || (reverse && !start.empty() && key < start)) break;
      if (!visit(key, View(it->value()))) break;
    }
    return Convert(it->status(), "store: scan");
  }

 private:
  void NoteSynced() {
    base::MutexLock lock(mutex_);
    synced_ = true;
  }

  void FollowMark(std::chrono::milliseconds interval) {
    bool stop = false;
    while (!stop) {
      {
        base::MutexLock lock(mutex_);
        if (!stopping_) wake_.WaitFor(mutex_, interval);
        stop = stopping_;
        if (!synced_ && !stop) continue;
        synced_ = false;
      }
      // Buffered writes may stand above the last synced one: sync, then mark.
      uint64_t sequence = db_->GetLatestSequenceNumber();
      if (sequence == mark_.value() || !db_->SyncWAL().ok()) continue;
      Status status = mark_.Set(sequence);
      (void)status.ok();  // an older mark only detects less
    }
  }

  base::UniqueFd owner_;
  std::unique_ptr<rocksdb::DB> db_;
  Mark mark_;  // the marker thread's after construction
  base::Mutex mutex_;
  base::CondVar wake_;
  bool synced_ SOLSTICE_GUARDED_BY(mutex_) = false;
  bool stopping_ SOLSTICE_GUARDED_BY(mutex_) = false;
  std::thread marker_;
};

struct Opened {
  std::unique_ptr<rocksdb::DB> db;
  Mark mark;
};

StatusOr<Opened> OpenWithMark(const std::string& path, bool accept_loss) {
  std::string folder = path + "/db", mark_path = path + "/mark";
  bool database_existed = ::access((folder + "/CURRENT").c_str(), F_OK) == 0;
  bool mark_existed = false;
  StatusOr<Mark> mark = Mark::Open(mark_path, &mark_existed);
  if (!mark.ok() && accept_loss) mark = Mark::Reset(mark_path);
  if (!mark.ok()) return mark.status();
  if (!mark_existed && database_existed && !accept_loss) {
    return base::DataLoss(base::StrCat(mark_path, ": the high-water mark is missing beside a data base"), kAcceptLoss);
  }
  // Checked first, lest an empty data base be made where a full one is missing.
  if (mark->value() > 0 && !database_existed && !accept_loss) {
    return base::DataLoss(
        base::StrCat(folder, ": no data base, but writes up to number ", mark->value(), " had been acknowledged"),
        kAcceptLoss);
  }
  rocksdb::DB* raw = nullptr;
  rocksdb::Status opened = rocksdb::DB::Open(DatabaseOptions(), folder, &raw);
  std::unique_ptr<rocksdb::DB> db(raw);
  SOLSTICE_RETURN_IF_ERROR(Convert(opened, base::StrCat(folder, ": cannot open")));
  uint64_t recovered = db->GetLatestSequenceNumber();
  if (recovered < mark->value() && !accept_loss) {
    return base::DataLoss(base::StrCat(folder, ": recovered writes up to number ", recovered, ", but number ",
                                       mark->value(), " had been acknowledged"),
                          kAcceptLoss);
  }
  if (recovered < mark->value()) {
    // Both slots go: the higher one would win.
    mark = Mark::Reset(mark_path);
    if (!mark.ok()) return mark.status();
  }
  if (recovered != mark->value() || recovered == 0) SOLSTICE_RETURN_IF_ERROR(mark->Set(recovered));
  return Opened{std::move(db), *std::move(mark)};
}

}  // namespace

StatusOr<std::unique_ptr<Store>> OpenRocksDb(const std::string& path, const RocksDbOptions& options) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return base::FromErrno(error.value(), path);
  if (::chmod(path.c_str(), 0700) != 0) return base::FromErrno(errno, path);
  SOLSTICE_ASSIGN_OR_RETURN(base::UniqueFd owner, TakeOwnership(path, options.lock_timeout));
  SOLSTICE_ASSIGN_OR_RETURN(Opened opened, OpenWithMark(path, options.accept_loss));
  return std::unique_ptr<Store>(
      new RocksDbStore(std::move(owner), std::move(opened.db), std::move(opened.mark), options.mark_interval));
}

}  // namespace solstice::store
