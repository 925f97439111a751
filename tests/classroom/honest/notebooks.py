"""Honest but unusual notebooks: each earns full marks, because a cell means here what it means in
Jupyter. `notes`: words that the student has to be told, as something was not done.

A notebook is the course's four right answers (see hostile/cases.py) with one cell before them, or
with the source of some of their cells replaced.
"""

from cases import ANSWERS, call, code, exercises, notebook, right

NOTEBOOKS = {}
RIDGE = ANSWERS["ridge"].splitlines()
WORD = call("word")


def honest(name, cell="", notes=(), **changed):
    assert name not in NOTEBOOKS, name
    NOTEBOOKS[name] = right(cell, **changed), tuple(notes)


def whole(name, cells, notes=()):
    NOTEBOOKS[name] = notebook(cells), tuple(notes)


# Magics that bind, measure and set.
honest("precision", "%precision 3\n# is this right?\nx = 1 / 3")
honest("time binds", ridge=f"{RIDGE[0]}\n%time {RIDGE[1]}\n{call('ridge')}")
honest("time with a line", ridge=f"%time\n{ANSWERS['ridge']}\n{call('ridge')}")
honest("cell time", ridge=f"%%time\n{ANSWERS['ridge']}\n{call('ridge')}")
honest("cell time after a blank line", ridge=f"\n%%time\n{ANSWERS['ridge']}\n{call('ridge')}")
honest("timeit gives a result", "t = %timeit -o -q -n 2 -r 2 sum(range(9))\nassert t.average > 0")
honest("cell timeit", "%%timeit -n 2 -r 2\nsum(range(9))")
honest("cell capture", word=f'%%capture said\nprint("x")\nanswer = "bandwidth"\n{WORD}')
honest(
    "what was captured",
    "%%capture said\nprint('seen')",
    word=f'answer = "bandwidth" if said.stdout == "seen\\n" else 0\n{WORD}',
)
honest("a magic in a loop", "for n in range(3):\n    %time x = n\nassert x == 2")
honest("a magic in an if", "if True:\n    %matplotlib inline\n    y = 1\nassert y == 1")
honest("a magic in a function", "def f(k):\n    %time z = k + 1\n    return 3\nassert f(2) == 3")
honest("a magic after a semicolon's line", "a = 1;\n%time b = 2;\nassert (a, b) == (1, 2)")
honest("a value in braces", "n = 3\nfor i in range(1):\n    !echo {n} $n {i}")
honest(
    "config of figures",
    "%config InlineBackend.figure_format = 'svg'\n%config InlineBackend.figure_formats = ['retina']",
)
honest("autoreload", "%load_ext autoreload\n%autoreload 2")
honest("who and whos", "%who\n%whos\nnames = %who_ls\nassert 'math' in names")
honest(
    "env and pwd",
    "%env COURSE=yes\nassert os.environ['COURSE'] == 'yes'\nhere = %pwd\nassert here == os.getcwd()",
)
honest("history and reset of prompts", "%history -l 1\n%pprint\n%xmode plain\n%colors nocolor")
honest("cd to a folder", "os.makedirs('mine', exist_ok=True)\n%cd mine\n%cd -q ..")
honest(
    "write a file and run it",
    "open('part.py', 'w').write('seven = 7')\n%run part.py\nassert seven == 7",
)
honest(
    "writefile",
    "%%writefile mine.txt\nwords",
    word=f'answer = "bandwidth" if open("mine.txt").read() == "words\\n" else 0\n{WORD}',
)
honest("prun", "%prun -q sum(range(9))")
honest("alias of the shell", "%sx echo hello\n%system echo hello")
honest("lsmagic and magic help", "%lsmagic\n%time?\n?math\nmath.pi??")
honest("html and javascript cells", "%%html\n<b>bold</b>")
honest("latex", "%%latex\n$a_b$")
honest("javascript", "%%javascript\nconsole.log(1)")
honest("bash", "%%bash\necho $HOME\nls")
honest("a script of python", "%%python\nprint(1)")

# The shell.
honest("a listing", "x = !ls /usr\nassert 'bin' in x and x.n")
honest("a command in a variable", "name = 'usr'\nout = !echo {name}\nassert out[0] == 'usr'")
honest("a command in a loop", "for i in range(2):\n    !echo {i}")
honest("its exit status", "!false\nassert _exit_code == 1")
honest(
    "pip install",
    "!pip install numpy\n%pip install -q scipy\n!python -m pip install --upgrade pip\n!conda install -y x",
    ["install"],
)
honest(
    "system of os",
    "os.system('true')\nimport subprocess\nassert subprocess.run(['echo', 'x'], capture_output=True).stdout == b'x\\n'",
)

