"""The tables of README.md and docs, written from result files: no number is typed by hand."""

import itertools
import json
import math
import re

from testing.measures import BOUNDS

MARKED = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def write(pages, results):
    for page in pages:
        written, count = filled(page.read_text(), results)
        page.write_text(written)
        print(f"{page.name}: {count} tables written")


def filled(page, results):
    """The text of a page with its tables, and their number.

    A table is what is between `<!-- table: NAME -->` and `<!-- end of table -->`. It stays empty
    if one of its result files is missing.
    """

    def table(match):
        lines, *sources = TABLES[match[2]]
        paths = [results / source for source in sources]
        content = ()
        if all(path.exists() for path in paths):
            content = lines(*(json.loads(path.read_text()) for path in paths))
        return match[1] + "\n".join([*content, match[3]])

    return MARKED.subn(table, page)


# ---- the README, and the summary of docs/benchmarks.md ----


def _reasons(cpu, dense):
    """Three reasons, with a number each."""
    n = 4096
    (case,) = _found(dense, {"group": "all vectors", "rows": n})
    best = min(peer["median"] for peer in case["peers"].values())
    yield (
        f"- **Fast on a GPU.** A dense matrix of order {n:,} takes {_seconds(case['median'])} on an"
        f" {_gpu(dense)}: **{_times(best / case['median'])}** as fast as cuSOLVER's fastest method."
    )
    n = 1000
    (case,) = _found(cpu, {"group": "vectors", "family": "chi", "n": n})
    found = {c["name"]: c["median"] for c in case["contenders"]}
    ours = found["tsvd.svd, dc"]
    yield (
        f"- **Fast on a CPU.** A bidiagonal matrix of order {n:,} takes {_seconds(ours)}:"
        f" **{_times(found['numpy.linalg.svd'] / ours)}** as fast as `numpy.linalg.svd`, which"
        " takes it as a dense one."
    )
    errors = [
        contender["values"]
        for case in _found(cpu, {"group": "vectors", "n": 500})
        for contender in case["contenders"]
        if contender["name"] == "tsvd.svd, dc"
    ]
    yield (
        "- **Accurate.** The singular values of bidiagonal matrices, however small, had relative"
        f" errors of **{_number(max(errors))} ε** at most (ε = 2⁻⁵²). `numpy.linalg.svd` gets the"
        " small ones wrong."
    )


def _summary(cpu, vectors, batch, values, dense_cpu, dense):
    """Some lines of the tables of docs/benchmarks.md. A case that was not measured is left out."""
    yield from _header("task", "tsvd", "peer", "peer / tsvd")
    for group, n, count, ours, name, peer in (
        ("vectors", 1000, 1, "tsvd.svd, dc", "numpy.linalg.svd", "`numpy.linalg.svd(B)`"),
        ("vectors", 1000, 1, "tsvd.svd, dc", "dbdsdc", "LAPACK's dbdsdc"),
        ("values", 1000, 1, "tsvd.svdvals", "dbdsqr, values only", "LAPACK's dbdsqr"),
        ("small", 8, 10_000, "tsvd.svd", "numpy.linalg.svd", "`numpy.linalg.svd(B)`"),
    ):
        wanted = {"group": group, "family": "chi", "n": n, "batch": count}
        for record in _found(cpu, wanted):
            times = {c["name"]: c["median"] for c in record["contenders"]}
            task = f"CPU: {_count(count, n)}{', s alone' if group == 'values' else ''}"
            yield _compared(task, times[ours], peer, times[name])
    for case in _found(vectors, {"family": "chi", "n": 8192}):
        seconds = case["peers"].get("gesvdj", {}).get("seconds")
        if seconds:
            task = f"{_gpu(vectors)}: {_count(1, case['n'])}"
            yield _compared(task, case["device"], "cuSOLVER's gesvdj", seconds)
    for case in _found(values, {"family": "chi", "n": 10_000, "k": None, "dtype": "float64"}):
        if "lapack" in case:
            task = f"{_gpu(values)}: {_count(1, case['n'])}, s alone"
            peer = "LAPACK's dbdsqr, on the CPU"
            yield _compared(task, case["seconds"], peer, case["lapack"])
    for case in _found(batch, {"family": "uniform", "n": 32, "dtype": "float64"}):
        if "seconds" in case.get("peer", {}):
            task = f"{_gpu(batch)}: {_count(case['count'], case['n'])}"
            seconds = case["peer"]["seconds"]
            yield _compared(task, case["device"], "PyTorch's batched SVD", seconds)
    for content, place, n, name, peer in (
        (dense_cpu, "CPU", 1000, "numpy.linalg.svd", "`numpy.linalg.svd`"),
        (dense, _gpu(dense), 4096, "gesvdp", "cuSOLVER's gesvdp"),
    ):
        for case in _found(content, {"group": "all vectors", "rows": n}):
            seconds = case["peers"].get(name, {}).get("median")
            if seconds:
                task = f"{place}: dense, {_count(1, n)}"
                yield _compared(task, case["median"], peer, seconds)
    yield f"\nCPU: {cpu['threads']} threads of {cpu['machine']['cpu']}. GPU: one of the named kind."


