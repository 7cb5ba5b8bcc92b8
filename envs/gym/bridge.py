"""bridge.py - steps Gymnasium environments for Trawl, in a Python of the user's own. The program holds this text and
starts it as `python -c TEXT JSON`, one process for each core; tensors lie in memory that both share.

Descriptors: 3 commands and answers, 4 the shared memory, 5 what went wrong, as text (faulthandler writes there too, when
the process crashes or is killed for hanging). A command is a byte and two u32, first and end of the instances meant: r
resets, s steps. Instance i belongs to process i modulo their number. The answer is +, or ! when something was raised.

docs/own-games.md says how observations become numbers. A step that ends an episode resets at once: the observation is the
first of the new episode, and the last of the old one is kept where it was truncated. """
import sys
sys.path[:] = [folder for folder in sys.path if folder]  # no file of the user's folder in place of a module below
import faulthandler, importlib, json, math, mmap, os, random, signal, struct, time, traceback  # noqa: E401, E402

TASK = json.loads(sys.argv[1])


class Refused(Exception):
    """What the user can put right: reported without a traceback."""


def settle():  # signals of the terminal and of batch systems are the program's to answer
    sys.stderr.reconfigure(errors="backslashreplace")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    faulthandler.enable(file=5, all_threads=False)
    try:
        import ctypes
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: a process that hangs does not outlive the program
    except (ImportError, OSError, AttributeError):
        pass


def import_libraries():
    global np, gymnasium, spaces
    try:
        import gymnasium
        import numpy as np
        from gymnasium import spaces
    except ImportError as error:
        if error.name not in ("gymnasium", "numpy"):
            raise
        raise Refused(f"{sys.executable} has no {error.name}: `{sys.executable} -m pip install gymnasium`, or name another "
                      "Python by env.python") from None


def make_env():
    """The environment of ID, MODULE:ID or MODULE:CLASS; a module is found from the folder env.path too."""
    module, _, name = TASK["id"].rpartition(":")
    try:
        kwargs = dict(json.loads(TASK["kwargs"] or "{}"))
    except (ValueError, TypeError):
        raise Refused(f"env.kwargs is {TASK['kwargs']}; a JSON object is needed, like {{\"size\": 5}}") from None
    if module:
        try:
            loaded = importlib.import_module(module)
        except ModuleNotFoundError as error:
            if not (module + ".").startswith(f"{error.name}."):
                raise
            raise Refused(f"no module '{error.name}' in the folder {TASK['path']} or in {sys.executable}; env.path names "
                          "the folder that holds it") from None
        if name not in gymnasium.registry and callable(getattr(loaded, name, None)):
            return getattr(loaded, name)(**kwargs)
    try:
        return gymnasium.make(name, disable_env_checker=True, **kwargs)
    except (gymnasium.error.UnregisteredEnv, gymnasium.error.DeprecatedEnv) as error:
        hint = f"does {module} register it, or have that class?" if module else "of a package: gym:MODULE:ID"
        raise Refused(f"no environment '{name}': {error} ({hint})") from None


# ---- observations: (size, bind); bind(row) gives the function that writes an observation into a row of float32, or of
# uint8 where every part of it is ----

def is_image(space):
    return isinstance(space, spaces.Box) and len(space.shape) == 3


def parts_of(space):
    """(key, part) of a Dict or Tuple, images first: a grid begins an observation, and what follows is a list."""
    named = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
    return sorted(named, key=lambda item: not is_image(item[1]))


def only_bytes(space):
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        return len(space.spaces) > 0 and all(only_bytes(part) for _, part in parts_of(space))
    return isinstance(space, spaces.Box) and space.dtype == np.uint8


def grid_of(space):
    """(height, width, channels) of the image that an observation begins with."""
    while isinstance(space, (spaces.Dict, spaces.Tuple)) and len(space.spaces) > 0:
        space = parts_of(space)[0][1]
    if not is_image(space):
        return 0, 0, 0
    return (*space.shape[1:], space.shape[0]) if channels_first(space) else space.shape


