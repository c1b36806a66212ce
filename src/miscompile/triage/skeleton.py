"""The templates of every standalone script and of the unit test beside it; the lines for the target come from its
`ScriptLines`.

Their variables are described in the script writer (`miscompile.triage.script`).
"""

_TOLD = '''\
"""{{ title }}

{{ message }}
{% if versions %}

Seen with {% for name, version in versions.items() %}{{ name }} {{ version }}{{ ", " if not loop.last }}{% endfor %}.
{% endif %}

{% if kind in ("death", "hang") %}
This script dies when the bug shows{{ " (of signal %d)" % signal if signal > 0 }}. Exit code 0: it does not show.
{% else %}
Exit code 1: the bug shows. Exit code 0: it does not.
{% endif %}
"""

'''

_PARTS = """\
{% set off_given = "" if brief else ", OFF" %}
{% set without_culprits = "CULPRITS" if brief else "[*OFF, *CULPRITS]" %}
{% set declares = reference is none and expected == "" and kind in ("shape", "dtype") %}
{% set compares = kind in ("wrong", "missing", "shape", "dtype", "special", "cost") and not declares %}
{% for line in setup %}
{{ line }}
{% endfor %}
{% for line in standard %}
{{ line }}
{% endfor %}
{% if standard %}

{% endif %}
{% for line in third_party %}
{{ line }}
{% endfor %}
{% if own %}

{% for line in own %}
{{ line }}
{% endfor %}
{% endif %}
{% if sources %}
{% if sources.startswith(("def ", "class ", "@")) %}

{% endif %}

{{ sources }}
{% endif %}
{% if prelude %}


{{ prelude }}
{% endif %}
{% if sources or prelude %}


{% else %}

{% endif %}
{{ model }}

{{ feeds }}
{% if types %}

# Inputs that numpy has no type for: their bits, and the type that they stand for.
types = {
{% for name, type in types.items() %}
    {{ name | literal }}: {{ type }},
{% endfor %}
}
{% endif %}

{% if culprits %}
# To blame: {{ culprits | join(", ") }}.{{ " All other optional passes are off." if faulty.disabled }}
{% if compares %}
CULPRITS = {{ culprits | literal }}
{% endif %}
{% endif %}
{% if not brief %}
{{ off }}
{% endif %}


{{ run }}


"""