def _gpu(content):
    """NVIDIA's name of the GPU, without the kind of its memory."""
    return " ".join(content["machine"]["gpus"][0].split()[:2])


def _found(content, wanted):
    return [c for c in content["cases"] if all(c[key] == wanted[key] for key in wanted)]


def _count(count, n):
    return f"{count:,} matrices, n = {n}" if count > 1 else f"n = {n:,}"


def _compared(task, ours, peer, seconds):
    return _row(task, _seconds(ours), f"{peer}: {_seconds(seconds)}", _times(seconds / ours))


# ---- the CPU ----


def _cases(group, cell, orders=None):
    """A line for each case of the group (of these orders only), a column for each contender."""

    def lines(content):
        records = [
            record
            for record in content["cases"]
            if record["group"] == group and (orders is None or record["n"] in orders)
        ]
        if not records:
            return
        names = list(dict.fromkeys(c["name"] for r in records for c in r["contenders"]))
        yield from _header("matrix", "n", *names)
        for record in records:
            found = {contender["name"]: contender for contender in record["contenders"]}
            cells = (cell(found[name]) if name in found else "" for name in names)
            yield _row(record["family"], _size(record), *cells)

    return lines


def _time(contender):
    time = _seconds(contender["median"])
    return time if contender["ratio"] == 1 else f"{time} ({_times(contender['ratio'])})"


def _errors(case):
    keys = ("residual", "orthogonality", "values")
    return " / ".join(_number(case[key]) for key in keys if key in case)


def _size(record):
    return f"{record['batch']:,} × {record['n']}" if record["batch"] > 1 else f"{record['n']:,}"


def _measured(content):
    machine, versions, sources = (content[key] for key in ("machine", "versions", "sources"))
    changed = " with changes" if sources["dirty"] else ""
    yield f"{machine['cpu']}, {content['threads']} threads, load {content['load']:.1f} before;"
    yield f"NumPy {versions['numpy']} ({versions['numpy_blas']}),"
    yield f"SciPy {versions['scipy']} ({versions['scipy_blas']});"
    yield f"{content['date'][:10]}; git tree of `csrc` `{sources['csrc'][:12]}`{changed}."


# ---- the GPU ----


def _device_vectors(content):
    """Times on the device and end to end, beside the floors and copies of the same run."""
    yield from _header(
        "matrix", "n", "on the device", "device / floor", "end to end", "download / copies",
        "deflated / n", "residual / orthogonality",
    )  # fmt: skip
    for case in content["cases"]:
        where = case["family"], f"{case['n']:,}"
        if "skipped" in case:
            yield _row(*where, _note(case["skipped"]), "", "", "", "", "")
            continue
        yield _row(
            *where,
            _seconds(case["device"]),
            _number(case["device"] / case["floor"]),
            _seconds(case["end_to_end"]),
            _number((case["end_to_end"] - case["device"]) / case["copies"]),
            f"{case['deflated'] / case['n']:.2f}",
            _errors(case),
        )


def _peers(content):
    names = ("gesvdj", "gesvd", "dbdsdc")
    yield from _header(
        "matrix", "n", "tsvd, device", "gesvdj", "gesvd", "tsvd, end to end",
        f"dbdsdc, {content['threads']} threads",
    )  # fmt: skip
    for case in content["cases"]:
        if case["peers"]:
            gesvdj, gesvd, dbdsdc = (_peer(case["peers"].get(name, {})) for name in names)
            device, end_to_end = (_seconds(case[key]) for key in ("device", "end_to_end"))
            where = case["family"], f"{case['n']:,}"
            yield _row(*where, device, gesvdj, gesvd, end_to_end, dbdsdc)


def _peer(peer):
    if "seconds" in peer:
        return f"{_seconds(peer['seconds'])} ({_times(peer['ratio'])})"
    return _note(peer.get("note", ""))


def _device_values(content):
    """A line for both types; the error is the larger of the two."""
    yield from _header(
        "matrix", "n", "values", "float64", "float32", "dbdsqr, float64", "error, ulps",
        "device memory, float64",
    )  # fmt: skip
    for case in content["cases"]:
        if case["dtype"] != "float64":
            continue
        single = next(
            other
            for other in content["cases"]
            if other["dtype"] == "float32"
            and all(other[key] == case[key] for key in ("family", "n", "k"))
        )
        both = (case, single)
        own = (_note(c["skipped"]) if "skipped" in c else _seconds(c["seconds"]) for c in both)
        peer = _note(case.get("lapack_note", ""))
        if "lapack" in case:
            peer = f"{_seconds(case['lapack'])} ({_times(case['lapack'] / case['seconds'])})"
        # The result file has errors as shares of their bound.
        errors = [c["error"] * BOUNDS["values bisect"](c["n"]) for c in both if "error" in c]
        error = _number(max(errors)) if errors else ""
        memory = f"{case['memory'] / 1e6:,.0f} MB" if case.get("memory") else ""
        values = f"the {case['k']} largest" if case["k"] else "all"
        yield _row(case["family"], f"{case['n']:,}", values, *own, peer, error, memory)


