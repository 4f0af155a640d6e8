// Landlock and seccomp through the kernel's own interfaces. Both report if they are unavailable.
#include "platform/confine.hpp"

#ifdef __linux__
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <vector>
#endif

namespace tuff::platform {

#ifdef __linux__
namespace {

// --- Landlock: include/uapi/linux/landlock.h, which some systems' headers lack -------------------------------

constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
constexpr uint32_t kAskVersion = 1, kPathBeneath = 1;
struct Ruleset {
  uint64_t files, networks, scopes;
};
struct __attribute__((packed)) PathBeneath {
  uint64_t allowed;
  int32_t parent;
};
enum FileRights : uint64_t {
  kExecute = 1 << 0,
  kWriteFile = 1 << 1,
  kReadFile = 1 << 2,
  kReadFolder = 1 << 3,
  kMakeAndRemove = 0x1ff << 4,  // files, folders, links, sockets, pipes, devices
  kRefer = 1 << 13,             // since version 2
  kTruncate = 1 << 14,          // since version 3
  kControlDevice = 1 << 15      // since version 5
};
constexpr uint64_t kBindAndConnect = 3;      // TCP; since version 4
constexpr uint64_t kAbstractAndSignals = 3;  // abstract Unix sockets and signals to other processes; since version 6

uint64_t known_rights(long version) {
  uint64_t rights = kExecute | kWriteFile | kReadFile | kReadFolder | kMakeAndRemove;
  if (version >= 2) rights |= kRefer;
  if (version >= 3) rights |= kTruncate;
  if (version >= 5) rights |= kControlDevice;
  return rights;
}

std::string system_says(const char* what) { return std::string(what) + ": " + std::strerror(errno); }

std::string restrict_files(Needs needs) {
  const long version = ::syscall(kCreateRuleset, nullptr, 0, kAskVersion);
  if (version < 1) return system_says("no landlock");
  Ruleset rules{known_rights(version), version >= 4 ? kBindAndConnect : 0, version >= 6 ? kAbstractAndSignals : 0};
  if (needs != Needs::compiler) rules.files &= ~(uint64_t{kReadFile} | kReadFolder);
  // Device ioctls are forbidden too, except for a device's driver under /dev (below).
  const size_t size = version >= 6 ? sizeof rules : version >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
  const long set = ::syscall(kCreateRuleset, &rules, size, 0);
  if (set < 0) return system_says("no landlock");
  const int descriptor = static_cast<int>(set);
  bool good = true;
  if (needs == Needs::device_driver) {
    const int devices = ::open("/dev", O_PATH | O_CLOEXEC);
    PathBeneath beneath{(uint64_t{kWriteFile} | kTruncate | kControlDevice) & rules.files, devices};
    good = devices >= 0 && ::syscall(kAddRule, descriptor, kPathBeneath, &beneath, 0) == 0;
    if (devices >= 0) ::close(devices);
  }
  good = good && ::syscall(kRestrictSelf, descriptor, 0) == 0;
  const std::string problem = good ? "" : system_says("no landlock");
  ::close(descriptor);
  return good ? "landlock " + std::to_string(version) : problem;
}

// --- seccomp -------------------------------------------------------------------------------------------------

#if defined(__x86_64__)
constexpr uint32_t kMachine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kMachine = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kMachine = 0;  // system call numbers unknown
#endif

// What a compiler does once it has its input: memory, time, locks, exit.
constexpr long kCompilerCalls[] = {
    SYS_read,
    SYS_write,
    SYS_close,
    SYS_fstat,
    SYS_lseek,
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_madvise,
    SYS_mprotect,
    SYS_brk,
    SYS_futex,
    SYS_getrandom,
    SYS_getpid,
    SYS_gettid,
    SYS_exit,
    SYS_rt_sigaction,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_rt_sigprocmask,
    SYS_clock_gettime,
    SYS_gettimeofday,
    SYS_exit_group,
    SYS_sched_yield,
    SYS_getrusage,
    SYS_sysinfo,
    SYS_sched_getaffinity,
};

// Numbers that older headers lack. All architectures have the same ones from 424 on.
constexpr long kOpenTree = 428, kMoveMount = 429, kFsopen = 430, kFsconfig = 431, kFsmount = 432, kFspick = 433,
               kPidfdGetfd = 438, kProcessMadvise = 440, kMountSetattr = 442, kProcessMrelease = 448, kFchmodat2 = 452,
               kSetxattrat = 463, kRemovexattrat = 466, kOpenTreeAttr = 467, kFileSetattr = 469;

// What no driver's compiler does. Drivers differ too much to list what they do.
constexpr long kOutsideCalls[] = {
    SYS_execve,
    SYS_execveat,
#ifdef SYS_fork
    SYS_fork,
    SYS_vfork,
#endif
    // networking, and other processes through sockets
    SYS_socket,
    SYS_socketpair,
    SYS_connect,
    SYS_bind,
    SYS_listen,
    SYS_accept,
    SYS_accept4,
    // other processes
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kill,
    SYS_tkill,
    SYS_rt_sigqueueinfo,
    SYS_rt_tgsigqueueinfo,
    SYS_pidfd_open,
    SYS_pidfd_send_signal,
    kPidfdGetfd,
    kProcessMadvise,
    kProcessMrelease,
    SYS_migrate_pages,
    SYS_move_pages,
    SYS_kcmp,
    SYS_setns,
    SYS_unshare,
    SYS_setsid,
    SYS_setpriority,
    SYS_sched_setscheduler,
    SYS_sched_setparam,
    SYS_sched_setattr,
    SYS_ioprio_set,
    SYS_msgget,
    SYS_semget,
    SYS_shmget,
    SYS_shmat,
    SYS_mq_open,
    SYS_mq_unlink,
    // the file system
    SYS_unlinkat,
    SYS_renameat2,
    SYS_linkat,
    SYS_symlinkat,
    SYS_mkdirat,
    SYS_mknodat,
    SYS_fchmod,
    SYS_fchmodat,
    kFchmodat2,
    SYS_fchown,
    SYS_fchownat,
    SYS_truncate,
    SYS_utimensat,
    SYS_setxattr,
    SYS_lsetxattr,
    SYS_fsetxattr,
    SYS_removexattr,
    SYS_lremovexattr,
    SYS_fremovexattr,
    kSetxattrat,
    kRemovexattrat,
    kFileSetattr,
    SYS_name_to_handle_at,
    SYS_open_by_handle_at,
#ifdef SYS_unlink
    SYS_unlink,
    SYS_rename,
    SYS_link,
    SYS_symlink,
    SYS_mkdir,
    SYS_rmdir,
    SYS_mknod,
    SYS_chmod,
    SYS_chown,
    SYS_lchown,
    SYS_creat,
    SYS_utime,
    SYS_utimes,
    SYS_futimesat,
#endif
#ifdef SYS_renameat
    SYS_renameat,
#endif
    SYS_chroot,
    SYS_pivot_root,
    SYS_mount,
    SYS_umount2,
    kOpenTree,
    kMoveMount,
    kFsopen,
    kFsconfig,
    kFsmount,
    kFspick,
    kMountSetattr,
    kOpenTreeAttr,
    SYS_swapon,
    SYS_swapoff,
    // the system
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_userfaultfd,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_reboot,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_adjtimex,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_acct,
    SYS_quotactl,
    SYS_setuid,
    SYS_setgid,
    SYS_setreuid,
    SYS_setregid,
    SYS_setresuid,
    SYS_setresgid,
    SYS_setgroups,
    SYS_capset,
    SYS_personality,
};

class Filter {
 public:
  Filter() {
    // System calls of another architecture (32-bit on a 64-bit machine) have other numbers than those in the lists.
    load(offsetof(seccomp_data, arch));
    add(BPF_JMP | BPF_JEQ | BPF_K, kMachine, 1, 0);
    add(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    load(offsetof(seccomp_data, nr));
#ifdef __x86_64__
    constexpr uint32_t kX32 = 0x40000000;  // x32 calls are rejected for the same reason
    add(BPF_JMP | BPF_JGE | BPF_K, kX32, 0, 1);
    add(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
#endif
  }
  void answer(long call, uint32_t what) {
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1);
    add(BPF_RET | BPF_K, what);
  }
  // The answer depends on whether the argument has any of these bits.
  void answer_with(long call, uint32_t argument, uint32_t bits, uint32_t what_with, uint32_t what_without) {
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 4);
    load(offsetof(seccomp_data, args) + argument * sizeof(uint64_t));  // the low half, on these little-endian machines
    add(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1);
    add(BPF_RET | BPF_K, what_with);
    add(BPF_RET | BPF_K, what_without);
  }
  // The answer depends on whether the low half of the argument, which is all that the kernel reads of it, is one of
  // these values.
  void answer_among(long call, uint32_t argument, std::initializer_list<uint32_t> values, uint32_t what_then,
                    uint32_t otherwise) {
    auto left = static_cast<uint8_t>(values.size());
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, static_cast<uint8_t>(left + 3));
    load(offsetof(seccomp_data, args) + argument * sizeof(uint64_t));
    for (const uint32_t value : values) add(BPF_JMP | BPF_JEQ | BPF_K, value, left--, 0);
    add(BPF_RET | BPF_K, otherwise);
    add(BPF_RET | BPF_K, what_then);
  }
  std::string install(uint32_t otherwise) {
    add(BPF_RET | BPF_K, otherwise);
    sock_fprog program{static_cast<unsigned short>(code_.size()), code_.data()};
    if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0) return "seccomp";
    return system_says("no seccomp");
  }

