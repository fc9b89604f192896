"""Buckets, counts and sums."""

from broker.histogram import Histogram


def test_a_value_counts_in_the_bucket_whose_edge_it_does_not_exceed() -> None:
    histogram = Histogram((0.1, 1.0))
    for value in (0.05, 0.1, 0.2, 1.0, 7.0):
        histogram.add(value)
    assert histogram.counts == [2, 2, 1]
    assert histogram.count == 5
    assert histogram.sum == 0.05 + 0.1 + 0.2 + 1.0 + 7.0
