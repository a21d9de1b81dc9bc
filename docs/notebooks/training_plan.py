"""
From a training plan to a defensible (ε, δ)
===========================================

You will train by noisy, clipped gradients and want to put one sentence about privacy into the
paper. This notebook goes from the plan to the sentence, past the traps on the way: the unit of the
noise, the sampler that the code really uses, the adjacency, δ, and formulas that guarantee nothing.
Only ``dpsub`` and Matplotlib are needed.
"""

# %%
# The plan
# --------
#
# What your configuration says. The noise is what the code adds to the *mean* gradient of a batch,
# as many configurations have it.

from math import ceil
from textwrap import fill

import matplotlib.pyplot as plt

import dpsub

records = 60_000
batch = 256  # expected size
epochs = 10
clip = 0.5  # norm bound C of one record's gradient
noise_on_mean = 0.00215  # standard deviation in each coordinate

steps = ceil(epochs * records / batch)
print(steps, "steps")

# %%
# Trap 1: the unit of the noise
# -----------------------------
#
# An accountant asks for the *noise multiplier*: the standard deviation of the noise on the **sum**
# of clipped gradients, in units of the **norm bound** C. So multiply by the batch size, and divide
# by C.

multiplier = noise_on_mean * batch / clip
sigma_of_sum = noise_on_mean * batch
print(f"noise on the sum {sigma_of_sum:.3f}, noise multiplier {multiplier:.3f}")

# %%
# Forgetting C is a factor of two here, and makes a private run look like a leak; with C = 2 the
# same slip would make a leak look private. Nothing in the numbers gives it away.

poisson = dpsub.Poisson(batch / records)
delta = 1e-6

for what, value in {"the multiplier": multiplier, "without C": sigma_of_sum}.items():
    found = dpsub.account(poisson, noise_multiplier=value, steps=steps, delta=delta)
    print(f"{what:>15}: epsilon in [{found.lower:.3f}, {found.upper:.3f}]")

# %%
# Every answer has two ends. The upper one is proved for all data sets; the lower one is attained by
# data sets that are known, so that no proof can go below it. For Poisson sampling both are the same
# number up to rounding.  Trap 2: the sampler that the code really uses
# ---------------------------------------------  Read the data loader, not the paper that it cites.
# Does each record enter a batch by its own coin (Poisson)? Is every batch a fresh sample of fixed
# size (WOR)? Or is the data set shuffled once an epoch and cut into batches? For shuffled batches
# no amplification is proved here. But a loader that uses each record at most once an epoch leaks no
# more in it than one release from all records does, so the upper end of the last line holds for it.

wor = dpsub.Wor(batch)
everyone = dpsub.Wor(records)
plan = {
    "Poisson": (poisson, steps, None),
    "Poisson, record replaced": (poisson, steps, "substitute"),
    "fixed size, fresh": (wor, steps, None),
    "no amplification": (everyone, epochs, None),
}


def account(name, noise_multiplier, part=1.0):
    """Bound epsilon of the first part of the plan."""
    sampler, releases, adjacency = plan[name]
    return dpsub.account(
        sampler,
        records,
        noise_multiplier=noise_multiplier,
        steps=max(1, round(part * releases)),
        delta=delta,
        adjacency=adjacency,
    )


for name in plan:
    found = account(name, multiplier)
    ends = f"[{found.lower:6.3f}, {found.upper:6.3f}]"
    print(f"{name:>23}: epsilon in {ends}, {found.adjacency}")

# %%
# Trap 3: the adjacency
# ---------------------
#
# The first two lines are one and the same training run. Under ``add_remove`` neighbouring data sets
# differ by one record more or less, which moves the sum by C; under ``substitute`` one record is
# replaced, which moves it by up to 2 C. The second is the stronger promise. Neither is wrong, but a
# number without its adjacency means nothing, and numbers of two samplers may be compared only under
# the same one. Nor does ``add_remove`` rescue batches of fixed size: a record that is added takes
# another one's place there.

question = {"noise_multiplier": multiplier, "steps": steps}
found = dpsub.account(wor, records, **question, delta=delta, adjacency="add_remove")
ends = f"[{found.lower:.3f}, {found.upper:.3f}]"
print(f"fixed size, fresh: epsilon in {ends}, {found.adjacency}")