# What is not there is told, and the rest of the cell runs.
honest(
    "a magic of an extension",
    "%load_ext memory_profiler\n%memit 1\nk = 3\nassert k == 3",
    ["memit", "load_ext"],
)
honest(
    "a cell magic of an extension",
    ridge=f"%%memit\n{ANSWERS['ridge']}\n{call('ridge')}",
    notes=["memit"],
)
honest(
    "a backend that is not there",
    "%matplotlib widget\n%matplotlib notebook\nj = 1\nassert j == 1",
    ["matplotlib"],
)
honest("input", "name = input('Your name? ')", ["input"])
honest("a password", "import getpass\ngetpass.getpass()", ["input"])

# IPython's own names.
honest(
    "get_ipython",
    "ip = get_ipython()\nip.run_line_magic('precision', '2')\nip.run_cell('w = 5')\nassert w == 5 and ip.user_ns['w'] == 5",
)
honest(
    "is it a notebook?",
    "try:\n    get_ipython\nexcept NameError:\n    raise SystemExit\nassert get_ipython() is not None",
)
honest(
    "display",
    "from IPython.display import HTML, Markdown, Image, clear_output\ndisplay(HTML('<p>'), Markdown('# x'), {'a': 1})\nclear_output(wait=True)\nh = display('x', display_id='one')\nh.update('y')",
)
honest(
    "the last result",
    "40 + 2",
    word=f'answer = "bandwidth" if Out[2] == 42 and "40" in In[2] else 0\n{WORD}',
)
honest(
    "question marks",
    "# is this right?\nx = 1  # surely?\ns = 'what?'\n# !really\n'''\n%not a magic\n!nor this\n'''\nassert s.endswith('?')",
)
honest(
    "percent and exclamation in strings",
    "a = 7\nb = a \\\n  % 4\nt = '''\n%%time\n!ls?'''\nassert b == 3 and t.startswith('\\n%%')",
)
honest("autocall off, trailing semicolon", "sum([1, 2]);\n_x = 3;")
honest("pasted prompts", word=f'>>> answer = "bandwidth"\n>>> {WORD}')
honest("pasted prompts of IPython", word=f'In [3]: answer = "bandwidth"\n   ...: {WORD}')
honest("an indented cell", word=f'    answer = "bandwidth"\n    {WORD}')
honest("exit at the end of a cell", "exit", word=f'answer = "bandwidth"\n{WORD}\nexit()')
honest("a cell of comments", "# nothing\n\n# ?")
honest(
    "shows an error on purpose",
    "try:\n    1 / 0\nexcept ZeroDivisionError:\n    %tb\n    get_ipython().showtraceback()",
)
honest(
    "warnings as errors, and a figure",
    "import warnings\nwarnings.simplefilter('error')\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()",
)

# Loops of events, processes, threads, time.
honest(
    "await",
    "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 4\nassert await f() == 4",
)
honest(
    "tasks across cells",
    "import asyncio\ntask = asyncio.create_task(asyncio.sleep(0, 'bandwidth'))",
    word=f"answer = await task\n{WORD}",
)
honest(
    "gather and a loop",
    "import asyncio\nloop = asyncio.get_running_loop()\nr = await asyncio.gather(*[asyncio.sleep(0, i) for i in range(3)])\nassert r == [0, 1, 2]",
)
honest(
    "async for and with",
    "import contextlib\n@contextlib.asynccontextmanager\nasync def c(): yield 1\nasync def g():\n    yield 2\nasync with c() as one:\n    async for two in g(): pass\nassert (one, two) == (1, 2)",
)
honest(
    "a function that was awaited for",
    roof="import asyncio\nawait asyncio.sleep(0)\n" + ANSWERS["roof"] + "\n" + call("roof"),
)
honest(
    "a pool of processes",
    "from multiprocessing import Pool\ndef square(x): return x * x\nwith Pool(2) as pool: assert pool.map(square, [1, 2]) == [1, 4]",
)
honest(
    "queues, locks, shared values",
    "from multiprocessing import Process, Queue, Lock, Value, Array\nq, v = Queue(), Value('i', 3)\ndef put(q): q.put(v.value)\np = Process(target=put, args=(q,)); p.start(); assert q.get() == 3; p.join()",
)
honest(
    "shared memory by name",
    "from multiprocessing import shared_memory\nm = shared_memory.SharedMemory(create=True, size=1 << 20)\nm.buf[0] = 7\nm.close(); m.unlink()",
)
honest(
    "threads",
    "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(4) as e: assert list(e.map(abs, [-1])) == [1]",
)
honest(
    "an alarm of its own",
    "import signal\nsignal.signal(signal.SIGALRM, lambda *_: None)\nsignal.alarm(5)\nsignal.alarm(0)",
)
honest(
    "a temporary file, mapped",
    "import tempfile, mmap\nwith tempfile.TemporaryFile() as f:\n    f.truncate(1 << 16)\n    with mmap.mmap(f.fileno(), 0) as m: m[0] = 1",
)
honest(
    "a file of numpy, mapped",
    "import numpy as np\na = np.memmap('a.dat', float, 'w+', shape=(100,))\na[:] = 1\na.flush()",
)

