"""The expected question of a certificate: the words of a `dpsub` question, or the JSON of its
answer. A certificate of another question, or with weaker bounds, is refused."""

import shlex
from typing import Any

from balls import Refuted, Unreadable
from question import IN_ONE_ORDER, SCHEDULES, Question, Release
from reading import content_of, parsed, shown

RELATIVE = 1e-8  # claims have nine digits, rounded outwards

ADD_REMOVE_BY_DEFAULT = (
    *("poisson", "cyclic_poisson", "truncated_poisson", "random_allocation"),
    *("secret_cyclic_poisson", "min_separation"),
)
SIZES = {
    "poisson": ("rate",),
    "wor": ("m",),
    "wr": ("m",),
    "weighted_wr": ("m", "largest_weight"),
    "must_oo": ("b", "m"),
    "must_ow": ("b", "m"),
    "must_wo": ("b", "m"),
    "must_ww": ("b", "m"),
    "multistage": ("chain",),
    "truncated_poisson": ("rate", "max_batch"),
    "deterministic": ("m",),
    "cyclic_poisson": ("rate", "cycle"),
    "shuffle": ("m",),
    "persistent_shuffle": ("m",),
    "random_allocation": ("t", "k"),
    "secret_cyclic_poisson": ("rate", "cycle"),
    "min_separation": ("rate", "separation", "t", "warm_start"),
}
FLAGS = {
    **dict.fromkeys(("deterministic", "shuffle", "persistent_shuffle"), "--drop-last"),
    "min_separation": "--warm-start",
}
ALIASES = {"batch_size": "m", "sample_rate": "rate", "sigma": "noise_multiplier", "stages": "chain"}
ALONE = ("quick", "tight", "json", "explain", "statement")  # options without a value
# about the answer's form
ASIDE = ("width", "time_limit", "effort", "certificate", "plot", "clip", "prior", "variant")
ASKED = (
    *("n", "noise_multiplier", "steps", "epochs", "group", "adjacency", "mechanism"),
    *("epsilon", "delta", "denominator"),
)


def check_expected(
    expected: str, question: Question, claim: dict[str, float | None], digest: str
) -> None:
    """Refuse a certificate that is not the expected one."""
    is_file = expected.endswith(".json")
    if is_file or expected.lstrip().startswith("{"):
        try:
            content = content_of(expected) if is_file else expected.encode(errors="surrogateescape")
            answer = parsed(content)
        except Unreadable as error:
            raise Unreadable(f"what is expected cannot be read: {error}") from None
        check_answer(answer, question, claim, digest)
    else:
        check_words(expected, question)


def check_answer(
    answer: Any, question: Question, claim: dict[str, float | None], digest: str
) -> None:
    """Check that the bounds of an answer are claimed, up to their nine digits, and that the file is
    the one that was written with it, if the answer names one."""
    stated = {"quantity", "adjacency", "lower", "upper"}
    if not isinstance(answer, dict) or not stated <= set(answer):
        raise Unreadable("what is expected has no quantity, no adjacency or not two bounds")
    for name, found in (("quantity", question.quantity), ("adjacency", question.adjacency)):
        differ(name, answer[name], found)
    if "certificate" in answer:
        written = answer["certificate"]
        differ("sha256", written.get("sha256") if isinstance(written, dict) else None, digest)
    are_ends = False
    ceiling = 1.0 if question.quantity == "delta" else float("inf")
    for end, trivial in (("lower", 0.0), ("upper", ceiling)):
        value, claimed = answer[end], claim[end]
        if value is None or value in (trivial, "Infinity"):
            continue
        are_ends = True
        if type(value) not in (int, float):
            raise Unreadable(f"what is expected has the {end} bound {shown(value)}")
        if claimed is None:
            raise Refuted(f"expected: the {end} bound {value!r}, and none is claimed")
        is_met = (
            claimed >= value * (1 - RELATIVE)
            if end == "lower"
            else claimed <= value * (1 + RELATIVE)
        )
        if not is_met:
            raise Refuted(f"expected: the {end} bound {value!r}, and {claimed!r} is claimed")
    if not are_ends:
        raise Unreadable("what is expected states no bound")


def check_words(words: str, question: Question) -> None:
    """Check that every size, and every word of the question, is the same."""
    expected = question_of(words)
    (found, *others) = question.plain["releases"]
    if others:
        raise Refuted(f"expected: one kind of releases, the certificate has {1 + len(others)}")
    differ("sampler", expected["sampler"]["name"], found["sampler"]["name"])
    # entries that a certificate may leave out, too
    for name in {**expected["sampler"], **found["sampler"]}:
        differ(name, expected["sampler"].get(name), found["sampler"].get(name))
    differ("one_sided", False, found.get("one_sided", False))
    for name in ("n", "noise_multiplier", "steps", "mechanism", "denominator", "group"):
        differ(name, expected[name], found.get(name, 1))
    differ("adjacency", expected["adjacency"], question.adjacency)
    given = "delta" if question.quantity == "epsilon" else "epsilon"
    differ("quantity", expected["quantity"], question.quantity)
    differ(given, expected["given"], question.given)


def differ(name: str, expected: Any, found: Any) -> None:
    if expected != found:
        raise Refuted(f"expected: {name} = {shown(expected)}, the certificate has {shown(found)}")


# --- Words ----------------------------------------------------------------------------------------


