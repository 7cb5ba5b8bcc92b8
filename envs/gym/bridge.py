"""bridge.py - steps Gymnasium environments for Trawl, in a Python of the user's own. The program holds this text and
starts it as `python -c TEXT JSON`, one process for each core; tensors lie in memory that both share.

Descriptors: 3 a socket that ends with the program, 4 the shared memory, 5 what went wrong, as text (faulthandler writes there too, when the process
crashes or is killed for hanging), 6 an eventfd that wakes us, 7 one that wakes the program (by a socket, Linux would wake either on the core of the
other). Commands and answers are words of the shared memory, `line` below (envs/gym/gym_helper.h): r resets instances first to end, s steps them.
Instance i belongs to process i modulo their number; of a vector environment (kind "vector" and "envpool") a process has neighbours, which are one
object. A byte ! in the socket says that something was raised, ? that the user can put it right.

docs/own-games.md says how observations become numbers. A step that ends an episode resets at once: the observation is the
first of the new episode, and the last of the old one is kept where it was truncated."""
import sys
sys.path[:] = [folder for folder in sys.path if folder]  # no file of the user's folder instead of a module below
import difflib, faulthandler, inspect, json, math, mmap, os, random, select, signal, time, traceback  # noqa: E401, E402

TASK = json.loads(sys.argv[1])
ONE = (1).to_bytes(8, sys.byteorder)  # for an eventfd
WHOLE = "biu"  # kinds of numpy's types: flags and whole numbers
NUMBERS = WHOLE + "f"
REAL = NUMBERS + "O"  # numbers of Python's too
FILM = TASK.get("film", 0)  # pixels of a frame's longer side at most; 0: none is wanted
LINE_MAX = 300  # bytes; of a traceback the program reads the end, which one line must not fill
CHOICES_MAX = 65536  # of a Discrete: the network has weights for each one
ASKED, AWAITED, COMMANDS, ANSWERED, ASLEEP, NOW, BUSY_NS, LATE, PLANES, HEIGHT, WIDTH = 0, 1, 2, 8, 9, 10, 11, 12, 13, 14, 15  # in struct gym_line


class Refused(Exception):
    """What the user can put right: reported without a traceback."""


def settle():  # signals of the terminal and of batch systems are the program's to answer
    sys.stderr.reconfigure(errors="backslashreplace")
    numbers = signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2
    for number in numbers:
        signal.signal(number, lambda *_: None)
    os.register_at_fork(after_in_child=lambda: [signal.signal(number, signal.SIG_DFL) for number in numbers])
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    faulthandler.enable(file=5, all_threads=False)
    try:
        import ctypes
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: a process that hangs does not outlive the program
    except (ImportError, OSError, AttributeError):
        pass


def import_libraries():
    global np, gymnasium, spaces, envpool
    try:
        import gymnasium
        import numpy as np
        from gymnasium import spaces
        if TASK["kind"] == "envpool":
            import envpool
    except ImportError as error:
        if error.name not in ("gymnasium", "numpy", "envpool"):
            raise
        raise Refused(f"{sys.executable} has no {error.name}: `{sys.executable} -m pip install {error.name}`, or name another "
                      "Python by env.python") from None


def keywords():
    try:
        return {**dict(json.loads(TASK["kwargs"] or "{}")), **({"render_mode": "rgb_array"} if FILM else {})}
    except (ValueError, TypeError) as error:
        raise Refused(f"env.kwargs is {TASK['kwargs']}; a JSON object is needed, like {{\"size\": 5}} ({error})") from None