def _device_select(content):
    n, k = content["n"], content["k"]
    yield from _header(
        f"matrix, n = {n:,}", "dtype", f"{k} largest, device", "all, device",
        f"{k} largest, end to end", "all, end to end", "residual / orthogonality / values",
    )  # fmt: skip
    for case in content["cases"]:
        cells = []
        for key in ("device", "end_to_end"):
            part, whole = case[f"part_{key}"], case[f"whole_{key}"]
            cells += [f"{_seconds(part)} ({_number(part / whole)} of all)", _seconds(whole)]
        yield _row(case["family"], case["dtype"], *cells, _errors(case))


def _extra(content):
    """Times of square matrices, and those of the others over them."""
    yield from _header(
        "matrices", "arrays", "n × n", "n × (n + 1)", "(n + 1) × n", "values: n × n", "n × (n + 1)"
    )
    for case in content["cases"]:
        yield _row(
            f"{case['matrices']:,} × {case['n']:,}",
            "host" if case["where"] == "cpu" else case["where"],
            _seconds(case["square"]),
            *(_times(case[form] / case["square"]) for form in ("upper", "lower")),
            _seconds(case["values_square"]),
            _times(case["values_upper"] / case["values_square"]),
        )


def _device_batch(content):
    yield from _header(
        "matrices", "family", "dtype", "on the device", "end to end", "s alone, end to end",
        f"{content['library'].split()[0]}, device", "residual / orthogonality / values",
    )  # fmt: skip
    for case in content["cases"]:
        where = f"{case['count']:,} × {case['n']}", case["family"], case["dtype"]
        if "skipped" in case:
            yield _row(*where, _note(case["skipped"]), "", "", "", "")
            continue
        peer = case.get("peer", {})
        said = _peer(peer)
        if peer.get("count", case["count"]) < case["count"]:
            said += f", from {peer['count']:,} of them"
        times = (_seconds(case[key]) for key in ("device", "end_to_end", "values_end_to_end"))
        yield _row(*where, *times, said, _errors(case))


def _transfers(content):
    """A line for each case: the whole call, its work on the device, and the target."""
    yield from _header("case", "end to end", "on the device", "target")
    for case in content["cases"]:
        device = _seconds(case["device"]) if case["device"] else ""
        target = _seconds(case["target"]) if case["target"] else ""
        yield _row(case["what"], _seconds(case["end_to_end"]), device, target)


def _twisted(content):
    """A line for each case that has a target: the call, divide and conquer, and the target."""
    yield from _header("matrix", "n", "what", "time", "dc", "target", "orthogonality")
    names = {
        "single": "all values, on the device",
        "range": "100 largest, on the device",
        "values": "values alone, on the device",
        "touched": "end to end, touched",
        "fresh": "end to end, fresh",
    }
    for case in content["cases"]:
        group, _, single = case["group"].partition(", ")
        if group in names:
            time = case["end_to_end" if group in ("touched", "fresh") else "device"]
            yield _row(
                case["family"],
                f"{case['n']:,}",
                names[group] + (single and f", {single}"),
                _seconds(time) if time else "out of memory",
                _seconds(case["dc"]) if "dc" in case else "",
                _seconds(case["target"]),
                _number(case["orthogonality"]) if "orthogonality" in case else "",
            )


def _dense(content):
    """A line for each case, a column for each peer."""
    peers = list(dict.fromkeys(name for case in content["cases"] for name in case["peers"]))
    yield from _header("matrix", "tsvd", "target", *peers, "residual / orthogonality")
    for case in content["cases"]:
        target = case["target"]
        if target is None:
            target = ""
        else:
            on_cpu = content["device"] == "cpu"
            target = f"peer / {_number(target, 3)}" if on_cpu else _seconds(target)
        beside = (
            _dense_peer(case["peers"][name]) if name in case["peers"] else "" for name in peers
        )
        yield _row(case["what"], _seconds(case["median"]), target, *beside, _errors(case))


def _inverse(content):
    """The same; of inverses there is a residual alone."""
    first, *lines = _dense(content)
    yield first.replace("residual / orthogonality", "residual")
    yield from lines


def _solutions(content):
    """A line for each case; errors are those of solutions that are known."""
    peer = "NumPy" if content["device"] == "cpu" else "PyTorch"
    yield from _header("task", "tsvd", "over values", peer, "target", "error", f"{peer}'s error")
    for case in content["cases"]:
        targets = []
        if case["over_values"]:
            targets.append(f"≤ {_number(case['over_values'], 3)} of values")
        if case["ahead"]:
            targets.append(f"{peer} / {_number(case['ahead'], 3)}")
        beside = ""
        if "peer" in case:
            beside = f"{_seconds(case['peer'])} ({_times(case['peer'] / case['tsvd'])})"
        yield _row(
            case["what"],
            _seconds(case["tsvd"]),
            _times(case["tsvd"] / case["values"]),
            beside,
            ", ".join(targets),
            *(_number(case[key]) if key in case else "" for key in ("tsvd_error", "peer_error")),
        )


