"""A seccomp filter for programs that compute: it admits the system calls that CPython, numpy,
IPython, pools of processes and the usual commands need; any other is answered as by a kernel that
does not have it.

Where a call does many things its argument decides: no namespaces, no socket but a local one, no
larger buffers, no memory that is shared without a file or taken from the reserve of huge pages. A
file's lock is said to be had and is not taken: files of the host can't be locked, and locks are
memory that nothing counts.
"""

import errno
import platform
import struct

# name, number on x86_64, number on aarch64
_ADMITTED = """
read 0 63  write 1 64  pread64 17 67  pwrite64 18 68  readv 19 65  writev 20 66  preadv 295 69
pwritev 296 70  preadv2 327 286  pwritev2 328 287  lseek 8 62  open 2 -  openat 257 56  creat 85 -
close 3 57  close_range 436 436  stat 4 -  fstat 5 80  lstat 6 -  newfstatat 262 79  statx 332 291
statfs 137 43  fstatfs 138 44  access 21 -  faccessat 269 48  faccessat2 439 439
getdents64 217 61  getcwd 79 17  chdir 80 49  fchdir 81 50  mkdir 83 -  mkdirat 258 34  rmdir 84 -
unlink 87 -  unlinkat 263 35  rename 82 -  renameat 264 38  renameat2 316 276  link 86 -
linkat 265 37  symlink 88 -  symlinkat 266 36  readlink 89 -  readlinkat 267 78  chmod 90 -
fchmod 91 52  fchmodat 268 53  chown 92 -  fchown 93 55  lchown 94 -  fchownat 260 54
umask 95 166  mknod 133 -  mknodat 259 33  utimes 235 -  utimensat 280 88  truncate 76 45
ftruncate 77 46  fallocate 285 47  fsync 74 82  fdatasync 75 83  fadvise64 221 223  sendfile 40 71
copy_file_range 326 285  getxattr 191 8  lgetxattr 192 9  listxattr 194 11  llistxattr 195 12

dup 32 23  dup2 33 -  dup3 292 24  pipe 22 -  pipe2 293 59  poll 7 -  ppoll 271 73  select 23 -
pselect6 270 72  epoll_create1 291 20  epoll_ctl 233 21  epoll_wait 232 -  epoll_pwait 281 22
eventfd2 290 19  bind 49 200  listen 50 201  accept4 288 242  connect 42 203  getsockname 51 204
getpeername 52 205  getsockopt 55 209  sendto 44 206  recvfrom 45 207  sendmsg 46 211
recvmsg 47 212  shutdown 48 210

munmap 11 215  mprotect 10 226  mremap 25 216  madvise 28 233  brk 12 214  mincore 27 232
msync 26 227

fork 57 -  vfork 58 -  execve 59 221  exit 60 93  exit_group 231 94  wait4 61 260  waitid 247 95
getpid 39 172  getppid 110 173  gettid 186 178  getpgrp 111 -  getpgid 121 155  setpgid 109 154
getsid 124 156  setsid 112 157  getuid 102 174  geteuid 107 175  getgid 104 176  getegid 108 177
getresuid 118 148  getresgid 120 150  getgroups 115 158  capget 125 90  arch_prctl 158 -
set_tid_address 218 96  set_robust_list 273 99  rseq 334 293  futex 202 98  prlimit64 302 261
getrusage 98 165  times 100 153  sysinfo 99 179  uname 63 160  getpriority 140 141
setpriority 141 140  sched_yield 24 124  sched_getaffinity 204 123  sched_setaffinity 203 122
sched_getscheduler 145 120  sched_getparam 143 121  sched_get_priority_max 146 125
sched_get_priority_min 147 126  getrandom 318 278

kill 62 129  tgkill 234 131  tkill 200 130  rt_sigaction 13 134  rt_sigprocmask 14 135
rt_sigreturn 15 139  rt_sigpending 127 136  rt_sigtimedwait 128 137  rt_sigsuspend 130 133
sigaltstack 131 132  restart_syscall 219 128  pause 34 -  alarm 37 -  getitimer 36 102
setitimer 38 103  timer_create 222 107  timer_settime 223 110  timer_delete 226 111
nanosleep 35 101  clock_nanosleep 230 115  clock_gettime 228 113  clock_getres 229 114
gettimeofday 96 169  time 201 -
"""
_BY_ARGUMENT = """
clone 56 220  socket 41 198  socketpair 53 199  mmap 9 222  fcntl 72 25  ioctl 16 29
prctl 157 167  setsockopt 54 208  flock 73 32
"""
_MACHINES = {"x86_64": (0xC000003E, 1), "aarch64": (0xC00000B7, 2)}  # its name here, its column
_NEW_NAMESPACES = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_AF_UNIX, _SO_REUSEADDR = 1, 2
_SHARED, _ANONYMOUS, _HUGE = 0x01, 0x20, 0x40000  # of mmap; SHARED_VALIDATE has the bit of SHARED
# of prctl: a thread's name, and what the sandbox looks at before it begins
_PRCTL = (15, 16, 21, 23, 39)
# of fcntl: copies of descriptors, their flags, who holds a lock, a pipe's size
_FCNTL, _LOCKS = (0, 1, 2, 3, 4, 5, 36, 1030, 1032), (6, 7, 37, 38)
# of ioctl: whether it is a terminal, how large, whose; close on exec; what waits; not to block
_IOCTL = (0x5401, 0x5413, 0x540F, 0x5450, 0x5451, 0x541B, 0x5421)
_LOAD, _EQUAL, _ABOVE, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_Steps = list[tuple[int, int, int, int]]