# What reaches for the system. A list of what all of these call stands in test_honest.py.
honest(
    "sqlite in a file",
    "import sqlite3\nwith sqlite3.connect('m.db') as db:\n    db.execute('create table t (x)'); db.execute('insert into t values (1)')\nassert sqlite3.connect('m.db').execute('select x from t').fetchall() == [(1,)]",
)
honest(
    "sqlite with a log beside it",
    "import sqlite3\ndb = sqlite3.connect('w.db')\ndb.execute('pragma journal_mode=wal')\ndb.execute('create table t (x)'); db.execute('insert into t values (1)'); db.commit()\nassert sqlite3.connect('w.db').execute('select x from t').fetchall() == [(1,)]",
)
honest(
    "a manager of shared objects",
    "from multiprocessing import Manager\nwith Manager() as m:\n    d = m.dict(); d['a'] = 1; assert d['a'] == 1",
)
honest(
    "a pool that is spawned",
    "import multiprocessing as mp\nfrom math import sqrt\nwith mp.get_context('spawn').Pool(1) as p: assert p.map(sqrt, [4]) == [2]",
)
honest(
    "a pool of a fork server",
    "import multiprocessing as mp\nfrom math import sqrt\nwith mp.get_context('forkserver').Pool(1) as p: assert p.map(sqrt, [4]) == [2]",
)
honest(
    "an executor of processes",
    "from concurrent.futures import ProcessPoolExecutor\nfrom math import sqrt\nwith ProcessPoolExecutor(2) as p: assert list(p.map(sqrt, [4])) == [2]",
)
honest(
    "asyncio subprocess",
    "import asyncio\np = await asyncio.create_subprocess_exec('cat', stdin=-1, stdout=-1)\nout, _ = await p.communicate(b'x')\nassert out == b'x', out",
)
honest(
    "asyncio threads and signals",
    "import asyncio, signal\nr = await asyncio.to_thread(sum, [1, 2])\nasyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, lambda: None)\nos.kill(os.getpid(), signal.SIGUSR1)\nawait asyncio.sleep(0.01)\nassert r == 3",
)
honest(
    "every kind of file",
    "import shutil, pathlib, glob, gzip, zipfile, tarfile, stat\np = pathlib.Path('d/e'); p.mkdir(parents=True); (p/'f').write_text('x'); (p/'f').rename(p/'g'); (p/'g').chmod(0o600)\nshutil.copytree('d', 'c'); shutil.copy2('d/e/g', 'h'); shutil.move('h', 'i'); os.utime('i'); os.truncate('i', 0); os.symlink('i', 'j'); os.readlink('j'); os.link('i', 'k'); os.umask(0o22)\nshutil.make_archive('z', 'zip', 'd'); shutil.make_archive('t', 'gztar', 'd')\nlist(os.walk('.')); glob.glob('**', recursive=True); shutil.disk_usage('.'); shutil.rmtree('c'); os.rmdir(pathlib.Path('q').mkdir() or 'q'); os.access('i', 4); fd = os.open('i', os.O_RDWR); os.fsync(fd); os.fdatasync(fd); os.pwrite(fd, b'ab', 0); assert os.pread(fd, 2, 0) == b'ab'; os.ftruncate(fd, 1); os.fchmod(fd, 0o600); os.posix_fallocate(fd, 0, 10); os.posix_fadvise(fd, 0, 0, 0); os.writev(fd, [b'a']); os.lseek(fd, 0, 0); os.readv(fd, [bytearray(1)]); os.dup(fd); os.dup2(fd, 40); os.replace('i', 'l'); os.mkfifo('ff'); os.listxattr('l'); os.getcwd(); os.chdir('d'); os.fchdir(os.open('..', 0)); os.chown('l', -1, -1)",
)
honest(
    "copies that the kernel makes",
    "import shutil\nopen('a1', 'wb').write(bytes(100000)); shutil.copyfile('a1', 'a2'); a=os.open('a1',0); b=os.open('a3', os.O_CREAT|os.O_RDWR); os.copy_file_range(a, b, 100); os.sendfile(b, a, 0, 10)",
)
honest(
    "asks who and what it is",
    "import resource, platform, getpass, time\nresource.getrusage(resource.RUSAGE_SELF); resource.getrlimit(resource.RLIMIT_AS); platform.platform(); platform.machine(); os.cpu_count(); os.sched_getaffinity(0); os.times(); os.uname(); os.getpgid(0); os.getsid(0); os.getgroups(); os.nice(1); os.getpriority(os.PRIO_PROCESS, 0); time.sleep(0.001); time.clock_getres(time.CLOCK_MONOTONIC); time.process_time(); time.thread_time(); import threading; threading.get_native_id(); os.sched_yield(); os.getpid(); os.getppid(); os.sched_setaffinity(0, os.sched_getaffinity(0)); os.sysconf('SC_NPROCESSORS_ONLN'); time.get_clock_info('time'); os.sched_getscheduler(0); os.sched_getparam(0)",
)
honest(
    "signals, masked and waited for",
    "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1]); os.kill(os.getpid(), signal.SIGUSR1); signal.sigpending(); signal.sigtimedwait([signal.SIGUSR1], 1); signal.raise_signal(signal.SIGCHLD); signal.siginterrupt(signal.SIGUSR2, False); signal.setitimer(signal.ITIMER_VIRTUAL, 0); signal.getitimer(signal.ITIMER_REAL); import threading; signal.pthread_kill(threading.get_ident(), signal.SIGCHLD)\nimport faulthandler; faulthandler.enable(open('fh','w')); signal.signal(signal.SIGALRM, lambda *a: None); signal.alarm(1); signal.pause()",
)
honest(
    "select, poll, epoll, sockets",
    "import select, socket\na, b = socket.socketpair(); a.sendall(b'x'); select.select([b], [], [], 1); p = select.poll(); p.register(b); p.poll(1); e = select.epoll(); e.register(b); e.poll(1); assert b.recv(1) == b'x'; b.settimeout(1); a.shutdown(2); r, w = os.pipe(); os.set_blocking(r, False); os.set_inheritable(w, True)\na, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); a.send(b'1'); b.recvfrom(2)\nfd = os.eventfd(0); os.eventfd_write(fd, 1); os.eventfd_read(fd)",
)
honest(
    "forty commands",
    "import subprocess\nassert subprocess.run('echo a | tr a b | sort; ls -la /usr | head -3; cp /usr/bin/true t1; cat t1 | wc -c; find /usr/lib/python3* -maxdepth 1 | head -2; du -s .; df .; date; uname -a; id; grep -c a t1; mkdir x1; rm -r x1; awk \"{print}\" /dev/null; sed -n 1p /dev/null; touch y1; stat y1; python3 -c \"print(1)\"; tar cf z.tar y1; gzip z.tar; sleep 0.01; seq 3 | xargs echo; nproc; env; whoami; head -c 10 /dev/urandom >/dev/null; timeout 1 true; nice true; ps; free; time true', shell=True, capture_output=True, text=True).stdout.startswith('b')",
)
honest(
    "numpy and scipy at work",
    "import numpy as np, scipy.linalg, scipy.optimize\na = np.random.default_rng(0).random((300, 300)); a @ a; np.linalg.inv(a); np.linalg.svd(a); np.fft.fft(a); np.save('a.npy', a); np.load('a.npy', mmap_mode='r'); np.savez_compressed('b', a=a); big = np.zeros(1 << 25); big[:] = 1; scipy.linalg.lu(a)",
)
honest(
    "semaphores by name",
    "import multiprocessing as mp\nb = mp.Barrier(1); b.wait(); s = mp.Semaphore(2); s.acquire(); e = mp.Event(); e.set(); mp.RLock().acquire(); mp.Condition()",
)
honest(
    "file locks",
    "import fcntl\nf = open('lock', 'w'); fcntl.flock(f, fcntl.LOCK_EX); fcntl.lockf(f, fcntl.LOCK_EX); fcntl.lockf(f, fcntl.LOCK_UN)",
)
honest(
    "temporary folders and a shelf",
    "import csv, json, pickle, tempfile, shelve, dbm\nwith tempfile.TemporaryDirectory() as d, tempfile.NamedTemporaryFile() as f, tempfile.SpooledTemporaryFile() as g: json.dump({}, open(d + '/j', 'w'))\nwith shelve.open('s') as s: s['a'] = 1",
)
honest(
    "a log, random numbers, hashes",
    "import logging, uuid, secrets, hashlib, random\nuuid.uuid4(); uuid.uuid1(); secrets.token_hex(); hashlib.sha256(b''); random.SystemRandom().random(); logging.basicConfig(filename='l'); logging.warning('x')",
)
honest(
    "mapped and advised",
    "import mmap\nopen('mm','wb').write(bytes(1<<16)); f = open('mm','r+b'); m = mmap.mmap(f.fileno(), 0); m.madvise(mmap.MADV_SEQUENTIAL); m.flush(); m.resize(1 << 17); p = mmap.mmap(-1, 1 << 16, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS); p.madvise(mmap.MADV_HUGEPAGE)",
)

