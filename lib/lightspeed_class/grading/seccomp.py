"""A seccomp filter for programs that compute: system calls that reach for the kernel or for another
world are refused.

Namespaces and mounts of its own would give a program memory that no limit counts; so would memfd
and System V segments. vsock and the like leave a network namespace, so every socket but a local one
is refused.
"""

from __future__ import annotations

import errno
import platform
import struct

_CALLS = {
    "x86_64": (
        0xC000003E,
        {"clone": 56, "clone3": 435, "socket": 41, "unshare": 272, "setns": 308, "mount": 165,
         "umount2": 166, "pivot_root": 155, "chroot": 161, "ptrace": 101,
         "process_vm_readv": 310, "process_vm_writev": 311, "add_key": 248, "request_key": 249,
         "keyctl": 250, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323,
         "io_uring_setup": 425, "open_tree": 428, "move_mount": 429, "fsopen": 430,
         "fsmount": 432, "mount_setattr": 442, "init_module": 175, "finit_module": 313,
         "delete_module": 176, "kexec_load": 246, "memfd_create": 319, "memfd_secret": 447,
         "shmget": 29, "msgget": 68, "semget": 64, "mq_open": 240, "vmsplice": 278,
         "pidfd_getfd": 438, "process_madvise": 440, "open_tree_attr": 467,
         "kcmp": 312,
         "inotify_init": 253, "inotify_init1": 294, "fanotify_init": 300, "open_by_handle_at": 304,
         "swapon": 167, "acct": 163, "quotactl": 179, "mmap": 9},
    ),
    "aarch64": (
        0xC00000B7,
        {"clone": 220, "clone3": 435, "socket": 198, "unshare": 97, "setns": 268, "mount": 40,
         "umount2": 39, "pivot_root": 41, "chroot": 51, "ptrace": 117, "process_vm_readv": 270,
         "process_vm_writev": 271, "add_key": 217, "request_key": 218, "keyctl": 219, "bpf": 280,
         "perf_event_open": 241, "userfaultfd": 282, "io_uring_setup": 425, "open_tree": 428,
         "move_mount": 429, "fsopen": 430, "fsmount": 432, "mount_setattr": 442,
         "init_module": 105, "finit_module": 273, "delete_module": 106, "kexec_load": 104,
         "memfd_create": 279, "memfd_secret": 447, "shmget": 194, "msgget": 186, "semget": 190,
         "mq_open": 180, "vmsplice": 75, "pidfd_getfd": 438, "process_madvise": 440,
         "open_tree_attr": 467,
         "kcmp": 272, "inotify_init1": 26, "fanotify_init": 262, "open_by_handle_at": 265,
         "swapon": 224,
         "acct": 89, "quotactl": 60, "mmap": 222},
    ),
}  # fmt: skip
_NEW_NAMESPACES = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_AF_UNIX = 1
_LOAD, _EQUAL, _ABOVE, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_SHARED, _ANONYMOUS = 0x01, 0x20  # of mmap's flags; MAP_SHARED_VALIDATE has the bit of shared too
# offsets in struct seccomp_data; of an argument the lower half
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _FOURTH_ARGUMENT = 0, 4, 16, 40
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000


def program() -> bytes:
    """The filter as bytes that bubblewrap loads; empty on a processor whose numbers we do not
    have.
    """
    if platform.machine() not in _CALLS:
        return b""
    architecture, calls = _CALLS[platform.machine()]
    calls = dict(calls)
    special = ("clone", "clone3", "socket", "mmap")
    clone, clone3, socket, mmap = (calls.pop(name) for name in special)
    deny = _ERROR | errno.EPERM
    steps = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_ABOVE, 0, 1, 0x40000000),  # the x32 numbers would pass by the rest
        (_RETURN, 0, 0, deny),
        (_EQUAL, 0, 1, clone3),  # its flags are behind a pointer; the C library falls back to clone
        (_RETURN, 0, 0, _ERROR | errno.ENOSYS),
    ]
    for number in calls.values():
        steps += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, deny)]
    steps += [
        (_EQUAL, 0, 3, clone),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_ANY_BIT, 4, 0, _NEW_NAMESPACES),
        (_RETURN, 0, 0, _ALLOW),
        (_EQUAL, 0, 3, socket),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_EQUAL, 5, 0, _AF_UNIX),
        (_RETURN, 0, 0, deny),
        # Memory that is shared and has no file is in no process once they let go of its pages.
        (_EQUAL, 0, 3, mmap),
        (_LOAD, 0, 0, _FOURTH_ARGUMENT),
        (_AND, 0, 0, _SHARED | _ANONYMOUS),
        (_EQUAL, 1, 0, _SHARED | _ANONYMOUS),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, deny),
    ]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)
