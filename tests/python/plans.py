"""Plans by hand for tests of ranks: interleaved over hosts."""
import json

import linkwise as lw


def plan(hosts, gpus, **degrees):
    """Ranks go over the hosts from the last to the first, GPU by GPU."""
    degrees = dict({"tp": 1, "pp": 1, "dp": 1, "cp": 1, "ep": 1}, **degrees)
    places = [(host, gpu) for gpu in range(gpus) for host in reversed(hosts)]
    ranks = [{"rank": r, "node": host, "gpu": gpu} for r, (host, gpu) in enumerate(places)]
    nodes = [{"name": h, "gpu_uuid": [f"GPU-{h}-{i}" for i in range(gpus)]} for h in hosts]
    return lw.Plan(json.dumps({"degrees": degrees, "ranks": ranks, "cluster": {"nodes": nodes}}))
