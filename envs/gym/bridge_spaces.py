"""bridge_spaces.py - how bridge.py, which follows it in one text, turns observations into numbers and choices into actions."""


# ---- observations: ((n bytes, n floats), bind); bind(bytes, floats) gives the function that writes an observation into the
# uint8 and the float32 of its row. Boxes of uint8 stay bytes, unless an image of floats begins the row ----

def is_image(space):
    return isinstance(space, spaces.Box) and len(space.shape) == 3


def parts_of(space):
    """(key, part) of a Dict or Tuple, images first: a grid begins an observation, and what follows is a list."""
    named = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
    return sorted(named, key=lambda item: not is_image(item[1]))


def is_bytes(space):
    return isinstance(space, spaces.Box) and space.dtype == np.uint8


def leaves_of(space):
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        return [leaf for _, part in parts_of(space) for leaf in leaves_of(part)]
    return [space]


def keeps_bytes(space):
    first = next(iter(leaves_of(space)), None)
    return first is None or is_bytes(first) or not is_image(first)


def first_of(space):
    """What a row begins with."""
    kept = keeps_bytes(space)
    return next((leaf for leaf in leaves_of(space) if is_bytes(leaf) or not kept), None)


def grid_of(space):
    """(height, width, channels) of the image that a row begins with."""
    image = first_of(space)
    if image is None or not is_image(image):
        return 0, 0, 0
    return (*image.shape[1:], image.shape[0]) if channels_first(image) else image.shape


def axes_of(space, keep, first):
    """The order of axes that has channels last; the program gives it to the image of a row's beginning, since it copies rows
    anyway. first: a list, empty once that beginning has been met."""
    if first and (is_bytes(space) or not keep):
        first.clear()
        if is_image(space):
            return None
    return (1, 2, 0) if channels_first(space) else None


def halves(rows, floats):
    """The bytes and the floats of rows, `floats` of the latter in each row of bytes."""
    if rows.dtype != np.uint8 or floats == 0:
        return (rows, rows[..., :0]) if rows.dtype == np.uint8 else (rows[..., :0], rows)
    return rows, rows.view("<f4")[..., -floats:]


def channels_first(space):
    return len(space.shape) == 3 and space.shape[0] <= 16 and space.shape[0] < min(space.shape[1:])


def unfit(x, shape, which, wanted):
    """NumPy would make numbers of text, and drop the imaginary parts of complex ones."""
    return ValueError(f"observation{which} the shape {x.shape}, {wanted} {shape}" if x.shape != shape else
                      f"observation{which} the type {x.dtype}; real numbers are needed")


def as_bytes(x, where):
    """For a row of bytes: other numbers would lose their fraction or their upper bits in it."""
    narrow = x.astype(np.uint8)
    if (narrow != x).any():
        raise ValueError(f"observation{where}: numbers of {x.dtype} that are not bytes (0 to 255), which its space holds")
    return narrow


def of_box(space, where, keep, first):
    shape, axes = tuple(space.shape), axes_of(space, keep, first)
    many, size, kept = len(shape) != 1, math.prod(space.shape), keep and is_bytes(space)

    def bind(narrow, wide):
        row = narrow if kept else wide
        scale = 1 / TASK["byte_scale"] if is_bytes(space) and not keep else None

        def put(x):
            x = np.asarray(x)
            if x.shape != shape or x.dtype.kind not in REAL:
                raise unfit(x, shape, f"{where} has", "its space")
            if kept and x.dtype != np.uint8:
                x = as_bytes(x, where)
            row[:] = (x.transpose(axes) if axes else x).reshape(-1) if many else x
            if scale:
                np.multiply(row, scale, out=row)
        return put
    return (size, 0) if kept else (0, size), bind


def of_flags(sizes, starts, where):
    sizes, starts = np.array(sizes).reshape(-1), np.array(starts).reshape(-1)
    if sizes.sum() > CHOICES_MAX:
        raise Refused(f"its observation{where} is one of {sizes.sum()} values, each of which would be a number of its own for the network, at most "
                      f"{CHOICES_MAX} can be trained; gymnasium.wrappers.TransformObservation makes a few numbers of it")
    at = np.concatenate(([0], np.cumsum(sizes)[:-1])) - starts

    def bind(_, row):
        def put(x):
            x = np.asarray(x).reshape(-1)
            if x.shape != sizes.shape or x.dtype.kind not in WHOLE or (x < starts).any() or (x >= starts + sizes).any():
                raise ValueError(f"observation{where} is {x}, which its space does not hold")
            row[:] = 0
            row[at + x] = 1
        return put
    return (0, int(sizes.sum())), bind