def make_env(n=1):
    """The environment of ID, MODULE:ID or MODULE:CLASS; a module is found from the folder env.path too."""
    module, _, name = TASK["id"].rpartition(":")
    kwargs = keywords()
    if module.startswith(".") or "/" in module:
        raise Refused(f"'{module}' is not the name of a module: write it without folders and without .py; env.path names the folder that holds it")
    if module:
        try:
            __import__(module)
            loaded = sys.modules[module]
        except ModuleNotFoundError as error:
            if not (module + ".").startswith(f"{error.name}."):
                raise
            raise Refused(f"no module '{error.name}' in the folder {TASK['path']} or in {sys.executable}; env.path names "
                          "the folder that holds it" + ("; write the module's name without .py" if module.endswith(".py") else "")) from None
        if name not in gymnasium.registry and callable(getattr(loaded, name, None)):
            if TASK["kind"] == "vector":
                raise Refused(f"{name} is a class; env.vector needs an id that is registered with a vector_entry_point")
            try:
                return getattr(loaded, name)(**kwargs)
            except TypeError as error:
                refuse_arguments(error)
                raise
    hint = f"does {module}, {getattr(loaded, '__file__', 'built in')}, register it, or have that class?" if module else \
        "of a package: gym:MODULE:ID; of your own: gym:MODULE:CLASS"
    try:
        if name not in gymnasium.registry:
            gymnasium.envs.registration.parse_env_id(name)
    except gymnasium.error.Error as error:
        raise Refused(f"'{name}' is not the id of an environment: {error} ({hint})") from None
    try:
        if TASK["kind"] == "vector" and gymnasium.__version__.startswith("0."):
            raise Refused(f"{sys.executable} has gymnasium {gymnasium.__version__}; env.vector needs 1.0 or later: "
                          f"`{sys.executable} -m pip install -U gymnasium`, or leave it out")
        if TASK["kind"] == "vector":
            return make_vector(gymnasium.spec(name), n, kwargs)
        return gymnasium.make(name, disable_env_checker=True, **kwargs)
    except (gymnasium.error.UnregisteredEnv, gymnasium.error.DeprecatedEnv) as error:
        raise Refused(f"no environment '{name}': {error} ({hint})") from None
    except TypeError as error:
        refuse_arguments(error)
        raise