def program() -> bytes:
    """Return the filter for the kernel; empty on a processor with unknown call numbers."""
    if platform.machine() not in _MACHINES:
        return b""
    architecture, _ = _MACHINES[platform.machine()]
    steps: _Steps = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    for number in _numbers(_ADMITTED).values():
        steps += _if(number, [(_RETURN, 0, 0, _ALLOW)])
    call, no, success = _numbers(_BY_ARGUMENT), _ERROR | errno.EPERM, _ERROR
    steps += _if(call["flock"], [(_RETURN, 0, 0, success)])
    # clone3, whose flags are behind a pointer, is not there, and the C library does without
    steps += _if(call["clone"], [
        _argument(0), (_ANY_BIT, 0, 1, _NEW_NAMESPACES), (_RETURN, 0, 0, no),
        (_RETURN, 0, 0, _ALLOW),
    ])  # fmt: skip
    steps += _if(call["mmap"], [
        _argument(3), (_ANY_BIT, 0, 1, _HUGE), (_RETURN, 0, 0, no),
        # what is shared and has no file is in no process once they let go of its pages
        (_AND, 0, 0, _SHARED | _ANONYMOUS), (_EQUAL, 0, 1, _SHARED | _ANONYMOUS),
        (_RETURN, 0, 0, no), (_RETURN, 0, 0, _ALLOW),
    ])  # fmt: skip
    for name, which, values in (
        ("socket", 0, (_AF_UNIX,)), ("socketpair", 0, (_AF_UNIX,)),
        ("setsockopt", 2, (_SO_REUSEADDR,)), ("ioctl", 1, _IOCTL), ("prctl", 0, _PRCTL),
    ):  # fmt: skip
        steps += _if(call[name], _one_of(which, values))
    steps += _if(call["fcntl"], _one_of(1, _LOCKS, success)[:-1] + _one_of(1, _FCNTL))
    steps.append((_RETURN, 0, 0, _ERROR | errno.ENOSYS))
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def numbers() -> dict[str, int]:
    """name -> number of the calls answered here, for some arguments or, as flock, undone."""
    return _numbers(_ADMITTED) | _numbers(_BY_ARGUMENT)


def _numbers(table: str) -> dict[str, int]:
    words, column = table.split(), _MACHINES[platform.machine()][1]
    rows = zip(words[::3], words[column::3], strict=True)
    return {name: int(number) for name, number in rows if number != "-"}


def _if(number: int, then: _Steps) -> _Steps:
    return [(_EQUAL, 0, len(then), number), *then]


def _argument(which: int) -> tuple[int, int, int, int]:
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * which)  # its lower half, which is all that counts


def _one_of(which: int, values: tuple[int, ...], outcome: int = _ALLOW) -> _Steps:
    """The outcome for one of these values, and else a refusal."""
    steps = [_argument(which)]
    for value in values:
        steps += _if(value, [(_RETURN, 0, 0, outcome)])
    return [*steps, (_RETURN, 0, 0, _ERROR | errno.EPERM)]