_JUDGED = '''\
{% if compares %}
{% if kind == "wrong" %}
# {{ reason }}
TOLERANCE = {{ tolerance }}


{% endif %}
def problem(want, got):
    """Say what is wrong with `got`, output {{ output }} on feed {{ feed }}; None if nothing is."""
{% if kind == "missing" or not brief %}
    if want is None or got is None:
        return None if want is got else "the output is missing" if got is None else "an output appears"
{% endif %}
    want, got = np.asarray(want), np.asarray(got)
    if (want.dtype, want.shape) != (got.dtype, got.shape):
        return f"{got.dtype} of shape {got.shape} instead of {want.dtype} of shape {want.shape}"
{% if kind == "wrong" %}
    if want.dtype == object:
        return None if (want == got).all() else f"{got.tolist()} instead of {want.tolist()}"
    wide = np.result_type(want.dtype, np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.atleast_1d(np.abs(want.astype(wide) - got.astype(wide))).ravel()
    left, right = want.ravel(), got.ravel()
    gap[(left == right) | ((left != left) & (right != right))] = 0  # equal, or both not a number
    gap[np.isnan(gap)] = np.inf
    wrong = gap > TOLERANCE if TOLERANCE or want.dtype.kind in "fc" else left != right
    if not wrong.any():
        return None
    worst = int(np.argmax(np.where(wrong, gap, -1)))
    return (
        f"{np.count_nonzero(wrong)} of {gap.size} elements are wrong by more than {TOLERANCE:g}\\n"
        f"  largest difference {gap[worst]:.6g} at flat index {worst}: {right[worst]} instead of {left[worst]}\\n"
        f"  expected from there {left[worst : worst + 4].tolist()}\\n"
        f"  actual              {right[worst : worst + 4].tolist()}"
    )
{% else %}
{% if kind == "special" %}
    left, right = want.flat[{{ element }}], got.flat[{{ element }}]
    if left.dtype.kind not in "fV":
        same = left == right
    elif np.isfinite(left) and np.isfinite(right) and (left or right):
        same = abs(float(left) - float(right)) <= 0.01 * max(abs(float(left)), abs(float(right)))
    else:  # NaN has neither a sign nor a payload that counts; zeros and infinities have a sign
        same = np.isnan(left) and np.isnan(right) or left == right and np.signbit(left) == np.signbit(right)
    return None if same else f"element {{ element }} is {right} instead of {left}"
{% else %}
    return None
{% endif %}
{% endif %}


{% endif %}
{% if declares %}
def problem(got):
    """Say how the type of an output differs from the one that ONNX infers; None if it does not."""
    got, (dtype, shape) = np.asarray(got), DECLARED
    same = len(shape) == got.ndim and all(want in (None, have) for want, have in zip(shape, got.shape))
    return None if same and got.dtype == dtype else f"{got.dtype} of shape {got.shape} instead of {dtype} of {shape}"


# The output's type by ONNX's own inference{{ ", which the check below repeats" if onnx }}.
DECLARED = {{ declared }}
{% endif %}
print({{ versions_shown }}{{ ', "onnx", onnx.__version__' if onnx }}, "numpy", np.__version__)
{% if rule == "invalid" %}
{% if onnx and proof == "checker" %}
try:
    onnx.checker.check_model(model, full_check=True)
except Exception as error:
    print("onnx's checker refuses the model:", " ".join(str(error).split()))
else:
    print("onnx's checker accepts the model, which is invalid all the same: see above")
{% endif %}
{% elif onnx and (reference is none or kind == "exception") %}
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
{% elif onnx %}
try:
    onnx.checker.check_model(model, full_check=True)
    print("onnx's checker accepts the model")
except Exception as error:
    print("onnx's checker says of the model:", " ".join(str(error).split()))
{% endif %}
{% if expected %}
# The result of {{ voter }} for output {{ output }} on feed {{ feed }}.
{{ expected }}
{% elif reference is not none %}
{% set without = ", " ~ (reference.disabled | sort | literal) if reference.disabled else "" %}
{% set working = levels[reference.level] ~ without %}
{% if compares %}
expected = run({{ working }})[{{ reference_feed }}][{{ output }}]
{% else %}
run({{ working }})
print("level {{ reference.level }} works")
{% endif %}
{% endif %}
{% if changed_model %}

{% if kind == "refused-form" %}
# The form of the call that is refused; the one above is not.
{% else %}
# The same computation in another form: {{ transform }}.
{% endif %}
{{ changed_model }}
{% if changed_feeds %}

{{ changed_feeds }}
{% endif %}

{% endif %}
{% if again %}

# Every feed once more, in the opposite order and from the same memory: the later results count.
feeds = [*feeds, *feeds[::-1]]
{% endif %}
{% if declares %}
found = problem(run({{ levels[faulty.level] }}{{ off_given }})[{{ faulty_feed }}][{{ output }}])
if found:
    print("{{ shows }} output {{ output }} on feed {{ feed }}:", found)
    sys.exit(1)
{% elif compares %}
{% if kind == "missing" %}
try:
    found = problem(expected, run({{ levels[faulty.level] }}{{ off_given }})[{{ faulty_feed }}][{{ output }}])
except Exception as error:
    print("{{ shows }} level {{ faulty.level }} raises", f"{type(error).__name__}: {error}")
    sys.exit(1)
{% else %}
found = problem(expected, run({{ levels[faulty.level] }}{{ off_given }})[{{ faulty_feed }}][{{ output }}])
{% endif %}
{% if culprits %}
healed = not problem(expected, run({{ levels[faulty.level] }}, {{ without_culprits }})[{{ faulty_feed }}][{{ output }}])
print("without", *CULPRITS, "the results are", "right" if healed else "wrong as well")
{% endif %}
if found:
    print("{{ shows }} output {{ output }} on feed {{ feed }}:", found)
    sys.exit(1)
{% elif kind == "accepted" %}
try:
    found = run({{ levels[faulty.level] }}{{ off_given }})
except Exception as error:
    print("level {{ faulty.level }} refuses it:", f"{type(error).__name__}: {error}")
else:
    first = found[0][0]
    print("{{ shows }} level {{ faulty.level }} accepts the model and runs it; output 0 has shape", np.shape(first))
    print("and begins with", np.ravel(first)[:4].tolist())
    sys.exit(1)
{% elif kind in ("exception", "memory", "refused-form") %}
{% if kind == "memory" %}
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))  # bytes
{% endif %}
try:
    run({{ levels[faulty.level] }}{{ off_given }})
except Exception as error:
    print("{{ shows }} level {{ faulty.level }} raises", f"{type(error).__name__}: {error}")
    sys.exit(1)
{% else %}
{% if kind == "hang" %}
signal.alarm({{ patience }})  # seconds; the default action of this signal ends the process even inside the compiler
print("{{ dies }} level {{ faulty.level }} does not end; the alarm kills this process", flush=True)
{% else %}
{% set at = " (%s)" % stage if rule == "memory" else " at " + stage if stage else "" %}
print("{{ dies }} level {{ faulty.level }} kills this process{{ at }}", flush=True)
{% endif %}
{% if rule == "invalid" %}
try:
    run({{ levels[faulty.level] }}{{ off_given }})
except Exception as error:  # which is right
    print("level {{ faulty.level }} refuses it:", f"{type(error).__name__}: {error}")
{% else %}
run({{ levels[faulty.level] }}{{ off_given }})
{% endif %}
{% endif %}
print("the bug does not show")
'''

