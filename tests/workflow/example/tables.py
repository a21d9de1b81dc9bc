"""Tables of the example paper."""

from dpsub.reproduce.layout import Layout
from dpsub.reproduce.tables import Part, Table, mean


class MeansOfSamples(Table):
    title = "Table 1. Means of samples"
    name = "means"
    caption = "Means of noisy samples, and how many different records they have."
    keys = ("sampler", "b")
    absent = {"b": 0}  # noqa: RUF012
    layout = Layout(stub=("sampler", "b"))
    parts = (Part("example_means", {"mean": mean("mean"), "distinct": mean("distinct")}),)


class EndsOfWalks(Table):
    title = "Table 2. Ends of random walks"
    name = "walks"
    caption = "Where random walks end, on average."
    keys = ("scale",)
    layout = Layout(stub=("scale",))
    parts = (Part("example_walks", {"end": mean("end")}),)


class AgesOfAdults(Table):
    title = "Table 3. Ages"
    name = "ages"
    caption = "The mean age in the data set."
    keys = ("group",)
    parts = (Part("example_ages", {"age": "age"}),)
