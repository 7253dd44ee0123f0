"""The pictures of README.md, drawn from result files: one of speed, one of accuracy.

Colours and lines stand on white and on black pages alike, as the background is left out. A picture
tells what it shows in the description of its metadata, where the tests read it.
"""

import json
import math

from benchmarks.tables import SUPERSCRIPTS

FOLDER = "docs/pictures"

# Contender -> its colour, its mark and its name in the legend.
STYLES = {
    "tsvd": ("#d9480f", "o", "tsvd"),
    "gesvdp": ("#2b8a9e", "^", "cuSOLVER gesvdp"),
    "gesvdj": ("#4c7fd0", "v", "cuSOLVER gesvdj"),
    "gesvd": ("#8f6bd0", "D", "cuSOLVER gesvd"),
    "dbdsdc": ("#4f9a3c", "P", "LAPACK dbdsdc"),
    "dbdsqr": ("#a98b1d", "X", "LAPACK dbdsqr"),
    "numpy": ("#4c7fd0", "s", "numpy.linalg.svd"),
}
GREY = "#7f858d"


def write(results, folder):
    """Draws all pictures into the folder."""
    import matplotlib

    folder.mkdir(exist_ok=True)
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_style())
        for name, (_, draw, _) in PICTURES.items():
            draw(_shown(name, results), folder / f"{name}.svg")
            print(f"{name}.svg: drawn")


def description(name, results):
    """What the description of a picture says: all numbers that it shows."""
    return _text(_shown(name, results))


def _shown(name, results):
    contents, _, sources = PICTURES[name]
    return contents(*(json.loads((results / source).read_text()) for source in sources))


def _text(shown):
    return json.dumps(shown, ensure_ascii=False, sort_keys=True)


# ---- what is shown: contender -> points ----


def _speed(dense, vectors, cpu):
    """The seconds of all vectors by n, a panel for each kind of matrix and device."""
    on_gpu, bidiagonal_gpu, bidiagonal_cpu = {}, {}, {}
    for case in dense["cases"]:
        if case["group"] == "all vectors":
            seconds = {"tsvd": case["median"]}
            seconds |= {name: peer.get("median") for name, peer in case["peers"].items()}
            _add(on_gpu, case["rows"], seconds)
    for case in vectors["cases"]:
        if case["family"] == "chi" and "device" in case:
            peers = {name: peer.get("seconds") for name, peer in case["peers"].items()}
            seconds = {name: peers.get(name) for name in ("gesvdj", "gesvd")}
            _add(bidiagonal_gpu, case["n"], {"tsvd": case["device"], **seconds})
    ours = {"tsvd.svd, dc": "tsvd", "dbdsdc": "dbdsdc", "numpy.linalg.svd": "numpy"}
    for case in cpu["cases"]:
        if (case["group"], case["family"]) == ("vectors", "chi"):
            found = {c["name"]: c["median"] for c in case["contenders"]}
            _add(bidiagonal_cpu, case["n"], {short: found[name] for name, short in ours.items()})
    return {
        f"dense, {dense['machine']['gpus'][0]}": on_gpu,
        f"bidiagonal, {vectors['machine']['gpus'][0]}": bidiagonal_gpu,
        f"bidiagonal, {cpu['threads']} CPU threads": bidiagonal_cpu,
    }


def _accuracy(cpu):
    """The largest error of a value in ulps, for each family of matrices."""
    names = {"tsvd.svd, dc": "tsvd", "dbdsqr": "dbdsqr", "dbdsdc": "dbdsdc"}
    names["numpy.linalg.svd"] = "numpy"
    shown = {}
    for case in cpu["cases"]:
        if (case["group"], case["n"]) == ("vectors", 500):
            found = {c["name"]: c["values"] for c in case["contenders"]}
            _add(shown, case["family"], {short: found[name] for name, short in names.items()})
    return shown


def _add(panel, where, measured):
    for name, value in measured.items():
        if value is not None:
            panel.setdefault(name, []).append([where, float(f"{value:.3g}")])


# ---- drawing ----


def _style():
    """What differs from Matplotlib's own settings; those of the user are not read."""
    grey = ("text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "xtick.color",
            "ytick.color", "grid.color", "legend.labelcolor")  # fmt: skip
    return dict.fromkeys(grey, GREY) | {
        "svg.fonttype": "none",
        "svg.hashsalt": "tsvd",
        "font.size": 9,
        "axes.titlesize": 10,
        "axes.facecolor": "none",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "grid.linewidth": 0.4,
        "grid.alpha": 0.5,
        "legend.frameon": False,
    }