honest(
    "every kind of file, by its folder",
    "import pathlib\npathlib.Path('n').mkdir(); d = os.open('n', 0); d2 = {'src_dir_fd': d,"
    " 'dst_dir_fd': d}\nos.close(os.open('a', os.O_CREAT, dir_fd=d)); os.link('a', 'b', **d2);"
    " os.rename('b', 'c', **d2); os.symlink('a', 's', dir_fd=d); os.readlink('s', dir_fd=d);"
    " os.mkdir('e', dir_fd=d); os.chmod('a', 0o600, dir_fd=d); os.chown('a', -1, -1, dir_fd=d);"
    " os.chown('a', -1, -1, dir_fd=d, follow_symlinks=False); os.lchown('n/s', -1, -1);"
    " os.access('a', 4, dir_fd=d); os.access('a', 4, dir_fd=d, effective_ids=True);"
    " os.listxattr('n/s', follow_symlinks=False)\nfd = os.open('n/a', os.O_RDWR);"
    " os.pwritev(fd, [b'a'], 0); assert os.preadv(fd, [bytearray(1)], 0) == 1; fd ="
    " os.dup2(fd, 50, inheritable=False)\n!mv -n n/a n/f",
)
honest(
    "children that are waited for by themselves",
    "pid = os.fork()\nif pid == 0:\n    os.setsid()\n    os._exit(3)\nassert os.waitid(os.P_PID,"
    " pid, os.WEXITED).si_status == 3\nos.sched_get_priority_max(os.SCHED_OTHER) =="
    " os.sched_get_priority_min(os.SCHED_OTHER)\nos.umask(0o22)",
)