def _pytorch(content):
    """A line for each decomposition: the ways to it, and what the way through PyTorch costs."""
    yield from _header("torch.linalg.svd", "PyTorch", "enabled", "ahead", "tsvd.linalg", "over it")
    for case in content["cases"]:
        yield _row(
            case["what"],
            _seconds(case["torch"]),
            _seconds(case["enabled"]),
            _times(case["torch"] / case["enabled"]),
            _seconds(case["tsvd"]),
            f"{case['enabled'] / case['tsvd']:.2f}×",
        )


def _steps(content):
    yield from _header("step of training", "PyTorch", "enabled", "ahead")
    for case in content["steps"]:
        ahead = _times(case["torch"] / case["enabled"])
        yield _row(case["what"], _seconds(case["torch"]), _seconds(case["enabled"]), ahead)


def _sharded(content):
    yield from _header("batch", "one GPU", f"{content['devices']} GPUs", "ahead")
    for case in content["cases"]:
        ahead = f"{case['one'] / case['all']:.2f}×"
        yield _row(case["what"], _seconds(case["one"]), _seconds(case["all"]), ahead)


def _several(content):
    devices = content["devices"]
    yield from _header("matrices", "one GPU", "with `out`", f"{devices} GPUs", "ahead", "target")
    targets = {bar["what"]: bar["asked"] for bar in content["bars"]}
    for case in content["cases"]:
        times = [_seconds(case[key]) if key in case else "" for key in ("one", "one_given", "all")]
        target = targets.get(f"{case['what']}: one / all")
        ahead = f"{case['one'] / case['all']:.2f}×"
        yield _row(case["what"], *times, ahead, "" if target is None else f"{target:g}×")
    for case in content.get("larger", ()):
        one = "does not fit" if "one_error" in case else ""
        yield _row(case["what"], one, "", _seconds(case["all"]), "", "")


def _small(content):
    """A line for each case; the time of a batch is that of one of its matrices on the CPU, and of
    all of them on the GPU.
    """
    on_cpu = content["device"] == "cpu"
    peer = "NumPy" if on_cpu else "PyTorch"
    others = {(case["group"], case["what"]): case["peers"] for case in content.get("others", ())}
    names = list(dict.fromkeys(name for peers in others.values() for name in peers))
    columns = [f"{name} / tsvd" for name in names]
    yield from _header("task", "tsvd", peer, f"{peer} / tsvd", "target", *columns)
    for case in content["cases"]:
        [other] = case["peers"].values()
        inverse = "inverse, " if case["group"] == "inverse" else ""
        times, target, ratio = [case["median"], other.get("median")], "", other.get("ratio")
        if on_cpu:
            each = max(case["batch"], 1)
            times = [f"{_number(x / each * 1e6, 3)} µs" for x in times]
            target = f"≥ {_number(case['target'], 3)}" if case["target"] else ""
        else:
            times = [_seconds(x) if x else "" for x in times]
            target = f"≤ {_seconds(case['target'])}" if case["target"] else ""
            target = "≥ 1.11" if case["group"] == "one" else target
        beside = others.get((case["group"], case["what"]), {})
        ratios = [beside.get(name, {}).get("ratio") for name in names]
        ratio, *ratios = (_number(x, 3) if x else "" for x in (ratio, *ratios))
        yield _row(inverse + case["what"], *times, ratio, target, *ratios)


def _complex(content):
    """The same, of decompositions and of inverses, which have no group."""
    cases = [
        case if "group" in case else case | {"what": f"inverse, {case['what']}"}
        for case in content["cases"]
    ]
    yield from _dense(content | {"cases": cases})


def _stages(content):
    """A line for each stage and order; floors are those of what is made of products."""
    yield from _header("n", "stage", "time", "floor", "time / floor")
    for row in content["stages"]:
        floor = row["floor"]
        ratio = "" if floor is None else _number(row["median"] / floor, 3)
        yield _row(
            f"{row['n']:,}",
            row["stage"],
            _seconds(row["median"]),
            "" if floor is None else _seconds(floor),
            ratio,
        )


def _truncations(content):
    """A line for each task; errors are those of the product of what is kept."""
    peers = list(dict.fromkeys(name for row in content["truncations"] for name in row["peers"]))
    yield from _header("task", "tsvd", *peers, "error / eps")
    for row in content["truncations"]:
        beside = (_dense_peer(row["peers"][name]) if name in row["peers"] else "" for name in peers)
        yield _row(row["what"], _seconds(row["median"]), *beside, _number(row["error"]))


def _jacobi_known(content):
    """A line for each matrix whose values are known."""
    peers = list(dict.fromkeys(name for row in content["known"] for name in row["errors"]))
    yield from _header("matrix", *peers)
    for row in content["known"]:
        errors = (_number(row["errors"][name]) if name in row["errors"] else "" for name in peers)
        yield _row(f"n = {row['order']:,}, {row['dtype']}", *errors)


def _krylov(content):
    """A line for each matrix, a column for each contender: time, residual, and what it missed."""
    names = list(dict.fromkeys(name for case in content["cases"] for name in case["contenders"]))
    yield from _header("matrix", "k", *names)
    for case in content["cases"]:
        size = f"{case['what']}, {case['rows']:,} × {case['columns']:,}"
        cells = (_krylov_cell(case["contenders"][name]) for name in names)
        yield _row(size, case["k"], *cells)