# %%
# One more line of code decides: what is the sum divided by? The expected size of the batch is a
# public constant, and all of the above holds. The size that was drawn is not, and there is no bound
# to report:

try:
    dpsub.account(poisson, **question, delta=delta, denominator="realised")
except dpsub.UnsupportedError as reason:
    print(fill(str(reason), 70))

# %%
# Trap 4: δ
# ---------
#
# δ has to be far below 1/n. A mechanism that publishes a random record in full, one time in a
# hundred, leaks each record with probability 0.01/n, and so satisfies δ = 0.01/n at ε = 0. Asking
# for several δ costs little more than asking for one:

deltas = [1e-5, 1e-6, 1e-7, 1e-8]
curve = dpsub.account(poisson, **question, delta=deltas)
for small, upper in zip(deltas, curve.upper, strict=True):
    print(f"delta = {small:.0e} = {small * records:.4f}/n: epsilon <= {upper:.3f}")

# %%
# Trap 5: formulas that guarantee nothing
# ---------------------------------------
#
# Accountants are often used with a pair of distributions in which one record moves the sum by C
# whatever the sampler. In a batch of fixed size a record that leaves makes room for another, and
# the others may all point the other way. That pair's number then lies below what an attack attains:

printed = dpsub.account(wor, records, **question, delta=delta, variant="paper")
proved = account("fixed size, fresh", multiplier)
print(f"by the published pair: {printed.upper:.3f}, no guarantee")
print(f"attack {proved.lower:.3f}, proof {proved.upper:.3f}")

# %%
# Noise for a promise
# -------------------
#
# Turn the question round: which noise does ε = 2 need when one record is replaced? ``refuted`` is a
# multiplier at which an attack exceeds the target; the answer lies just above it.

target = 2.0
found = dpsub.calibrate(poisson, epsilon=target, delta=delta, steps=steps, adjacency="substitute")
needed = ceil(1000 * found.noise_multiplier) / 1000  # up, to the digits that are printed
print(f"noise multiplier {needed:.3f} (refuted: {found.refuted:.4f})")
print(f"noise on the mean, as configured: {needed * clip / batch:.6f}")

# %%
# The picture
# -----------
#
# ε over the training, with both ends, at this noise. The band of batches of fixed size is what is
# not known about them. Without amplification there is one point an epoch.

figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
parts = [0.1, 0.25, 0.5, 0.75, 1.0]
for name, style in zip(plan, ("o-", "s-", "^-", "v--"), strict=True):
    at = [part for part in parts if part * plan[name][1] >= 1]
    answers = [account(name, needed, part) for part in at]
    taken = [part * epochs for part in at]
    lower, upper = [one.lower for one in answers], [one.upper for one in answers]
    (line,) = axes.plot(taken, upper, style, label=name)
    axes.fill_between(taken, lower, upper, color=line.get_color(), alpha=0.3, linewidth=0)
axes.axhline(target, color="0.4", linewidth=1, label="target")
axes.set(xlabel="epochs", ylabel="ε at δ = $10^{-6}$", yscale="log", xlim=(0, None))
axes.set_yticks(ticks := [0.5, 1, 2, 5, 10, 20, 50], [f"{tick:g}" for tick in ticks])
axes.minorticks_off()
figure.legend(loc="outside lower center", ncols=3)
plt.show()

# %%
# The sentence
# ------------
#
# A claim names the mechanism, the sampler, the adjacency, δ, and the accountant, so that a reader
# can repeat it:

promise = account("Poisson, record replaced", needed)
assert promise.upper <= target
sentence = f"""
We train for {steps} steps. In each, every record enters the batch independently with
probability {batch}/{records}; gradients are clipped to norm {clip}, Gaussian noise of
standard deviation {needed:.3f} x {clip} is added to their sum, and the sum is divided by
{batch}. With neighbouring data sets that differ in one replaced record, the sequence of
all models is ({target:g}, {delta:g})-differentially private (upper bound by
dpsub {dpsub.__version__}; an attack attains epsilon = {promise.lower:.3f}).
"""
print(fill(" ".join(sentence.split()), 70))

# %%
# It holds under conditions, which are about your code; no accountant sees them. Go through them
# with the code open:

for condition in promise.conditions:
    print(fill(f"- {condition}", 70, subsequent_indent="  "))