def parts_in(sizes):
    """Where the bytes and the floats of each part lie, and how many there are in all."""
    ends = np.cumsum(np.array(sizes, int).reshape(-1, 2), axis=0)
    places = [tuple(slice(int(e - n), int(e)) for n, e in zip(size, end)) for size, end in zip(sizes, ends)]
    return places, tuple(int(e) for e in ends[-1]) if sizes else (0, 0)


def of_parts(parts):  # of (key, size, bind)
    places, size = parts_in([size for _, size, _ in parts])

    def bind(narrow, wide):
        puts = [(key, part(narrow[a], wide[b])) for (key, _, part), (a, b) in zip(parts, places)]

        def put(x):
            for key, put_part in puts:
                put_part(x[key])
        return put
    return size, bind


def observation(space, left_out, where="", keep=None, first=()):
    if keep is None:
        keep, first = keeps_bytes(space), [True]
    if isinstance(space, (spaces.Box, spaces.MultiBinary)):
        return of_box(space, where, keep, first)
    if isinstance(space, spaces.Discrete):
        return of_flags([space.n], [space.start], where)
    if isinstance(space, spaces.MultiDiscrete):
        return of_flags(space.nvec, getattr(space, "start", np.zeros_like(space.nvec)), where)
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        parts = [(key, *observation(inner, left_out, f"{where}[{key!r}]", keep, first)) for key, inner in parts_of(space)]
        return of_parts([part for part in parts if sum(part[1]) > 0])
    return left_out.append(f"{where or 'all'} ({type(space).__name__})") or (0, 0), None


# ---- actions: heads (size, low, high), and a function from an agent's choices and numbers to an action ----

def bounds_of(space):
    """As 32-bit numbers, none beyond the space's own; None if one is infinite."""
    with np.errstate(over="ignore"):
        low, high = space.low.astype(np.float32), space.high.astype(np.float32)
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        return None
    return (np.where(low < space.low, np.nextafter(low, np.float32(np.inf)), low),
            np.where(high > space.high, np.nextafter(high, np.float32(-np.inf)), high))


def action(space, heads):
    at, shape = len(heads), space.shape
    most = max(np.array(getattr(space, "nvec", getattr(space, "n", 0))).reshape(-1), default=0)
    if most > CHOICES_MAX and not isinstance(space, spaces.MultiBinary):
        raise Refused(f"its actions are {space!s:.100}, with {most} choices, each of which would be an output of the network, at most {CHOICES_MAX} "
                      "can be trained; gymnasium.wrappers.TransformAction makes fewer of them, or several components")
    if isinstance(space, spaces.Discrete):
        start, kind = int(space.start), space.dtype.type  # numpy's, as of space.sample()
        heads.append((int(space.n), 0, 0))
        return lambda choices, reals: kind(choices[at] + start)
    if isinstance(space, (spaces.MultiDiscrete, spaces.MultiBinary)):
        sizes = space.nvec.reshape(-1) if hasattr(space, "nvec") else [2] * math.prod(shape)
        start, dtype, end = getattr(space, "start", 0), space.dtype, at + len(sizes)
        heads.extend((int(n), 0, 0) for n in sizes)
        return lambda choices, reals: (np.array(choices[at:end]).reshape(shape) + start).astype(dtype)
    if isinstance(space, spaces.Box):
        bounds = bounds_of(space)
        if bounds is None or not (bounds[0] < bounds[1]).all():
            raise Refused(f"its actions are {space}, without bounds, or with bounds that are the same or infinite as 32-bit numbers; "
                          "gymnasium.wrappers.RescaleAction gives it others")
        heads.extend((0, float(lo), float(hi)) for lo, hi in zip(*(bound.reshape(-1) for bound in bounds)))
        end, dtype = len(heads), space.dtype
        if dtype.kind in WHOLE:
            return lambda choices, reals: np.rint(reals[at:end]).astype(dtype).reshape(shape)
        return lambda choices, reals: np.array(reals[at:end], dtype=dtype).reshape(shape)
    if isinstance(space, spaces.Tuple):
        parts = [action(inner, heads) for inner in space.spaces]
        return lambda choices, reals: tuple(part(choices, reals) for part in parts)
    if isinstance(space, spaces.Dict):
        named = [(key, action(inner, heads)) for key, inner in space.spaces.items()]
        return lambda choices, reals: {key: part(choices, reals) for key, part in named}
    raise Refused(f"its actions are {space}; Discrete, MultiDiscrete, MultiBinary, Box, and Tuple and Dict of these work")