def _krylov_cell(found):
    if "note" in found:
        return f"{_seconds(found['median'])}, {found['note']}"
    missed = f", **{found['missed']} missed**" if found["missed"] else ""
    return f"{_seconds(found['median'])}, {_number(found['residual'])}{missed}"


def _krylov_searches(content):
    """A line for each matrix: the runs in which a contender misses a value."""
    names = list(dict.fromkeys(n for case in content["searches"] for n in case["contenders"]))
    yield from _header("matrix", "k", *names)
    for case in content["searches"]:
        cells = (
            f"{found['wrong']} of {case['runs']} wrong, {_seconds(found['median'])}"
            for found in (case["contenders"][name] for name in names)
        )
        yield _row(case["what"], case["k"], *cells)


def _dask(content):
    """A line for each matrix and contender: time, accuracy, and relative errors of values."""
    yield from _header("matrix", "call", "time", "residual", "orthogonality", "values")
    for case in content["cases"]:
        size = f"{case['what']}, {case['rows']:,} × {case['columns']:,}"
        for name, found in case["contenders"].items():
            numbers = (_number(found[key]) for key in ("residual", "orthogonality", "values"))
            yield _row(size, name, _seconds(found["median"]), *numbers)
            size = ""


def _dense_peer(peer):
    if "median" not in peer:
        return _note(peer["note"])
    said = f"{_seconds(peer['median'])} ({_times(peer['ratio'])})"
    lost = peer.get("orthogonality", 0) > BOUNDS["orthogonality"](0)
    return f"{said}, orthogonality {_number(peer['orthogonality'])}" if lost else said


def _eps(content):
    """A line for each matrix, a column for each eps: time, deflated / n, error / eps."""
    columns = list(dict.fromkeys(row["eps"] for row in content["rows"]))
    yield from _header("matrix", "n", *map(_power, columns))
    for family, n in dict.fromkeys((row["family"], row["n"]) for row in content["rows"]):
        found = {r["eps"]: r for r in content["rows"] if (r["family"], r["n"]) == (family, n)}
        yield _row(family, f"{n:,}", *(_eps_cell(found[eps]) for eps in columns))


def _eps_cell(row):
    error = "" if row["eps"] is None else f" / {_number(row['max_error_in_eps'])}"
    return f"{_seconds(row['seconds'])} / {row['deflated'] / row['n']:.2f}{error}"


def _sweep(content):
    """A line for each curve: its worst step or drop, and the worst time beside the cube."""
    yield from _header("call", "dtype", "sizes", "worst step", "where", "beside the cube", "where")
    for case in content["cases"]:
        sizes = case["sizes"]
        covered = f"{case['axis']} = {sizes[0]:,} to {sizes[-1]:,}" if sizes else "none"
        steps = (
            (f"{step['times']:.2f}×", f"{step['from']:,} to {step['to']:,}") if step else ("", "")
            for step in (case["worst"], case["cube"])
        )
        what = f"{case['group']}: {case['what']}"
        yield _row(what, case["dtype"], covered, *itertools.chain(*steps))


def _cube(content):
    """A line for each size, and one for the peer."""
    yield from _header("n", "dtype", "values alone", "beside the cube of half the size")
    for case in content["cases"]:
        where = f"{case['n']:,}", case["dtype"]
        if case["note"]:
            yield _row(*where, _note(case["note"]), "")
        else:
            yield _row(*where, _seconds(case["seconds"]), _times(case["over_cube"]))
    for peer in content["peers"]:
        ours, theirs = (_seconds(peer[x]) if x in peer else "" for x in ("vectors", "gesvdp"))
        said = f"\nWith all vectors n = {peer['n']:,} takes {ours}, cuSOLVER's gesvdp {theirs}."
        yield said if ours and theirs else f"\ngesvdp: {_note(peer['note'] or '')}"


def _measured_gpu(content):
    machine, cuda = content["machine"], content["versions"]["tsvd_config"]["CUDA"]
    counts = content.get("tests") or {}
    tests = ", ".join(f"{n:,} {word}" for word, n in counts.items() if word != "deselected")
    yield f"{machine['gpus'][0]}, driver {machine['driver']}, CUDA {cuda['runtime']};"
    yield f"{content['date'][:10]}; {_trees(content)}{f'; tests: {tests}' if tests else ''}."


def _measured_library(content):
    """With the library that calls tsvd."""
    yield f"{content['library']};"
    yield from _measured_gpu(content)


def _measured_vectors(content):
    rates = content["rates"]
    yield f"{content['library']}: products of order {rates['gemm_order']:,} at"
    yield f"{rates['gemm'] / 1e12:.1f} TFLOP/s, pinned copies at"
    yield f"{max(rates['pinned'].values()) / 1e9:.1f} GB/s; {content['threads']} threads of"
    yield f"{content['machine']['cpu']};"
    yield from _measured_gpu(content)


def _trees(content):
    sources = content["sources"]
    trees = " and ".join(f"`{folder}` `{sources[folder][:12]}`" for folder in ("csrc", "cuda"))
    return f"git trees of {trees}{' with changes' if sources['dirty'] else ''}"


# ---- the pipeline of Givens rotations ----