def frame_of(env):
    """What it looks like now, (height, width, 3) of even sides, as an mp4 has; a large one is averaged in squares of pixels."""
    modes = env.metadata.get("render_modes")
    frame = env.render() if "rgb_array" in (modes or ()) else None
    if not (isinstance(frame, np.ndarray) and frame.dtype == np.uint8 and frame.shape[2:] == (3,) and min(frame.shape[:2]) > 1):
        gave = frame if frame is None else f"an array {frame.shape} of {frame.dtype}" if isinstance(frame, np.ndarray) else type(frame).__name__
        raise Refused("a video needs an image (height, width, 3) of uint8 from its render() in render_mode \"rgb_array\"; its "
                      f"metadata[\"render_modes\"] is {modes}" + (f", and render() gave {gave}" if "rgb_array" in (modes or ()) else ""))
    by = min(-(-max(frame.shape) // FILM), min(frame.shape[:2]) // 2)
    height, width = (max(side // by // 2 * 2, 2) for side in frame.shape[:2])
    return frame[:height * by, :width * by].reshape(height, by, width, by, 3).mean((1, 3)).astype(np.uint8)


def refuse_arguments(error):
    """A TypeError of the call itself, before any code of the environment ran, is the user's to put right; any other is the environment's own."""
    place = (error.__cause__ or error).__traceback__
    while place:
        if place.tb_frame.f_code.co_filename not in ("<string>", gymnasium.envs.registration.__file__):
            return
        place = place.tb_next
    raise Refused(f"{error}; " + ("a video needs the argument render_mode, and \"rgb_array\" in metadata[\"render_modes\"]" if FILM
                                  else "env.kwargs gives it arguments, as a JSON object")) from None


def threads(n):
    """How many threads a package that steps n instances gets: all cores but one, since the program needs one; each of several
    processes gets its share."""
    cores, processes = TASK["cores"], TASK.get("processes", 1)
    return max(min(cores - 1 if processes == 1 else cores // processes, n), 1)


def make_vector(spec, n, kwargs):
    """n instances in one; it resets within the step that ends an episode where it can be told to."""
    if spec.vector_entry_point is None:
        raise Refused(f"{spec.id} is registered without a vector_entry_point: leave out env.vector")
    entry = spec.vector_entry_point if callable(spec.vector_entry_point) else \
        gymnasium.envs.registration.load_env_creator(spec.vector_entry_point)
    known = inspect.signature(entry).parameters
    if "autoreset_mode" in known:
        kwargs = {"autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP, **kwargs}
    if "num_threads" in known:
        kwargs = {"num_threads": threads(n), **kwargs}
    return gymnasium.make_vec(spec, num_envs=n, vectorization_mode="vector_entry_point", **kwargs)


def make_pool(seeds):
    if TASK["id"] not in envpool.list_all_envs():
        near = difflib.get_close_matches(TASK["id"], envpool.list_all_envs(), 1)
        raise Refused(f"EnvPool has no '{TASK['id']}'" + (f"; did you mean {near[0]}?" if near else ""))
    return envpool.make(TASK["id"], env_type="gymnasium", num_envs=len(seeds), seed=seeds,
                        **{"num_threads": threads(len(seeds)), **keywords()})


def is_ours(error):
    """Was it raised by a line of this file, and not by one of the environment?"""
    place = error.__traceback__
    while place.tb_next:
        place = place.tb_next
    return place.tb_frame.f_code.co_filename == "<string>"


def spaces_of(env):
    """Those of one instance."""
    if TASK["kind"] == "gym" and isinstance(env, gymnasium.vector.VectorEnv):
        raise Refused(f"it is a vector environment of {env.num_envs} instances, and one instance is needed; env.vector takes an id that is "
                      "registered with a vector_entry_point")
    one = "single_" if hasattr(env, "single_observation_space") else ""
    for name in ("observation_space", "action_space"):
        space = getattr(env, one + name, None)
        if not isinstance(space, spaces.Space):
            raise Refused(f"its {name} is {space!r:.60} of the type {type(space).__module__}.{type(space).__name__}, no space of gymnasium; "
                          f"it is a {type(env).__module__}.{type(env).__name__}, and one of several agents or of another library needs a "
                          "wrapper that makes it a gymnasium.Env")
    return getattr(env, one + "observation_space"), getattr(env, one + "action_space")


UNKNOWN = object()  # what a call returns, before it has


def blame(error, what, gave):
    """An exception of ours over what an environment returned, or does not take, becomes one that says that."""
    if not isinstance(error, Refused) and is_ours(error):
        call = f"its {what} was called" if gave is UNKNOWN else f"its {what} returned {' '.join(repr(gave).split())[:100]}"
        raise (type(error) if len(error.args) == 1 and not isinstance(error, KeyError) else ValueError)(
            f"{'no key ' if isinstance(error, KeyError) else ''}{error}; {call}; a step returns (observation, reward, terminated, "
            "truncated, info), reset(seed=, options=) (observation, info)") from None


def chosen(x, which):
    """The instances `which` of a batch of observations, as memory of its own."""
    if isinstance(x, dict):
        return {key: chosen(part, which) for key, part in x.items()}
    if isinstance(x, tuple):
        return tuple(chosen(part, which) for part in x)
    if x.dtype == object:  # a batch of observations, each by itself
        return stacked([x[i] for i in np.flatnonzero(which)])
    return x[which].copy()


def stacked(rows):
    """A batch of single observations, each a Dict's, a Tuple's or an array."""
    if isinstance(rows[0], dict):
        return {key: stacked([row[key] for row in rows]) for key in rows[0]}
    if isinstance(rows[0], tuple):
        return tuple(stacked(parts) for parts in zip(*rows))
    return np.stack(rows)


def one_each(x, n, kinds, what):
    """n numbers of these kinds: numpy itself would take one for all, text for a number, and 0.5 for no end."""
    x = x if type(x) is np.ndarray else np.asarray(x)
    x = x[:, 0] if x.shape == (n, 1) else x
    if x.shape != (n,) or x.dtype.kind not in kinds:
        raise ValueError(f"{what} of the shape {x.shape} and the type {x.dtype}: {n} are needed, one an instance, "
                         f"{'true or false' if kinds == WHOLE else 'real numbers'}")
    return x != 0 if kinds == WHOLE and x.dtype != bool else x


class Vector:
    """Instances that one vector environment steps: of Gymnasium, in any of its modes of resetting."""
    def __init__(self, n):
        self.n, self.env = n, make_env(n)
        mode = self.env.metadata.get("autoreset_mode")
        if mode is not None and not hasattr(mode, "name"):
            raise Refused(f"its metadata[\"autoreset_mode\"] is {mode!r}; one of gymnasium.vector.AutoresetMode is needed")
        self.mode = getattr(mode, "name", "NEXT_STEP")
        if isinstance(getattr(self.env, "action_space", None), spaces.Space):
            self.env.action_space.contains = lambda _: True  # many environments check each action; ours fit the space by construction

    def spaces(self):
        return spaces_of(self.env)

    def reset(self, seeds):
        self.gave = UNKNOWN
        self.gave = self.env.reset(seed=seeds[0])  # of a list some make nothing
        return self.gave[0]

    def step(self, act):
        """Observations to continue from, rewards, terminated, truncated, last observations of the truncated. In the mode
        NEXT_STEP the program sees which of them a step only reset."""
        self.gave = UNKNOWN
        self.gave = obs, rewards, terms, truncs, infos = self.env.step(act)
        terms, truncs = (one_each(x, self.n, WHOLE, "ends") for x in (terms, truncs))
        if self.mode == "NEXT_STEP":
            return obs, rewards, terms, truncs, None
        cut, last = truncs > terms, None
        if self.mode == "SAME_STEP":
            last = chosen(infos["final_obs"], cut) if cut.any() else None
        elif (terms | truncs).any():
            last = chosen(obs, cut) if cut.any() else None
            obs = self.env.reset(options={"reset_mask": terms | truncs})[0]
        return obs, rewards, terms, cut, last


class Pool(Vector):
    """Of EnvPool, whose seeds are given where it is made; it resets in the step after that which ended an episode."""
    mode, gave = "NEXT_STEP", UNKNOWN

    def __init__(self, n):
        self.n, self.env = n, make_pool([0] * n)

    def spaces(self):
        return self.env.observation_space, self.env.action_space

    def reset(self, seeds):
        self.env.close()
        self.env, self.given = make_pool(seeds), None
        obs, infos = self.env.reset()
        if len(infos["env_id"]) != self.n or len(infos["players"]["env_id"]) != self.n:
            raise Refused("its instances have several players each; one agent an instance can be trained")
        self.order = np.arange(self.n, dtype=np.int32).tobytes()
        return self.ordered(infos["env_id"], obs)[0]

    def ordered(self, ids, *batch):
        return batch if ids.tobytes() == self.order else [chosen(x, np.argsort(ids)) for x in batch]

    def step(self, act):
        if self.given is not None:
            self.given[self.at] = act.astype(self.dtype)
            self.env._send(self.given)
            states = self.env._recv()
            obs, rewards, done, truncs = self.ordered(*[states[i] for i in self.places])
            return obs, rewards, done > truncs, truncs, None
        self.env.send(act)
        obs, rewards, terms, truncs, infos = self.env.recv()
        self.shorten(act)
        return (*self.ordered(infos["env_id"], obs, rewards, terms, truncs), None)

    def shorten(self, act):
        """Later steps without EnvPool's Python around its C++, where that gives one array of observations."""
        names, want = getattr(self.env, "_state_keys", []), ("info:env_id", "obs", "reward", "done", "trunc")
        if isinstance(act, np.ndarray) and all(name in names for name in want):
            self.places, self.given = [names.index(name) for name in want], self.env._from(act)
            self.at = self.env._action_keys.index("action")
            self.dtype = self.given[self.at].dtype


def describe(env):
    (seen, acts), left_out, heads = spaces_of(env), [], []
    (narrow, wide), _ = observation(seen, left_out)
    action(acts, heads)
    if narrow + wide == 0:
        raise Refused(f"its observations are {seen}: no numbers to learn from")
    if not heads:
        raise Refused(f"its actions are {acts}: there is nothing to choose")
    if FILM and env.reset(seed=0):
        frame_of(env)
    return {"n_bytes": narrow, "n_floats": wide, "heads": heads, "grid": grid_of(seen), "left_out": left_out}


INFO = [name for name in TASK["info"].replace(",", " ").split()]


def numbers_in(info, names):
    """What env.info names of the info of the step that ended an episode: keys, or a way through dicts, a.b."""
    values = []
    for name in names:
        value = info
        for key in [name] if name in info else name.split("."):
            value = value[key] if isinstance(value, dict) and key in value else None
        try:
            values.append(float(value))
        except (TypeError, ValueError):
            raise Refused(f"env.info names '{name}', but the info of the step that ended an episode has no such number; it has "
                          f"{', '.join(map(str, info)) or 'none'}") from None
    return values


def one_of(x, kinds, what):
    """The number or flag that a step returned, which may be an array of one: NumPy would make some of text and None too."""
    number = np.asarray(x)
    item = number.item() if number.size == 1 else None
    try:
        if number.dtype.kind in kinds and item is not None:
            return item
        if kinds == NUMBERS and hasattr(item, "__float__"):  # a Fraction
            return float(item)
    except OverflowError:
        pass
    raise Refused(f"its {what} is {x!r:.100}, of the type {type(x).__name__}; a step has one {'number' if kinds == NUMBERS else 'true or false'} "
                  f"as its {what}")


def numbers_of(rewards):
    """The rewards of some steps as an array, quickly where each is a plain number; None: there is another one among them."""
    try:
        numbers = np.array(rewards)
    except ValueError:  # of different shapes
        return None
    return numbers if numbers.shape == (len(rewards),) and numbers.dtype.kind in NUMBERS else None


def closed(env):
    """What fails here has changed no result, and the program may be gone."""
    try:
        getattr(env, "close", lambda: None)()
    except BaseException:
        traceback.print_exc()


class Share:  # of a batch: the instances of this process, in memory that the program sees
    def __init__(self):
        memory = mmap.mmap(4, 0)
        for name, dtype, at, rows, columns in TASK["tensors"]:
            tensor = np.frombuffer(memory, dtype, rows * max(columns, 1), at)
            setattr(self, name, tensor.reshape(rows, columns) if columns else tensor)
        self.size = (TASK["n_bytes"], TASK["n_floats"])
        self.seen, self.last = halves(self.obs, self.size[1]), halves(self.final_obs, self.size[1])
        self.process, self.stride, self.rows = TASK["process"], TASK["processes"], []
        self.line = memoryview(self.lines[self.process])  # quicker than an array
        self.make()

    def fits(self, seen, size, heads, i):
        image = first_of(seen)
        self.line[PLANES] = image is not None and is_image(image) and channels_first(image)
        if (size, len(heads)) != (self.size, self.actions.shape[1]):
            raise Refused(f"instance {i} has {sum(size)} observations and {len(heads)} actions, another one "
                          f"{sum(self.size)} and {self.actions.shape[1]}, or other types of them")

    def seed_others(self):
        random.seed(int(self.seeds[self.process]))  # for environments that do not keep to np_random
        np.random.seed(int(self.seeds[self.process]))


class Vectors(Share):
    def make(self):
        first, end = (TASK["n"] * at // self.stride for at in (self.process, self.process + 1))
        self.line[NOW], self.own, heads = first, slice(first, end), []
        self.vector = (Pool if TASK["kind"] == "envpool" else Vector)(end - first)
        seen, acts = self.vector.spaces()
        self.line[LATE] = self.vector.mode == "NEXT_STEP"
        self.act, self.put = actions(acts, heads), observations(seen)
        self.fits(seen, observation(seen, [])[0], heads, first)
        for name in ("actions", "reals", "rewards", "final_obs", "terms", "truncs"):
            setattr(self, name, getattr(self, name)[self.own])
        self.seen = tuple(half[self.own] for half in self.seen)

    def reset(self, *_):
        self.seed_others()
        try:
            self.put(*self.seen, self.vector.reset([int(seed) for seed in self.seeds[self.own]]))
        except Exception as error:
            blame(error, "reset", self.vector.gave)
            raise

    def step(self, *_):
        begun = time.perf_counter_ns()
        try:
            obs, rewards, self.terms[:], self.truncs[:], last = self.vector.step(self.act(self.actions, self.reals))
            self.rewards[:] = one_each(rewards, len(self.rewards), NUMBERS, "rewards")
            self.put(*self.seen, obs)
            if last is not None:
                which = np.flatnonzero(self.truncs)
                ended = np.zeros((len(which), self.obs.shape[1]), self.obs.dtype)
                self.put(*halves(ended, self.size[1]), last)
                self.final_obs[which] = ended
        except Exception as error:
            blame(error, "step", self.vector.gave)
            raise
        self.line[BUSY_NS] += time.perf_counter_ns() - begun

    def close(self):
        closed(self.vector.env)


class Instances(Share):
    def make(self):
        for i in range(self.process, TASK["n"], self.stride):
            self.line[NOW] = i
            env, heads = make_env(), []
            size, bind = observation(env.observation_space, [])
            self.action, self.numbers = action(env.action_space, heads), any(head[0] == 0 for head in heads)
            self.fits(env.observation_space, size, heads, i)
            step = (lambda act, env=env: self.show(env, env.step(act))) if FILM else env.step
            self.rows.append((env, env.reset, step, bind(*(half[i] for half in self.seen)), bind(*(half[i] for half in self.last))))

    def show(self, env, gave=None):  # before the reset that follows an episode's end
        frame = frame_of(env)
        (height, width), before = frame.shape[:2], (self.line[HEIGHT], self.line[WIDTH])
        if before not in ((0, 0), (height, width)):
            raise Refused(f"a frame has {width} x {height} pixels, the one before {before[1]} x {before[0]}; those of a video are equal")
        self.line[HEIGHT], self.line[WIDTH] = height, width
        self.frame[:frame.size] = frame.reshape(-1)
        return gave

    def mine(self, first, end):  # the numbers of its instances in [first, end)
        return range(first + (self.process - first) % self.stride, end, self.stride)

    def reset(self, first, end):
        self.seed_others()
        for i in self.mine(first, end):
            self.line[NOW] = i
            env, reset, _, put, _ = self.rows[i // self.stride]
            gave = UNKNOWN
            try:
                gave = reset(seed=int(self.seeds[i]))
                obs, _ = gave
                put(obs)
            except Exception as error:
                blame(error, "reset", gave)
                raise
            if FILM:
                self.show(env)

    def step(self, first, end):
        begun, mine, rewards, terms, truncs = time.perf_counter_ns(), self.mine(first, end), [], [], []
        part, line, stride, act = slice(mine.start, end, self.stride), self.line, self.stride, self.action
        choice_rows, names = self.actions[part].tolist(), INFO
        what, gave = "step", UNKNOWN
        try:
            for i, choices, reals in zip(mine, choice_rows, self.reals[part].tolist() if self.numbers else choice_rows):
                line[NOW] = i
                _, reset, step, put, put_final = self.rows[i // stride]
                what, gave = "step", UNKNOWN
                gave = step(act(choices, reals))
                obs, reward, ended, truncated, info = gave
                if ended or truncated:
                    ended, truncated = (x and one_of(x, WHOLE, what) for x, what in ((ended, "terminated"), (truncated, "truncated")))
                    if names:
                        self.info[i] = numbers_in(info, names)
                    if not ended:
                        put_final(obs)
                    what, gave = "reset", UNKNOWN
                    gave = reset()
                    obs, _ = gave
                put(obs)
                rewards.append(reward)
                terms.append(bool(ended))
                truncs.append(bool(truncated and not ended))
        except Exception as error:
            blame(error, what, gave)
            raise
        numbers = numbers_of(rewards)
        if numbers is None:
            numbers = []
            for line[NOW], reward in zip(mine, rewards):
                numbers.append(one_of(reward, NUMBERS, "reward"))
        self.rewards[part] = numbers
        self.terms[part], self.truncs[part] = terms, truncs
        self.line[BUSY_NS] += time.perf_counter_ns() - begun

    def close(self):
        for env, *_ in self.rows:
            closed(env)


class Patience:
    """For the next command. To be woken takes longer than many a step, so it is waited for without sleep, for a while, and less
    often the more often that was in vain: another program may need the core, or steps may be long. Not for a program that has to wake."""
    misses = skipped = 0

    def spins(self, line, seen):
        self.skipped += not line[AWAITED]
        if line[AWAITED] or self.skipped < 1 << self.misses:
            return False
        self.skipped, until = 0, time.perf_counter_ns() + TASK["spin_ns"]
        line[ASLEEP] = 0
        while line[ASKED] == seen and time.perf_counter_ns() < until:
            pass
        line[ASLEEP] = 1
        hit = line[ASKED] != seen
        self.misses = max(self.misses - 1, 0) if hit else min(self.misses + 1, 8)
        return hit

    def woken(self, seconds=None):
        """False: not in this time, or the program is gone."""
        return 6 in select.select([3, 6], [], [], seconds)[0] and len(os.read(6, 8)) == 8

    def commanded(self, line, seen):
        """Is there another command than the first `seen`? Without, the program is gone."""
        if not TASK["spin_ns"]:
            return self.woken()
        while line[ASKED] == seen and not self.spins(line, seen):
            # what the program asks before it sees us asleep is seen here a millisecond later
            if not self.woken(1e-3) and line[ASKED] == seen and not self.woken():
                return False
        return True


def serve():
    instances, seen = (Instances if TASK["kind"] == "gym" else Vectors)(), 0
    patience = Patience()
    line, calls, own = instances.line, (instances.reset, instances.step), os.getpid()
    os.write(7, ONE)
    while patience.commanded(line, seen):
        at = COMMANDS + 3 * (seen % 2)
        calls[line[at]](line[at + 1], line[at + 2])
        if os.getpid() != own:
            os._exit(0)  # a copy of us, by a fork in an environment that let it continue
        line[ANSWERED] = seen = seen + 1
        if line[AWAITED]:
            os.write(7, ONE)
    instances.close()


def report(text, mark):
    os.write(5, text.replace("\0", " ").encode(errors="replace"))
    os.write(3, mark)


settle()
try:
    import_libraries()
    sys.path.insert(0, TASK["path"] or os.getcwd())
    if TASK["n"] == 0:
        os.write(5, json.dumps(describe(make_pool([0]) if TASK["kind"] == "envpool" else make_env())).encode())
        os.write(7, ONE)
    else:
        serve()
except Refused as error:
    report(str(error), b"?")
except BaseException as error:
    text = traceback.format_exc()
    if isinstance(error, ModuleNotFoundError):
        text += f"`{sys.executable} -m pip install` the package that has it, or name another Python by env.python\n"
    try:
        sys.stderr.write(text)
    except (OSError, ValueError, AttributeError):
        pass  # closed by an environment
    report("\n".join(line.encode(errors="replace")[:LINE_MAX].decode(errors="ignore") for line in text.split("\n")), b"!")
try:
    sys.stderr.flush()
finally:
    os._exit(0)