def question_of(words: str) -> dict:
    """Question that `dpsub account WORDS` asks."""
    try:
        tokens = shlex.split(words)
    except ValueError as error:
        raise Unreadable(f"what is expected cannot be read: {error}") from None
    while tokens and tokens[0] in ("dpsub", "account"):
        del tokens[0]
    if not tokens or tokens[0] not in SIZES:
        raise Unreadable(
            f"what is expected must begin with a sampler or be an answer's JSON, got {shown(words)}"
        )
    name = tokens[0]
    flag = FLAGS.get(name, "")
    is_set = flag in tokens[1:]
    rest = [token for token in tokens[1:] if token != flag]
    options = _options(rest, {*SIZES[name], "m"})
    n = _whole(options, "n")
    sampler = {"name": name} | _sizes(name, options, n)
    if is_set:
        sampler[flag.removeprefix("--").replace("-", "_")] = True
    given = [key for key in ("epsilon", "delta") if key in options]
    if len(given) != 1:
        raise Unreadable("what is expected needs one of --epsilon and --delta")
    if "noise_multiplier" not in options:
        raise Unreadable("what is expected needs --noise-multiplier")
    by_default = "add_remove" if name in ADD_REMOVE_BY_DEFAULT else "substitute"
    return {
        "sampler": sampler,
        "n": n,
        "noise_multiplier": _real(options, "noise_multiplier"),
        "steps": _steps(options, sampler, n),
        "mechanism": options.get("mechanism", "gaussian"),
        "denominator": options.get("denominator", "fixed"),
        "group": _group(options.get("group", "1")),
        "adjacency": options.get("adjacency", by_default),
        "quantity": "delta" if given == ["epsilon"] else "epsilon",
        "given": _real(options, given[0]),
    }


def _options(tokens: list[str], sizes: set[str]) -> dict[str, str]:
    """Options that are given, with their values; a size that the sampler does not have is
    refused."""
    known = {*ASKED, *ASIDE, *sizes}
    options: dict[str, str] = {}
    rest = iter(tokens)
    for token in rest:
        option, equals, value = token.partition("=")
        name = option.removeprefix("--").replace("-", "_")
        name = ALIASES.get(name, name)
        if not option.startswith("--") or (name not in known and name not in ALONE):
            raise Unreadable(f"what is expected has no option {shown(token)}")
        if name in options:
            raise Unreadable(f"what is expected gives {option} twice")
        if name in ALONE:
            continue
        options[name] = value if equals else next(rest, "")
    return options


def _sizes(name: str, options: dict[str, str], n: int | None) -> dict[str, Any]:
    """Sizes by the names that the sampler has for them; a rate may be given by an expected size."""
    sizes: dict[str, Any] = {}
    m = _whole(options, "m")
    of_batch = m is not None and n is not None
    for size in SIZES[name]:
        if size == "warm_start":
            # a size of batches is the mean one of a long run
            sizes[size] = of_batch and "rate" not in options
        elif size == "rate" and name == "min_separation" and size not in options and of_batch:
            available = n - m * ((_whole(options, "separation") or 1) - 1)
            if available <= 0:
                raise Unreadable("what is expected has batches larger than n / separation")
            sizes[size] = m / available
        elif size == "chain":
            sizes[size] = [_stage(part) for part in options.get("chain", "").split(",")]
        elif size in ("rate", "largest_weight") and size in options:
            sizes[size] = _real(options, "rate")
        elif size == "rate" and m is not None and n is not None:
            cycle = _whole(options, "cycle") if "cycle" in SIZES[name] else 1
            sizes[size] = m * (cycle or 1) / n
        elif size == "k":
            sizes[size] = _whole(options, "k") or 1
        elif size == "t" and "t" not in options and m and n and name == "random_allocation":
            sizes[size] = -(-n // m)
        elif size in options or (name, size) == ("deterministic", "m"):
            sizes[size] = _whole(options, size)
        else:
            raise Unreadable(f"what is expected needs --{size.replace('_', '-')}")
    return sizes


def _stage(part: str) -> dict[str, Any]:
    kind, _, size = part.partition(":")
    key = "rate" if kind == "poisson" else "size"
    return {"kind": kind, key: (_real if key == "rate" else _whole)({key: size}, key)}


def _steps(options: dict[str, str], sampler: dict, n: int | None) -> int:
    if "steps" in options:
        steps = _whole(options, "steps")
        assert steps is not None
        return steps
    is_schedule = sampler["name"] in (*SCHEDULES, IN_ONE_ORDER)
    if "epochs" in options and not is_schedule:
        raise Unreadable("what is expected needs --steps: epochs of samples are rounded")
    if not is_schedule:
        return 1
    if sampler.get("m") is not None and n is None:
        raise Unreadable("what is expected needs --n")
    epoch = Release(sampler, n, None, 1, laplace=False).steps_per_epoch(n)  # type: ignore[arg-type]
    return (_whole(options, "epochs") or 1) * epoch


def _group(text: str) -> int | list[int]:
    sizes = sorted(_whole({"group": part}, "group") or 0 for part in text.split(":"))
    if len(sizes) > 2 or not sizes[-1]:
        raise Unreadable(f"what is expected has group = {shown(text)}")
    return sizes[::-1] if sizes[0] and len(sizes) == 2 else sizes[-1]


def _whole(options: dict[str, str], name: str) -> int | None:
    if name not in options:
        return None
    try:
        size = int(options[name])
    except ValueError:
        size = 0
    # all of them count something, which may be nothing in one part of a mixed group alone
    if size < (0 if name == "group" else 1):
        raise Unreadable(f"what is expected has {name} = {shown(options[name])}")
    return size


def _real(options: dict[str, str], name: str) -> float:
    try:
        return float(options[name])
    except ValueError:
        raise Unreadable(f"what is expected has {name} = {shown(options[name])}") from None