 private:
  void add(uint32_t code, uint32_t value, uint8_t yes = 0, uint8_t no = 0) {
    code_.push_back({static_cast<uint16_t>(code), yes, no, value});
  }
  void load(size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)); }
  std::vector<sock_filter> code_;
};

constexpr uint32_t kRefuse = SECCOMP_RET_ERRNO | EPERM, kAllow = SECCOMP_RET_ALLOW;
constexpr uint32_t kNotThere = SECCOMP_RET_ERRNO | ENOSYS;  // makes the C library fall back to an older call

}  // namespace

std::string forbid_files(Needs needs) {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return system_says("no_new_privs failed");
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  return "no_new_privs, " + restrict_files(needs);
}

std::string forbid_calls(Needs needs) {
  if (kMachine == 0) return "no seccomp: the system calls of this architecture are unknown";
  Filter filter;
  const auto own = static_cast<uint32_t>(::getpid());
  filter.answer_among(SYS_tgkill, 0, {own}, kAllow, kRefuse);  // abort() sends a signal to its own thread
  if (needs == Needs::compiler) {
    for (const long call : kCompilerCalls) filter.answer(call, kAllow);
    return filter.install(kRefuse);
  }
  constexpr uint32_t kWrites = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND;
  for (const long call : kOutsideCalls) filter.answer(call, kRefuse);
  filter.answer_among(SYS_prlimit64, 0, {0, own}, kAllow, kRefuse);          // limits of this process alone
  filter.answer_among(SYS_ioctl, 1, {TIOCSTI, TIOCLINUX}, kRefuse, kAllow);  // no input for a terminal
  filter.answer_with(SYS_clone, 0, CLONE_THREAD, kAllow, kRefuse);
  filter.answer(SYS_clone3, kNotThere);   // its flags are in memory, which a filter cannot read
  filter.answer(SYS_openat2, kNotThere);  // the same
  if (needs == Needs::cpu_driver) {
    filter.answer_with(SYS_openat, 2, kWrites, kRefuse, kAllow);
#ifdef SYS_open
    filter.answer_with(SYS_open, 1, kWrites, kRefuse, kAllow);
#endif
  }
  return filter.install(kAllow);
}

#else

std::string forbid_files(Needs) { return "no landlock on this system"; }
std::string forbid_calls(Needs) { return "no seccomp on this system"; }

#endif

}  // namespace tuff::platform