def channels_first(space):
    return len(space.shape) == 3 and space.shape[0] <= 16 and space.shape[0] < min(space.shape[1:])


def of_box(space, where):
    shape, axes = tuple(space.shape), (1, 2, 0) if channels_first(space) else None
    many = len(shape) != 1

    def bind(row):
        scale = 1 / TASK["byte_scale"] if space.dtype == np.uint8 and row.dtype != np.uint8 else None

        def put(x):
            x = np.asarray(x)
            if x.shape != shape:
                raise ValueError(f"observation{where} has the shape {x.shape}, its space {shape}")
            row[:] = (x.transpose(axes) if axes else x).reshape(-1) if many else x
            if scale:
                np.multiply(row, scale, out=row)
        return put
    return math.prod(shape), bind


def of_flags(sizes, starts, where):
    sizes, starts = np.array(sizes).reshape(-1), np.array(starts).reshape(-1)
    at = np.concatenate(([0], np.cumsum(sizes)[:-1])) - starts

    def bind(row):
        def put(x):
            x = np.asarray(x).reshape(-1)
            if x.shape != sizes.shape or (x < starts).any() or (x >= starts + sizes).any():
                raise ValueError(f"observation{where} is {x}, which its space does not hold")
            row[:] = 0
            row[at + x] = 1
        return put
    return int(sizes.sum()), bind


def of_parts(parts):  # of (key, size, bind)
    def bind(row):
        ends = np.cumsum([size for _, size, _ in parts])
        puts = [(key, part(row[end - size:end])) for (key, size, part), end in zip(parts, ends)]

        def put(x):
            for key, put_part in puts:
                put_part(x[key])
        return put
    return sum(size for _, size, _ in parts), bind


def observation(space, left_out, where=""):
    if isinstance(space, (spaces.Box, spaces.MultiBinary)):
        return of_box(space, where)
    if isinstance(space, spaces.Discrete):
        return of_flags([space.n], [space.start], where)
    if isinstance(space, spaces.MultiDiscrete):
        return of_flags(space.nvec, getattr(space, "start", np.zeros_like(space.nvec)), where)
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        parts = [(key, *observation(inner, left_out, f"{where}[{key!r}]")) for key, inner in parts_of(space)]
        return of_parts([part for part in parts if part[1] > 0])
    return left_out.append(f"{where or 'all'} ({type(space).__name__})") or 0, None


# ---- actions: heads (size, low, high), and a function from an agent's choices and numbers to an action ----

def action(space, heads):
    at, shape = len(heads), space.shape
    if isinstance(space, spaces.Discrete):
        start = int(space.start)
        heads.append((int(space.n), 0, 0))
        return lambda choices, reals: choices[at] + start
    if isinstance(space, (spaces.MultiDiscrete, spaces.MultiBinary)):
        sizes = space.nvec.reshape(-1) if hasattr(space, "nvec") else [2] * math.prod(shape)
        start, dtype, end = getattr(space, "start", 0), space.dtype, at + len(sizes)
        heads.extend((int(n), 0, 0) for n in sizes)
        return lambda choices, reals: (np.array(choices[at:end]).reshape(shape) + start).astype(dtype)
    if isinstance(space, spaces.Box):
        if not (np.isfinite(space.low).all() and np.isfinite(space.high).all() and (space.low < space.high).all()):
            raise Refused(f"its actions are {space}, without bounds; gymnasium.wrappers.RescaleAction gives it some")
        heads.extend((0, float(lo), float(hi)) for lo, hi in zip(space.low.reshape(-1), space.high.reshape(-1)))
        end, dtype = len(heads), space.dtype
        return lambda choices, reals: np.array(reals[at:end], dtype=dtype).reshape(shape)
    if isinstance(space, spaces.Tuple):
        parts = [action(inner, heads) for inner in space.spaces]
        return lambda choices, reals: tuple(part(choices, reals) for part in parts)
    if isinstance(space, spaces.Dict):
        named = [(key, action(inner, heads)) for key, inner in space.spaces.items()]
        return lambda choices, reals: {key: part(choices, reals) for key, part in named}
    raise Refused(f"its actions are {space}; Discrete, MultiDiscrete, MultiBinary, Box, and Tuple and Dict of these work")