_MEASURED = '''\
{% set made = "model" if onnx else "program" %}
# The series: copies of the {{ made }} in one {{ made }}, by the pattern "{{ pattern }}". Its values are not compared.
PATTERN, CLASS, NODES = {{ pattern | literal }}, {{ cost | literal }}, {{ nodes }}
{% set without = ", " ~ (reference.disabled | sort | literal) if reference.disabled else "" %}
base, given = {{ made }}, feeds[:1]


def measure(size, level, *off):
    """Return the CPU seconds and the growth in bytes of a build with its first run, and seconds of further runs."""
    global {{ made }}, feeds
{% if onnx %}
    model, feeds = repeated(base, PATTERN, size), given
{% else %}
    program, feeds = repeated_calls(base, PATTERN, size, {{ calls }}), given
{% endif %}
    before, begin = resident_bytes() if forget_peak() else 0, cpu_seconds()
    run(level, *off)
    spent = cpu_seconds() - begin
    grown = max(0, resident_bytes(peak=True) - before) if before else 0
    again, further = 0.0, 1
    while CLASS == "run time" and again < 0.25 and further < 10000:
        further *= 4
        feeds, begin = given * (1 + further), cpu_seconds()
        run(level, *off)
        again = cpu_seconds() - begin - spent
    return spent, again / further, again, grown, grown


def cost(size, level, *off):
    """Measure a build three times."""
    return BuildCost(*zip(*(measure(size, level, *off) for _ in range(REPEATS))))


def table_row(row):
    """Print the least and the greatest measurement of both builds, and the growth of the memory."""
    what = "run_cpu" if CLASS == "run time" else "compile_cpu"
    plain, full = getattr(row.plain, what), getattr(row.full, what)
    memory = f"{max(row.plain.compile_bytes) / 2**20:7.0f} {max(row.full.compile_bytes) / 2**20:7.0f}"
    times = f"{min(plain):10.4f} {max(plain):10.4f} {min(full):10.4f} {max(full):10.4f}"
    print(f"{row.copies:7} {row.nodes:7} {times} {memory}", flush=True)


print({{ versions_shown }}{{ ', "onnx", onnx.__version__' if onnx }}, "numpy", np.__version__)
print("CPU seconds of", "a run" if CLASS == "run time" else "a build and a run", "unoptimised and optimised; MiB")
print(" copies   nodes        off, from to        optimised, from to      off    optimised")
measure({{ sizes[0] }}, {{ levels[reference.level] }}{{ without }})  # what only the first build of a process does
measure({{ sizes[0] }}, {{ levels[faulty.level] }}{{ off_given }})
rows, sizes, most = [], {{ sizes }}, {{ 4 * sizes[-1] }}
while sizes:
    size = sizes.pop(0)
    plain = cost(size, {{ levels[reference.level] }}{{ without }})
    rows.append(Row(size, size * NODES, plain, cost(size, {{ levels[faulty.level] }}{{ off_given }})))
    table_row(rows[-1])
    if not sizes and not violations(rows, CLASS) and 2 * size <= most and min(rows[-1].full.compile_cpu) < 4:
        sizes.append(2 * size)
{% if culprits %}
other = measure(rows[-1].copies, {{ levels[faulty.level] }}, {{ without_culprits }})
healed = other[1 if CLASS == "run time" else 0]
print("without", *CULPRITS, f"the largest takes {healed:.4f} CPU seconds")
{% endif %}
if violations(rows, CLASS):
    print("{{ shows }}", CLASS, "out of proportion, in each of three measurements")
    sys.exit(1)
print("the bug does not show")
'''