# Figures, widgets, packages.
honest(
    "figures",
    "%matplotlib inline\nimport matplotlib.pyplot as plt\nfig, ax = plt.subplots()\nax.plot([1, 2])\nplt.show()\nfig.savefig('f.png')\nfig",
)
honest(
    "widgets",
    "import ipywidgets as w\ns = w.IntSlider(3)\ndisplay(s, w.HBox([s]))\nw.interact(lambda n: n, n=(0, 3));\nassert s.value == 3",
)
honest(
    "an output widget",
    "import ipywidgets as w\no = w.Output()\nwith o: print('x')\n@o.capture()\ndef f(): return 5\nf()",
)
honest(
    "the course's own figures",
    "from lightspeed_course import figure, table, predict, reveal, explorer\nask('roofline.ridge')",
)
honest(
    "random numbers with seeds",
    "import random, numpy as np\nrandom.seed(1); np.random.seed(1)\nnp.random.default_rng(1).random()",
)
honest(
    "dataclasses, typing and pickles",
    "import pickle, dataclasses\n@dataclasses.dataclass\nclass P:\n    x: float = 1.0\nassert pickle.loads(pickle.dumps(P())) == P()",
)
honest(
    "numpy results",
    bytes="import numpy as np\nanswer = np.array([64 * 4096 + 4096 * 16384, 64 * 16384])\n"
    + call("bytes"),
)
honest(
    "where am I run?",
    "assert __name__ == '__main__'\nimport __main__\nassert __main__.math is math\nimport inspect\ndef f(): pass\nassert 'def f' in inspect.getsource(f)",
)
honest("prints a great deal", "for i in range(20000): print(i, 'x' * 50)")
whole(
    "cells in the order of execution counts, empty ones between",
    [c for e in exercises() for c in (code(""), e, code("   \n"))],
)
whole(
    "magics in every cell",
    [
        exercises()[0],
        *(
            code("%precision 3\n# sure?\n" + c["source"] + "\n# done?", c["id"])
            for c in exercises()[1:]
        ),
    ],
)