def describe(env):
    seen, left_out, heads = env.observation_space, [], []
    size, _ = observation(seen, left_out)
    action(env.action_space, heads)
    if size == 0:
        raise Refused(f"its observations are {seen}: no numbers to learn from")
    return {"obs_size": size, "heads": heads, "grid": grid_of(seen), "bytes": only_bytes(seen), "left_out": left_out}


class Instances:  # this process' share of a batch
    def __init__(self):
        memory = mmap.mmap(4, 0)
        for name, dtype, at, rows, columns in TASK["tensors"]:
            tensor = np.frombuffer(memory, dtype, rows * max(columns, 1), at)
            setattr(self, name, tensor.reshape(rows, columns) if columns else tensor)
        self.process, self.stride, self.rows = TASK["process"], TASK["processes"], []
        for i in range(self.process, TASK["n"], self.stride):
            self.now[self.process] = i
            env, heads = make_env(), []
            size, bind = observation(env.observation_space, [])
            self.action, self.numbers = action(env.action_space, heads), any(head[0] == 0 for head in heads)
            if (size, len(heads)) != (self.obs.shape[1], self.actions.shape[1]):
                raise Refused(f"instance {i} has {size} observations and {len(heads)} actions, another one "
                              f"{self.obs.shape[1]} and {self.actions.shape[1]}")
            self.rows.append((env, env.reset, env.step, bind(self.obs[i]), bind(self.final_obs[i])))

    def mine(self, first, end):  # the numbers of its instances in [first, end)
        return range(first + (self.process - first) % self.stride, end, self.stride)

    def reset(self, first, end):
        random.seed(int(self.seeds[self.process]))  # for environments that do not keep to np_random
        np.random.seed(int(self.seeds[self.process]))
        for i in self.mine(first, end):
            self.now[self.process] = i
            _, reset, _, put, _ = self.rows[i // self.stride]
            put(reset(seed=int(self.seeds[i]))[0])

    def step(self, first, end):
        begun, mine, rewards, terms, truncs = time.perf_counter_ns(), self.mine(first, end), [], [], []
        part, now, process, stride, act = slice(mine.start, end, self.stride), self.now, self.process, self.stride, self.action
        choice_rows = self.actions[part].tolist()
        for i, choices, reals in zip(mine, choice_rows, self.reals[part].tolist() if self.numbers else choice_rows):
            now[process] = i
            _, reset, step, put, put_final = self.rows[i // stride]
            obs, reward, ended, truncated, _ = step(act(choices, reals))
            if ended or truncated:
                if not ended:
                    put_final(obs)
                obs = reset()[0]
            put(obs)
            rewards.append(reward)
            terms.append(bool(ended))
            truncs.append(bool(truncated and not ended))
        self.rewards[part], self.terms[part], self.truncs[part] = rewards, terms, truncs
        self.busy_ns[process] = time.perf_counter_ns() - begun


def serve():
    instances, size = Instances(), struct.calcsize("<cII")
    os.write(3, b"+")
    while len(command := os.read(3, size)) == size:
        what, first, end = struct.unpack("<cII", command)
        (instances.reset if what == b"r" else instances.step)(first, end)
        os.write(3, b"+")
    for env, *_ in instances.rows:
        env.close()


settle()
try:
    import_libraries()
    sys.path.insert(0, TASK["path"] or os.getcwd())
    if TASK["n"] == 0:
        os.write(5, json.dumps(describe(make_env())).encode())
        os.write(3, b"+")
    else:
        serve()
except Refused as error:
    os.write(5, str(error).encode(errors="replace"))
    os.write(3, b"!")
except BaseException:
    sys.stderr.write(traceback.format_exc())
    os.write(5, traceback.format_exc().encode(errors="replace"))
    os.write(3, b"!")
sys.stderr.flush()
os._exit(0)