def _givens(content):
    yield from _header(
        "n", "range", "tsvd", "of which iteration", "published kernel, same GPU",
        "published, GTX 1660 Ti", "error / eps", "orthogonality",
    )  # fmt: skip
    for case in content["cases"]:
        same_card = case["same_card_note"] or ""
        if case["same_card"]:
            same_card = _seconds(case["same_card"])
        where = f"{case['n']:,}", case["range"]
        peers = same_card, _seconds(case["published"])
        if "failed" in case:
            yield _row(*where, "not converged", "", *peers, "", "")
        else:
            yield _row(
                *where,
                _seconds(case["seconds"]),
                _seconds(case["iterate"]),
                *peers,
                f"{case['max_error_in_eps']:.2f}",
                f"{case['orthogonality']:.2f}",
            )


def _downloads(content):
    yield from _header("n", "L and R, MB", "download", "GB/s", "pinned copy, GB/s", "ratio")
    for row in content["downloads"]:
        yield _row(
            f"{row['n']:,}",
            f"{row['bytes'] / 1e6:,.0f}",
            _seconds(row["seconds"]),
            f"{row['rate'] / 1e9:.1f}",
            f"{row['pinned_rate'] / 1e9:.1f}",
            f"{row['ratio']:.2f}",
        )


def _published(content):
    yield from _header(
        "n", "range", "eps", "iterations: published", "published kernel, rebuilt", "tsvd",
        "error / eps: published", "tsvd",
    )  # fmt: skip
    for row in content["by_size"] + content["by_eps"]:
        rebuilt, error = row["remade_iterations"], row["published_error"]
        yield _row(
            row["n"],
            row["range"],
            _power(row["eps"]),
            f"{row['published_iterations']:,}",
            "" if rebuilt is None else f"{rebuilt:,}",
            f"{row['iterations']:,.0f}",
            "" if error is None else _number(error / row["eps"], 1),
            _number(row["max_error_in_eps"]),
        )


def _published_dense(content):
    if "dense" not in content:
        return
    yield from _header(
        "n", "method", "bidiagonalisation: published", "tsvd", "diagonalisation: published", "tsvd",
        "in all: published", "tsvd", "residual / orthogonality",
    )  # fmt: skip
    for row in content["dense"]:
        cells = []
        for part in ("bidiagonalisation", "diagonalisation", "total"):
            ours = _seconds(row[part]) if part in row else ""
            cells += [_seconds(row[f"published_{part}"]), ours]
        yield _row(row["n"], row["method"], *cells, _errors(row))


# The tables of a study: experiment -> what is said above it, and which of our times stand in it.
EXPERIMENTS = {
    "cpu_gpu_cusolver": (
        "The authors' program on the CPU, its first version for the GPU, and cuSOLVER",
        ("cpu", "host", "device", "cusolver"),
    ),
    "memory": (
        "Kinds of memory, with 32 threads",
        ("cpu", "managed_with_host", "managed", "device", "host"),
    ),
    "blocks_x_threads": ("Blocks × threads", ("cpu", "device", "batch", "auto")),
    "loop_step": ("Steps of the loops, with 256 threads", ("cpu", "device", "auto")),
    "cpu": ("The authors' program on the CPU", ("cpu", "host", "device")),
    "gpu_by_grid_and_block": (
        "Grid × block",
        ("cpu", "managed_with_host", "managed", "device", "host"),
    ),
}
OURS = {
    "cpu": "on the CPU",
    "host": "host arrays",
    "device": "device arrays",
    "managed": "managed arrays",
    "managed_with_host": "managed arrays, host access",
    "batch": "one of a batch",
    "auto": '`"auto"`',
    "cusolver": "cuSOLVER here",
}


def _published_study(study):
    """A table for each experiment of the study: the published settings, then ours."""

    def lines(content):
        rows = content.get(study, ())
        for experiment in dict.fromkeys(name for row in rows for name in row["published"]):
            yield from _experiment(experiment, [r for r in rows if experiment in r["published"]])

    return lines


def _experiment(name, rows):
    what, kinds = EXPERIMENTS[name]
    timed = {kind for row in rows for part in ("seconds", "refused") for kind in row.get(part, ())}
    kinds = [kind for kind in kinds if kind in timed]
    first, *others = (setting.replace("_", " ") for setting in rows[0]["published"][name])
    by_matrix = len({row["matrix"] for row in rows}) > 1
    yield f"\n{what}:\n"
    yield from _header(
        "n", *(["matrix"] if by_matrix else []), f"published: {first}", *others,
        *(f"{'' if i else 'tsvd: '}{OURS[kind]}" for i, kind in enumerate(kinds)),
        " / ".join(key for key in ("residual", "orthogonality") if any(key in r for r in rows)),
    )  # fmt: skip
    for row in rows:
        yield _row(
            row["n"],
            *([row["matrix"]] if by_matrix else []),
            *map(_seconds, row["published"][name].values()),
            *(_ours(row, kind) for kind in kinds),
            _errors(row),
        )


def _ours(row, kind):
    seconds = row.get("seconds", {})
    if kind in seconds:
        return _seconds(seconds[kind])
    return "refused" if kind in row.get("refused", ()) else ""


# ---- the draws and searches of the verification ----

