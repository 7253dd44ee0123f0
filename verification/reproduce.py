"""The program that repeats a call with one matrix."""


def reproduced(d, e, options, device):
    """A line of Python. The entries are hexadecimal: decimals would be rounded."""
    arrays = [
        f"np.array([{', '.join(f'h({float(x).hex()!r})' for x in row)}], np.{row.dtype.name})"
        for row in (d, e)
    ]
    given = "".join(f", {name}={value!r}" for name, value in options.items() if value is not None)
    given = given.replace("=inf", "=np.inf").replace(" inf)", " np.inf)")
    return f"h = float.fromhex; tsvd.svd({', '.join(arrays)}{given}, device={device!r})"