def _figure(width, height, panels=1):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(1, panels, sharey=True)


def _save(figure, shown, path):
    metadata = {"Date": None, "Description": _text(shown)}
    figure.savefig(path, format="svg", transparent=True, metadata=metadata)


def _plotted(axes, name, x, y, **more):
    colour, mark, label = STYLES[name]
    strong = {"linewidth": 2.4, "zorder": 5} if name == "tsvd" else {"linewidth": 1.4}
    axes.plot(x, y, color=colour, marker=mark, markersize=6, label=label, **strong, **more)


ORDERS = 100, 300, 1000, 3000, 10_000, 30_000
SECONDS = {1e-3: "1 ms", 1e-2: "10 ms", 0.1: "100 ms", 1: "1 s", 10: "10 s"}


def _draw_speed(shown, path):
    small = {"fontsize": 8, "handlelength": 1.8, "columnspacing": 1}
    figure, all_axes = _figure(9.6, 3.7, len(shown))
    for axes, (title, panel) in zip(all_axes, shown.items(), strict=True):
        for name, points in panel.items():
            _plotted(axes, name, *zip(*points, strict=True))
        axes.set(xscale="log", yscale="log", title=title, xlabel="order n")
        orders = [points[i][0] for points in panel.values() for i in (0, -1)]
        ticks = [n for n in ORDERS if 0.9 * min(orders) <= n <= max(orders)]
        axes.set_xticks(ticks, [f"{n:,}" for n in ticks])
        axes.set_yticks(list(SECONDS), SECONDS.values())
        axes.minorticks_off()
        axes.grid(axis="y")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2, **small)
    all_axes[0].set_ylabel("time of all values and vectors, float64")
    _save(figure, shown, path)


FAMILIES = {
    "uniform_1": "uniform in [0, 1]",
    "chi": "of a Gaussian matrix",
    "toeplitz": "d = e = 1",
    "geometric": "condition 1/ε",
    "graded_down": "condition 10¹⁵⁰",
}
NO_DIGIT = 2.0**52
# Errors above this are drawn here, with an arrow and the power of ten.
MOST_ULPS = 1e18


def _draw_accuracy(shown, path):
    figure, axes = _figure(8.2, 3.2)
    for i, (name, points) in enumerate(shown.items()):
        rows = [row + 0.2 * (i - (len(shown) - 1) / 2) for row in range(len(points))]
        errors = [error for _, error in points]
        _plotted(axes, name, [min(x, MOST_ULPS) for x in errors], rows, linestyle="none")
        for x, row in zip(errors, rows, strict=True):
            if x > MOST_ULPS:
                power = {"color": STYLES[name][0], "fontsize": 7, "va": "center"}
                axes.annotate(f"{_power_of_ten(x)} →", (3 * MOST_ULPS, row), **power)
    right = 1e4 * MOST_ULPS
    axes.axvspan(NO_DIGIT, right, color=GREY, alpha=0.15, linewidth=0)
    axes.annotate("no right digit", (1.5 * NO_DIGIT, -0.6), fontsize=8, va="center")
    ticks = [10.0**power for power in range(0, 19, 3)]
    families = [FAMILIES[family] for family, _ in points]
    axes.set(xscale="log", xlim=(0.2, right), ylim=(len(families) - 0.5, -0.8))
    axes.set_xticks(ticks, map(_power_of_ten, ticks))
    axes.minorticks_off()
    axes.set_yticks(range(len(families)), families)
    axes.set_xlabel("largest error of a singular value, in ε times the value (float64, n = 500)")
    axes.set_ylabel("diagonals")
    axes.grid(axis="x")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    _save(figure, shown, path)


def _power_of_ten(x):
    return "1" if x == 1 else "10" + f"{math.log10(x):.0f}".translate(SUPERSCRIPTS)


# Name -> what it shows, how it is drawn, and the result files that it takes.
PICTURES = {
    "speed": (_speed, _draw_speed, ["dense.json", "vectors.json", "cpu.json"]),
    "accuracy": (_accuracy, _draw_accuracy, ["cpu.json"]),
}