MEASURES = {
    "max error, eps": r"max \|B − L S R\| with eps",
    "values, devices": "values, CUDA against CPU",
    "values, eps": "values with eps",
}


PLACES = ("method", "family", "n", "rows", "columns", "dtype", "index", "matrix")


def _stress(content):
    worst = sorted(content["worst"].items())
    places = [place for place in PLACES if all(place in found for _, found in worst)]
    yield from _header("measure", "worst / bound", *places)
    for measure, found in worst:
        measure = found.get("measure", measure)
        if found.get("ran", found["method"]) != found["method"]:
            found = found | {"method": f"{found['method']} by {found['ran']}"}
        where = (found[place] for place in places)
        yield _row(MEASURES.get(measure, measure), _number(found["share"]), *where)


def _measured_stress(what):
    def lines(content):
        device, seed = content["device"], content["seed"]
        yield f"{content['draws']:,} {what} on `{device}`, random seed {seed}:"
        yield f"{content['failed']} failed; {content['date'][:10]}; {_trees(content)}."
        if "counts" in content:
            kinds = sorted(content["counts"].items())
            machine, versions = content["machine"], content["versions"]
            yield f"{', '.join(f'{kind}: {count:,}' for kind, count in kinds)}."
            yield f"{machine['cpu']}, {content['threads']} processes; NumPy {versions['numpy']}."

    return lines


# Name -> the function that makes the lines, and the result files that it takes.
TABLES = {
    "reasons": (_reasons, "cpu.json", "dense.json"),
    "summary": (
        _summary,
        *("cpu.json", "vectors.json", "batch.json", "values.json", "dense_cpu.json", "dense.json"),
    ),
    "accuracy_vectors": (_cases("vectors", _errors, orders=[500]), "cpu.json"),
    "accuracy_values": (_cases("values", _errors, orders=[1000]), "cpu.json"),
    "vectors": (_cases("vectors", _time), "cpu.json"),
    "values": (_cases("values", _time), "cpu.json"),
    "small": (_cases("small", _time), "cpu.json"),
    "batch": (_cases("batch", _time), "cpu.json"),
    "measured": (_measured, "cpu.json"),
    "twisted_cpu": (_cases("twisted", _time), "twisted_cpu.json"),
    "measured_twisted_cpu": (_measured, "twisted_cpu.json"),
    "vectors_cuda": (_device_vectors, "vectors.json"),
    "peers_cuda": (_peers, "vectors.json"),
    "measured_vectors": (_measured_vectors, "vectors.json"),
    "values_cuda": (_device_values, "values.json"),
    "measured_values": (_measured_gpu, "values.json"),
    "select_cuda": (_device_select, "select.json"),
    "measured_select": (_measured_gpu, "select.json"),
    "extra_cpu": (_extra, "extra_cpu.json"),
    "measured_extra_cpu": (_measured, "extra_cpu.json"),
    "extra_cuda": (_extra, "extra.json"),
    "measured_extra_cuda": (_measured_gpu, "extra.json"),
    "batch_cuda": (_device_batch, "batch.json"),
    "measured_batch": (_measured_gpu, "batch.json"),
    "transfers": (_transfers, "transfers.json"),
    "measured_transfers": (_measured_gpu, "transfers.json"),
    "twisted": (_twisted, "twisted.json"),
    "measured_twisted": (_measured_gpu, "twisted.json"),
    "dense_cpu": (_dense, "dense_cpu.json"),
    "measured_dense_cpu": (_measured, "dense_cpu.json"),
    "dense_cuda": (_dense, "dense.json"),
    "measured_dense_cuda": (_measured_gpu, "dense.json"),
    "krylov": (_krylov, "krylov_cpu.json"),
    "krylov_searches": (_krylov_searches, "krylov_cpu.json"),
    "measured_krylov": (_measured, "krylov_cpu.json"),
    "dask": (_dask, "dask_cpu.json"),
    "measured_dask": (_measured, "dask_cpu.json"),
    "complex_cpu": (_complex, "complex_cpu.json"),
    "measured_complex_cpu": (_measured, "complex_cpu.json"),
    "complex_cuda": (_complex, "complex.json"),
    "truncations_cuda": (_truncations, "complex.json"),
    "measured_complex_cuda": (_measured_gpu, "complex.json"),
    "stages_cuda": (_dense, "stages.json"),
    "stage_seconds_cuda": (_stages, "stages.json"),
    "measured_stages_cuda": (_measured_gpu, "stages.json"),
    "jacobi_cpu": (_dense, "jacobi_cpu.json"),
    "jacobi_known_cpu": (_jacobi_known, "jacobi_cpu.json"),
    "measured_jacobi_cpu": (_measured, "jacobi_cpu.json"),
    "jacobi_cuda": (_dense, "jacobi.json"),
    "jacobi_known_cuda": (_jacobi_known, "jacobi.json"),
    "measured_jacobi_cuda": (_measured_gpu, "jacobi.json"),
    "small_cpu": (_small, "small_cpu.json"),
    "measured_small_cpu": (_measured, "small_cpu.json"),
    "small_cuda": (_small, "small.json"),
    "measured_small_cuda": (_measured_gpu, "small.json"),
    "inverse_cpu": (_inverse, "inverse_cpu.json"),
    "measured_inverse_cpu": (_measured, "inverse_cpu.json"),
    "inverse_cuda": (_inverse, "inverse.json"),
    "pytorch_cuda": (_pytorch, "pytorch.json"),
    "pytorch_steps_cuda": (_steps, "pytorch.json"),
    "measured_pytorch_cuda": (_measured_library, "pytorch.json"),
    "sharded": (_sharded, "sharded.json"),
    "measured_sharded": (_measured_gpu, "sharded.json"),
    "several": (_several, "several.json"),
    "measured_several": (_measured_gpu, "several.json"),
    "solutions_cpu": (_solutions, "solutions_cpu.json"),
    "measured_solutions_cpu": (_measured, "solutions_cpu.json"),
    "solutions_cuda": (_solutions, "solutions.json"),
    "measured_solutions_cuda": (_measured_gpu, "solutions.json"),
    "measured_inverse_cuda": (_measured_gpu, "inverse.json"),
    "eps_cuda": (_eps, "eps_cuda.json"),
    "measured_eps": (_measured_gpu, "eps_cuda.json"),
    "sweep_cpu": (_sweep, "sweep_cpu.json"),
    "measured_sweep_cpu": (_measured, "sweep_cpu.json"),
    "sweep_cuda": (_sweep, "sweep_cuda.json"),
    "measured_sweep_cuda": (_measured_gpu, "sweep_cuda.json"),
    "cube_cuda": (_cube, "cube_cuda.json"),
    "measured_cube_cuda": (_measured_gpu, "cube_cuda.json"),
    "givens_cuda": (_givens, "gpu.json"),
    "downloads": (_downloads, "gpu.json"),
    "measured_givens": (_measured_gpu, "gpu.json"),
    "published": (_published, "published.json"),
    "measured_published": (_measured, "published.json"),
    "published_dense": (_published_dense, "published.json"),
    "published_dense_cuda": (_published_dense, "published_cuda.json"),
    "published_jacobi": (_published_study("jacobi"), "published.json"),
    "published_inverse": (_published_study("inverse"), "published.json"),
    "published_jacobi_cuda": (_published_study("jacobi"), "published_cuda.json"),
    "published_inverse_cuda": (_published_study("inverse"), "published_cuda.json"),
    "measured_published_cuda": (_measured_gpu, "published_cuda.json"),
}