# ---- the same of many instances at a time: put(bytes, floats, batch), and a function from choices and numbers (n, heads) ----

def observations(space, keep=None, first=()):
    if keep is None:
        keep, first = keeps_bytes(space), [True]
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        parts = [(key, observation(inner, [], keep=keep)[0], observations(inner, keep, first)) for key, inner in parts_of(space)]
        places, _ = parts_in([size for _, size, _ in parts])

        def put_parts(narrow, wide, x):
            for (key, size, put), (a, b) in zip(parts, places):
                if sum(size) > 0:
                    put(narrow[:, a], wide[:, b], x[key])
        return put_parts
    if isinstance(space, (spaces.Discrete, spaces.MultiDiscrete)):
        sizes = np.array(space.n if isinstance(space, spaces.Discrete) else space.nvec).reshape(-1)
        start, firsts = np.array(getattr(space, "start", 0)).reshape(-1), np.concatenate(([0], np.cumsum(sizes)[:-1]))

        def put_flags(_, rows, x):
            x = np.asarray(x).reshape(len(rows), -1)
            flags = x - start
            if x.dtype.kind not in WHOLE or x.shape[1] != len(sizes) or (flags < 0).any() or (flags >= sizes).any():
                raise ValueError(f"observations are {x.tolist()!s:.100}, which their space does not hold")
            rows[:] = 0
            rows[np.arange(len(rows))[:, None], firsts + flags] = 1
        return put_flags
    turns, kept, shape = axes_of(space, keep, first) is not None, keep and is_bytes(space), tuple(space.shape)
    flat = len(shape) == 1
    scale = 1 / TASK["byte_scale"] if is_bytes(space) and not keep else None

    def put(narrow, wide, x):
        x, rows = x if type(x) is np.ndarray else np.asarray(x), narrow if kept else wide
        if x.shape != (len(rows), *shape) or x.dtype.kind not in REAL:
            raise unfit(x, (len(rows), *shape), "s have", f"{len(rows)} of their space")
        if kept and x.dtype != np.uint8:
            x = as_bytes(x, "s")
        rows[:] = x if flat else (x.transpose(0, 2, 3, 1) if turns else x).reshape(len(x), -1)
        if scale:
            np.multiply(rows, scale, out=rows)
    return put


def actions(space, heads):
    at = len(heads)
    if isinstance(space, (spaces.Tuple, spaces.Dict)):
        named = [(key, actions(inner, heads)) for key, inner in (space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces))]
        if isinstance(space, spaces.Dict):
            return lambda choices, reals: {key: part(choices, reals) for key, part in named}
        return lambda choices, reals: tuple(part(choices, reals) for _, part in named)
    action(space, heads)  # which refuses what cannot be trained
    end, dtype, shape, start = len(heads), space.dtype, space.shape, getattr(space, "start", 0)
    if isinstance(space, spaces.Box):
        if dtype.kind in WHOLE:
            return lambda choices, reals: np.rint(reals[:, at:end]).astype(dtype).reshape(-1, *shape)
        return lambda choices, reals: reals[:, at:end].astype(dtype).reshape(-1, *shape)
    if isinstance(space, spaces.Discrete) and start == 0:  # the quick way, of what is most common
        return lambda choices, reals: choices[:, at].astype(dtype)
    return lambda choices, reals: (choices[:, at:end].reshape(-1, *shape) + start).astype(dtype)