TEMPLATE = _TOLD + _PARTS + _JUDGED

COST_TEMPLATE = _TOLD + _PARTS + _MEASURED

_TESTED = """\
def test_{{ test_name }}():
{% if changed_model or again %}
    global model, feeds
{% endif %}
{% if expected %}
    # The result of {{ voter }}.
{{ expected | indent(4, first=True) }}
{% elif compares %}
{% set without = ", " ~ (reference.disabled | sort | literal) if reference.disabled else "" %}
    expected = run({{ levels[reference.level] }}{{ without }})[{{ reference_feed }}][{{ output }}]
{% endif %}
{% if changed_model %}
{% if kind == "refused-form" %}
    # The form of the call that is refused; the one above is not.
{% else %}
    # The same computation in another form: {{ transform }}.
{% endif %}
{{ changed_model | indent(4, first=True) }}
{% if changed_feeds %}
{{ changed_feeds | indent(4, first=True) }}
{% endif %}
{% endif %}
{% if again %}
    feeds = [*feeds, *feeds[::-1]]
{% endif %}
{% if kind == "accepted" %}
    with pytest.raises(Exception):
        run({{ levels[faulty.level] }}{{ off_given }})
{% elif compares or declares %}
    actual = run({{ levels[faulty.level] }}{{ off_given }})[{{ faulty_feed }}][{{ output }}]
    assert actual is not None
{% if declares %}
    dtype, shape = {{ declared }}
    assert np.asarray(actual).dtype == dtype
    assert all(want in (None, have) for want, have in zip(shape, np.shape(actual), strict=True))
{% elif kind == "special" %}
    got, want = np.ravel(actual)[{{ element }}], np.ravel(expected)[{{ element }}]
    np.testing.assert_allclose(got, want, rtol=0.01)
    assert np.isnan(want) or np.signbit(got) == np.signbit(want)
{% elif kind == "wrong" %}
    # {{ reason }}
    np.testing.assert_allclose(actual, expected, rtol=0, atol={{ tolerance }})
{% else %}
    assert np.shape(actual) == np.shape(expected)
    assert np.asarray(actual).dtype == np.asarray(expected).dtype
{% endif %}
{% elif rule == "invalid" %}
    with contextlib.suppress(Exception):  # an error is right, a death is not
        run({{ levels[faulty.level] }}{{ off_given }})
{% else %}
    run({{ levels[faulty.level] }}{{ off_given }})  # must not fail
{% endif %}
"""

_SAID = '''\
"""{{ title }}"""

'''

TEST_TEMPLATE = _SAID + _PARTS + _TESTED
