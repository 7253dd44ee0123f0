"""The README's tables, each from a result file, so that no number is typed by hand."""

import json
import re

from benchmarks.bars import text

MARKED = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def write_readme(readme, results):
    """Fills everything between `<!-- table: NAME -->` and `<!-- end of table -->`.

    A table whose result file is not there stays empty.
    """

    def table(match):
        source, lines = TABLES[match[2]]
        path = results / source
        content = lines(json.loads(path.read_text())) if path.exists() else ()
        return match[1] + "\n".join([*content, match[3]])

    written, count = MARKED.subn(table, readme.read_text())
    readme.write_text(written)
    print(f"{readme.name}: {count} tables written")


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
    return time if contender["ratio"] == 1 else f"{time} ({contender['ratio']:.2g}×)"


def _errors(contender):
    keys = ("residual", "orthogonality", "values")
    return " / ".join(f"{contender[key]:.2g}" for key in keys if key in contender)


def _published(content):
    yield from _header(
        "n", "range", "eps", "iterations: published", "kernel remade", "tsvd",
        "error: published", "tsvd",
    )  # fmt: skip
    for row in content["by_size"] + content["by_eps"]:
        remade, error = row["remade_iterations"], row["published_error"]
        yield _row(
            row["n"],
            row["range"],
            f"{row['eps']:g}",
            f"{row['published_iterations']:,}",
            "" if remade is None else f"{remade:,}",
            f"{row['iterations']:,.0f}",
            "" if error is None else f"{error:.0e}",
            f"{row['max_error']:.1e}",
        )


def _gpu(content):
    yield from _header(
        "n", "range", "tsvd", "of it iteration", "asked", "published kernel, same card",
        "published", "error / eps", "orthogonality",
    )  # fmt: skip
    for case in content["cases"]:
        same_card = case["same_card_note"] or ""
        if case["same_card"]:
            same_card = _seconds(case["same_card"])
        before = (case["n"], case["range"])
        peers = (_seconds(case["asked"]), same_card, _seconds(case["published"]))
        if "failed" in case:
            yield _row(*before, "not converged", "", *peers, "", "")
        else:
            yield _row(
                *before,
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
            row["n"],
            f"{row['bytes'] / 1e6:,.0f}",
            _seconds(row["seconds"]),
            f"{row['rate'] / 1e9:.1f}",
            f"{row['pinned_rate'] / 1e9:.1f}",
            f"{row['ratio']:.2f}",
        )


