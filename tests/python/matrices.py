"""See numpy.t."""
import numpy as np

import linkwise as lw
from tap import refused, run

RATES = np.array([[0, 40, 41.5], [42, 0, np.nan], [44, 45, 0]])


def off_diagonal(matrix):
    matrix = np.array(matrix, dtype=float)
    np.fill_diagonal(matrix, np.nan)
    return matrix


def test_round_trip():
    "a cluster from matrices gives them back, to the last bit in 15 digits"
    delays = np.array([[0, 10, 11], [12, 0, 13], [14, 15, 0.5]])
    cluster = lw.Cluster.from_matrix(RATES, latency_us=delays, gpu_type="h100-sxm5-80g", gpus=2,
                                     intra=370, intra_latency_us=7)
    np.testing.assert_allclose(cluster.inter_bandwidth(), off_diagonal(RATES), rtol=1e-14)
    np.testing.assert_allclose(cluster.inter_latency(), off_diagonal(delays), rtol=1e-14)
    whole = cluster.bandwidth()
    assert whole.shape == (6, 6) and whole[0, 1] == 370 and whole[1, 3] == 40
    assert np.isnan(whole[0, 0]) and np.isnan(whole[2, 4]) and whole[4, 2] == 45
    np.testing.assert_array_equal(cluster.bandwidth([5, 0]), whole[np.ix_([5, 0], [5, 0])])
    assert abs(cluster.latency([2, 3])[0, 1] - 7) < 1e-12
    refused(lw.UsageError, "0 to 5, found 6", cluster.bandwidth, [6])
    refused(lw.UsageError, "gpus: expected an integer", cluster.bandwidth, [0, 2**32 + 1])
    np.testing.assert_array_equal(cluster.latency(np.array([2, 3])), cluster.latency([2, 3]))


def test_kinds():
    "integers, single precision, transposed views and NumPy's own numbers are taken"
    for rates in RATES.astype("f4"), np.ones((3, 3), int), RATES.T, np.asfortranarray(RATES):
        cluster = lw.Cluster.from_matrix(rates, gpu_type="t4", gpus=np.int64(1).item(), intra=1,
                                         latency_us=np.float64(3), node_total=np.array([9, 8, 7]))
        np.testing.assert_allclose(cluster.inter_bandwidth(), off_diagonal(rates), rtol=1e-14)
    refused(lw.UsageError, "3 rows of 3", lw.Cluster.from_matrix, RATES[:, :2], gpu_type="t4",
            gpus=1, intra=1)
    refused(lw.InvalidInput, "bandwidth_gb_per_s", lw.Cluster.from_matrix, -RATES - 1,
            gpu_type="t4", gpus=1, intra=1)


def test_drained():
    "drained GPUs of a node in use have no row, a drained node's have"
    cluster = lw.Cluster.from_json({
        "version": 1, "name": "c",
        "nodes": [{"name": n, "gpus": 2, "gpu_type": "t4", "gpu_state": s}
                  for n, s in (("a", ["drained", "ok"]), ("b", ["drained"] * 2))],
        "links": {"intra": {"bandwidth_gb_per_s": 9, "latency_us": 1},
                  "inter": {"bandwidth_gb_per_s": 5, "latency_us": 1}}})
    assert [(n.gpus, n.drained) for n in cluster.nodes] == [(1, False), (2, True)]
    rates = cluster.bandwidth()
    assert cluster.gpus == 3 and rates[0, 1] == rates[0, 2] == 5 and rates[1, 2] == 9


def test_slow_link():
    "a plan from a matrix keeps away from its slow link"
    rates = np.full((4, 4), 48.0)
    rates[1, 2] = rates[2, 1] = 2.0
    cluster = lw.Cluster.from_matrix(rates, gpu_type="a100-sxm4-40g", gpus=1, intra=230)
    plan = lw.plan(cluster, "llama-2-7b", lw.Job(2048, 16), lw.Config(pp=4, tp=1, dp=1))
    order = [int(rank.node[1:]) for rank in plan.ranks]
    assert not {(1, 2), (2, 1)} & set(zip(order, order[1:])), order
    ranks = np.array(lw.mesh(plan))
    assert ranks.shape == (4, 1, 1, 1) and list(ranks.flat) == [0, 1, 2, 3]


if __name__ == "__main__":
    run(dict(globals()))
