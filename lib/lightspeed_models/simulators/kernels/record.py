"""What a launch leaves behind: each load and store, the FLOPs, what stays on the chip."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

SECTOR = 32  # bytes: the smallest piece that crosses between L2 and DRAM, and between L2 and an SM
LINE = 128  # bytes: what one request of a warp can take at once
WARP = 32  # lanes that ask together

Place = tuple[int, int, int]


class KernelError(Exception):
    """A kernel that a GPU would not run, or would run wrongly; the message says where and why."""


@dataclass(slots=True)
class Access:
    """One load or store of one program.

    `sectors` are runs (first, end) of sectors of 32 bytes; `size` counts the bytes asked for,
    `lines` the most lines of 128 bytes that one warp of 32 lanes touches. `address` is the array's.
    """

    array: str
    address: int
    store: bool
    atomic: bool
    size: int
    lanes: int
    masked: int
    lines: int
    sectors: list[tuple[int, int]]
    crossing: int = field(init=False)  # bytes: whole sectors, each once

    def __post_init__(self) -> None:
        self.crossing = sum(end - first for first, end in self.sectors) * SECTOR

    @property
    def start(self) -> int:
        """Where in its array the first sector begins, in bytes."""
        return self.sectors[0][0] * SECTOR - self.address if self.sectors else 0


@dataclass(frozen=True)
class Limits:
    """What one program may take of an SM: bytes of shared memory, registers a thread, and accesses
    of a whole launch, so that an endless loop ends.
    """

    shared: int
    registers: int = 255
    accesses: int = 1_000_000


@dataclass(frozen=True)
class Race:
    """Two programs, or two lanes of one, that store to one element."""

    array: str
    index: int
    first: Place
    second: Place


@dataclass
class Traffic:
    """Bytes in and out, as the kernel asks for them and as sectors cross."""

    loads: int = 0
    stores: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    crossing_in: int = 0
    crossing_out: int = 0

    def add(self, access: Access) -> None:
        """Count one more access."""
        if access.store:
            self.stores += 1
            self.bytes_out += access.size
            self.crossing_out += access.crossing
        else:
            self.loads += 1
            self.bytes_in += access.size
            self.crossing_in += access.crossing

    @property
    def bytes(self) -> int:
        """Bytes that the kernel asks for, in and out."""
        return self.bytes_in + self.bytes_out

    @property
    def crossing(self) -> int:
        """Bytes that cross, in and out."""
        return self.crossing_in + self.crossing_out


@dataclass
class Launch:
    """The record of one launch: `programs` has the accesses of each, in launch order.

    FLOPs: `tensor` of products of blocks, `vector` of all else but `special` functions (exp, log,
    rsqrt). `operands`: bytes of blocks that go from memory into products, by array; `products`:
    numbers in the result of each product of a program, by place in the source. `fillers`: by array,
    the reduction in which masked lanes counted, and what they held.
    """

    kernel: str
    grid: Place
    threads: int
    values: bool
    limits: Limits | None = None
    programs: list[list[Access]] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    tensor: int = 0
    vector: int = 0
    special: int = 0
    operands: dict[str, int] = field(default_factory=dict)
    products: dict[tuple[object, int], int] = field(default_factory=dict)
    races: list[Race] = field(default_factory=list)
    fillers: dict[str, tuple[str, float]] = field(default_factory=dict)
    writers: dict[str, dict[int, Place]] = field(default_factory=dict)
    memory: dict[str, list[float]] = field(default_factory=dict)
    widest: int = 0  # numbers of the largest block
    masks: int = 0  # blocks that a `where` chose from
    hidden: int = 0  # and those of which it took nothing but the alternative
    _accesses: int = 0

    def note(self, access: Access) -> None:
        """Keep one more access of the program that runs."""
        self.programs[-1].append(access)
        self._accesses += 1
        if self.limits and self._accesses > self.limits.accesses:
            raise KernelError(
                f"stopped after {self.limits.accesses:,} loads and stores: does a loop end?"
            )

    def check_limits(self) -> None:
        """Raise KernelError if a program takes more of an SM than there is."""
        limits = self.limits
        if limits and self.shared() > limits.shared:
            raise KernelError(
                f"{self.kernel} keeps {self.shared():,} bytes of operands in shared memory; this"
                f" chip has {limits.shared:,}. Take smaller blocks."
            )
        if limits and self.registers > limits.registers:
            raise KernelError(
                f"{self.kernel} keeps at least {self.registers:.0f} registers a thread, which has"
                f" {limits.registers}. Take smaller blocks."
            )

    @property
    def accesses(self) -> Iterator[Access]:
        """All loads and stores, program by program."""
        return chain.from_iterable(self.programs)

    @property
    def traffic(self) -> Traffic:
        """What all programs together ask for and move."""
        total = Traffic()
        for access in self.accesses:
            total.add(access)
        return total

    def traffic_of(self, array: str) -> Traffic:
        """The part of the traffic that is one array's."""
        total = Traffic()
        for access in self.accesses:
            if access.array == array:
                total.add(access)
        return total

    def shared(self, stages: int = 1) -> int:
        """Bytes of shared memory a program: operands of products that come from memory, `stages`
        of them in flight.
        """
        return sum(self.operands.values()) * stages

    @property
    def registers(self) -> float:
        """Registers of 32 bits a thread, at least: the results of a program's products, alive at
        once, or its largest block. Addresses take some dozens more.
        """
        return max(sum(self.products.values()), self.widest) / self.threads


_current: list[Launch] = []


def running(word: str) -> Launch:
    """The launch that runs now, for a `word` of a kernel."""
    if not _current:
        raise KernelError(f"tl.{word} works inside a kernel only: pass the kernel to launch(...).")
    return _current[-1]