# The result files of the verification, and what they count.
STRESS = {
    "stress_cpu": "draws",
    "stress_small_cpu": "small matrices",
    "stress_lanes_cpu": "small dense matrices",
    "stress_tiny_cuda": "small dense matrices",
    "stress_dense_cpu": "dense draws",
    "stress_stages_2_cpu": "dense draws",
    "stress_stages_2_cuda": "dense draws",
    "stress_jacobi_cpu": "dense draws",
    "stress_evolve_cpu": "evaluations",
    "stress_evolve_dense_cpu": "evaluations",
    "stress_evolve_stages_cpu": "evaluations",
    "stress_evolve_stages_cuda": "evaluations",
    "stress_evolve_jacobi_cpu": "evaluations",
    "stress_inverse_cpu": "inverses",
    "stress_krylov_cpu": "draws for svds",
    "stress_cuda": "draws",
    "stress_twisted_cuda": "draws",
}
for name, what in STRESS.items():
    TABLES[name] = _stress, f"{name}.json"
    TABLES[f"measured_{name}"] = _measured_stress(what), f"{name}.json"


# ---- numbers and lines ----

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _number(x, digits=2):
    """Rounded; with an exponent only if the number is very large or small: 270, 3.3·10¹⁷."""
    if not math.isfinite(x):
        return str(x)
    rounded = float(f"{x:.{digits}g}")
    if rounded == 0 or 1e-6 <= abs(rounded) < 1e7:
        whole, point, decimals = f"{rounded:,.9f}".rstrip("0").partition(".")
        return f"{whole}{point}{decimals}" if decimals else whole
    mantissa, exponent = f"{rounded:e}".split("e")
    return f"{float(mantissa):g}·10{str(int(exponent)).translate(SUPERSCRIPTS)}"


def _times(ratio):
    return f"{_number(ratio)}×"


def _seconds(seconds):
    if seconds >= 1:
        return f"{_number(seconds, 3)} s" if seconds < 1000 else f"{seconds:,.0f} s"
    if seconds >= 1e-3:
        return f"{_number(seconds * 1e3, 3)} ms"
    return f"{_number(seconds * 1e6, 3)} µs"


def _power(eps):
    """eps as it is typed: 1e-8."""
    return "None" if eps is None else f"{eps:.0e}".replace("e-0", "e-")


def _note(text):
    """A note of a result file; its large numbers get commas. Of a library's error the status."""
    failed = re.match(r"failed: .*?\b([A-Z]+_STATUS_[A-Z_]+)", text)
    return re.sub(
        r"\d{4,}", lambda number: f"{int(number[0]):,}", f"failed: {failed[1]}" if failed else text
    )


def _row(*cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _header(*titles):
    return _row(*titles), "|" + "---|" * len(titles)