def _device_vectors(content):
    """Our times on the device and end to end, against floors and copies of the same run."""
    yield from _header(
        "matrix", "n", "on the device", "/ floor", "end to end", "download / copies",
        "deflated / n", "residual / orthogonality",
    )  # fmt: skip
    for case in content["cases"]:
        if "skipped" in case:
            yield _row(case["family"], case["n"], case["skipped"], "", "", "", "", "")
            continue
        errors = [case[key] for key in ("residual", "orthogonality") if key in case]
        yield _row(
            case["family"],
            case["n"],
            _seconds(case["device"]),
            f"{case['device'] / case['floor']:.2g}",
            _seconds(case["end_to_end"]),
            f"{(case['end_to_end'] - case['device']) / case['copies']:.2g}",
            f"{case['deflated'] / case['n']:.2f}",
            " / ".join(f"{error:.2g}" for error in errors),
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
            yield _row(case["family"], case["n"], device, gesvdj, gesvd, end_to_end, dbdsdc)


def _peer(peer):
    if "seconds" in peer:
        return f"{_seconds(peer['seconds'])} ({peer['ratio']:.2g}×)"
    return peer.get("note", "")


def _bars(content):
    """What is asked of our times and errors; _peers shows what is asked against the peers."""
    yield from _header("asked", "at most", "measured", "")
    for bar in content["bars"]:
        if bar["relation"] == "≤":
            asked, measured = (text(bar[key], bar["unit"]) for key in ("asked", "measured"))
            yield _row(bar["what"], asked, measured, "" if bar["ok"] else "missed")


def _device_values(content):
    yield from _header("matrix", "n", "values", "float64", "float32", "dbdsqr, float64")
    for case in content["cases"]:
        if case["dtype"] != "float64":
            continue
        single = next(
            other
            for other in content["cases"]
            if other["dtype"] == "float32"
            and all(other[key] == case[key] for key in ("family", "n", "k"))
        )
        own = (c.get("skipped") or _seconds(c["seconds"]) for c in (case, single))
        peer = case.get("lapack_note", "")
        if "lapack" in case:
            peer = f"{_seconds(case['lapack'])} ({case['lapack'] / case['seconds']:.2g}×)"
        values = f"the {case['k']} largest" if case["k"] else "all"
        yield _row(case["family"], f"{case['n']:,}", values, *own, peer)


def _device_select(content):
    n, k = content["n"], content["k"]
    yield from _header(
        f"matrix, n = {n:,}", "dtype", f"{k} largest, device", "all", "end to end", "all",
        "residual / orthogonality",
    )  # fmt: skip
    for case in content["cases"]:
        cells = []
        for key in ("device", "end_to_end"):
            part, whole = case[f"part_{key}"], case[f"whole_{key}"]
            cells += [f"{_seconds(part)} ({part / whole:.2g} of all)", _seconds(whole)]
        errors = " / ".join(f"{case[key]:.2g}" for key in ("residual", "orthogonality"))
        yield _row(case["family"], case["dtype"], *cells, errors)


def _device_batch(content):
    yield from _header(
        "matrices", "family", "dtype", "on the device", "end to end", "s alone, end to end",
        f"{content['library'].split()[0]}, device", "residual / orthogonality / values",
    )  # fmt: skip
    for case in content["cases"]:
        where = f"{case['count']:,} × {case['n']}", case["family"], case["dtype"]
        if "skipped" in case:
            yield _row(*where, case["skipped"], "", "", "", "")
            continue
        peer = case.get("peer", {})
        said = _peer(peer)
        if peer.get("count", case["count"]) < case["count"]:
            said += f", by {peer['count']:,} of them"
        times = (_seconds(case[key]) for key in ("device", "end_to_end", "values_end_to_end"))
        yield _row(*where, *times, said, _errors(case))


def _eps(content):
    """A line for each matrix, a column for each eps: time, deflated / n, error / eps."""
    columns = list(dict.fromkeys(row["eps"] for row in content["rows"]))
    yield from _header("matrix", "n", *("None" if eps is None else f"{eps:g}" for eps in columns))
    for place in dict.fromkeys((row["family"], row["n"]) for row in content["rows"]):
        found = {r["eps"]: r for r in content["rows"] if (r["family"], r["n"]) == place}
        yield _row(*place, *(_eps_cell(found[eps]) for eps in columns))


def _eps_cell(row):
    error = "" if row["eps"] is None else f" / {row['max_error_in_eps']:.2g}"
    return f"{_seconds(row['seconds'])} / {row['deflated'] / row['n']:.2f}{error}"


def _stress(content):
    yield from _header("measure", "worst", "at most", "family", "n", "dtype", "index")
    for measure, worst in sorted(content["worst"].items()):
        value, limit = (f"{worst[key]:.2g}" for key in ("value", "limit"))
        where = (worst[key] for key in ("family", "n", "dtype", "index"))
        yield _row(measure, value, limit, *where)


def _measured_stress(content):
    sources = content["sources"]
    yield f"{content['draws']:,} draws on `{content['device']}`, seed {content['seed']}:"
    yield f"{content['failed']} failed; {content['date'][:10]}; git trees of `csrc`"
    changed = " with changes" if sources["dirty"] else ""
    yield f"`{sources['csrc'][:12]}` and `cuda` `{sources['cuda'][:12]}`{changed}."


def _measured_gpu(content):
    machine, sources = content["machine"], content["sources"]
    cuda = content["versions"]["tsvd_config"]["CUDA"]
    counts = content.get("tests") or {}
    tests = ", ".join(f"{number} {word}" for word, number in counts.items())
    yield f"{machine['gpus'][0]}, driver {machine['driver']}, CUDA {cuda['runtime']};"
    yield f"{content['date'][:10]}; git trees of `csrc` `{sources['csrc'][:12]}` and `cuda`"
    changed = " with changes" if sources["dirty"] else ""
    yield f"`{sources['cuda'][:12]}`{changed}{f'; tests: {tests}' if tests else ''}."


def _measured_vectors(content):
    rates = content["rates"]
    yield f"{content['library']}: products of order {rates['gemm_order']:,} at"
    yield f"{rates['gemm'] / 1e12:.1f} TFLOP/s, pinned copies at"
    yield f"{max(rates['pinned'].values()) / 1e9:.1f} GB/s; {content['threads']} threads of"
    yield f"{content['machine']['cpu']};"
    yield from _measured_gpu(content)


def _measured(content):
    machine, versions, sources = (content[key] for key in ("machine", "versions", "sources"))
    yield f"{machine['cpu']}, {content['threads']} threads, load {content['load']:.1f} before;"
    yield f"NumPy {versions['numpy']} ({versions['numpy_blas']}),"
    yield f"SciPy {versions['scipy']} ({versions['scipy_blas']}); {content['date'][:10]}; git tree"
    yield f"of `csrc` `{sources['csrc'][:12]}`{' with changes' if sources['dirty'] else ''}."


TABLES = {
    "accuracy_vectors": ("cpu.json", _cases("vectors", _errors, orders=[500])),
    "accuracy_values": ("cpu.json", _cases("values", _errors, orders=[1000])),
    "vectors": ("cpu.json", _cases("vectors", _time)),
    "values": ("cpu.json", _cases("values", _time)),
    "small": ("cpu.json", _cases("small", _time)),
    "batch": ("cpu.json", _cases("batch", _time)),
    "measured": ("cpu.json", _measured),
    "published": ("published.json", _published),
    "measured_published": ("published.json", _measured),
    "gpu": ("gpu.json", _gpu),
    "downloads": ("gpu.json", _downloads),
    "measured_gpu": ("gpu.json", _measured_gpu),
    "vectors_cuda": ("vectors.json", _device_vectors),
    "peers_cuda": ("vectors.json", _peers),
    "bars_cuda": ("vectors.json", _bars),
    "measured_vectors": ("vectors.json", _measured_vectors),
    "values_cuda": ("values.json", _device_values),
    "bars_values": ("values.json", _bars),
    "measured_values": ("values.json", _measured_gpu),
    "select_cuda": ("select.json", _device_select),
    "bars_select": ("select.json", _bars),
    "measured_select": ("select.json", _measured_gpu),
    "batch_cuda": ("batch.json", _device_batch),
    "bars_batch": ("batch.json", _bars),
    "measured_batch": ("batch.json", _measured_gpu),
    "eps_cuda": ("eps_cuda.json", _eps),
    "measured_eps": ("eps_cuda.json", _measured_gpu),
    "stress_cpu": ("stress_cpu.json", _stress),
    "measured_stress_cpu": ("stress_cpu.json", _measured_stress),
    "stress_cuda": ("stress_cuda.json", _stress),
    "measured_stress_cuda": ("stress_cuda.json", _measured_stress),
}


def _seconds(seconds):
    if seconds >= 1:
        return f"{seconds:.3g} s" if seconds < 1000 else f"{seconds:,.0f} s"
    if seconds >= 1e-3:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds * 1e6:.3g} µs"


def _row(*cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _header(*titles):
    return _row(*titles), "|" + "---|" * len(titles)


def _size(record):
    return f"{record['batch']:,} × {record['n']}" if record["batch"] > 1 else record["n"]
