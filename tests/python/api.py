"""See api.t."""
import json
import math
import os
import pickle
import signal
import subprocess
import threading
import time
import warnings
from unittest import mock

import linkwise as lw
from linkwise.library import library
from tap import refused, run

LINE = "2x4 h100-sxm5-80g intra:370 inter:48"
MODEL = lw.Model("llama-2-7b")
JOB = lw.Job(4096, 64)
PLAN = lw.plan(LINE, MODEL, JOB)
LLAMA = {"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
         "num_attention_heads": 32, "intermediate_size": 11008, "vocab_size": 32000}


def command(*words):
    return subprocess.run([os.environ["LINKWISE"], *words], check=True, capture_output=True).stdout


def test_plan():
    "plan finds what the command line finds"
    command("plan", LINE, "llama-2-7b", "--seq", "4096", "--global-batch", "64", "-o", "cli.json")
    cli = lw.Plan.read("cli.json")
    assert cli.degrees == PLAN.degrees and cli.ranks == PLAN.ranks
    assert cli.step_s == PLAN.step_s and cli.peak_bytes == PLAN.peak_bytes
    assert 0 < PLAN.lower_bound_s <= PLAN.step_s
    PLAN.write("again.json")
    assert lw.Plan.read("again.json").document == PLAN.document
    command("check", "again.json")


def test_fixed():
    "what is fixed holds, and settings do"
    config = lw.Config(tp=2, pp=2, recompute="full")
    plan = lw.plan("4x4 h100-sxm5-80g intra:370 inter:48", MODEL, JOB, config,
                   lw.Settings(exclude="n1", granularity="node", top=3))
    assert plan.degrees["tp"] == 2 and plan.degrees["pp"] == 2
    assert plan.document["recompute"] == "full" and len(plan.document["search"]["top"]) <= 3
    assert "n1" not in {rank.node for rank in plan.ranks}


def test_mem():
    "mem and time say what the command line says"
    config = lw.Config(tp=2, pp=2, dp=2, layers=[10, 22])
    asked = ["--seq", "4096", "--global-batch", "64", "--tp", "2", "--pp", "2", "--dp", "2", "--json",
             "--layers-per-stage", "10,22"]
    memory = lw.mem(MODEL, "h100-sxm5-80g", JOB, config)
    said = json.loads(command("mem", "llama-2-7b", "--gpu", "h100-sxm5-80g", *asked))
    assert memory.stage == 1 and memory.peak_bytes < memory.gpu_bytes
    assert math.isclose(memory.peak_bytes, said["per_stage"][1]["peak_bytes"])
    assert lw.mem(MODEL, "h100-sxm5-80g", JOB, config, stage=0).peak_bytes < memory.peak_bytes
    estimate = lw.time(LINE, MODEL, JOB, config)
    said = json.loads(command("time", LINE, "llama-2-7b", *asked))
    assert math.isclose(estimate.step_s, said["step_s"])
    parts = "compute tp cp ep bubble pp dp optimizer".split()
    assert math.isclose(sum(getattr(estimate, p + "_s") for p in parts), estimate.step_s)
    assert lw.time(LINE, MODEL, JOB, config, cost_model="amp").step_s != estimate.step_s


def test_model():
    "a model from its config, by name, by its fields"
    model = lw.Model.from_config(LLAMA, "mine")
    assert model.name == "mine" and model.parameters == MODEL.parameters
    assert "llama-2-7b" in lw.models() and "h100-sxm5-80g" in lw.gpu_types()
    assert lw.version() == command("--version").split()[1].decode()


def test_profile():
    "profiles are taken by name"
    other = lw.mem(MODEL, "h100-sxm5-80g", JOB, profile="deepspeed")
    assert other != lw.mem(MODEL, "h100-sxm5-80g", JOB)
    refused(lw.FileError, "no-such", lw.mem, MODEL, "t4", JOB, profile="no-such")


def test_cluster():
    "a cluster from lists, and its nodes"
    cluster = lw.Cluster.from_matrix([[None, 20.0], [10.0, math.nan]], gpu_type="t4", gpus=2,
                                     intra=5, nodes=["a", "b"], node_total=[30, 40])
    assert [(n.name, n.gpus, n.first_gpu) for n in cluster.nodes] == [("a", 2, 0), ("b", 2, 2)]
    links = json.loads(cluster.to_json())["links"]
    assert links["inter"]["bandwidth_gb_per_s"][1][0] == 10
    assert links["inter"]["node_gb_per_s"] == [30, 40]
    again = lw.Cluster.from_json(cluster.to_json())
    assert again.nodes == cluster.nodes and again.gpus == 4


def test_exceptions():
    "every status is an exception with the library's words and the program's exit code"
    tiny = "1x1 t4"
    assert refused(lw.FileError, "/nowhere", lw.Cluster, "/nowhere").exit_code == 1
    assert refused(lw.InvalidInput, "expected", lw.Cluster.from_json, {}).exit_code == 1
    assert refused(lw.UsageError, '"abacus"', lw.mem, MODEL, "abacus", JOB).exit_code == 2
    assert refused(lw.NothingFits, "nothing fits in memory; closest", lw.plan, tiny,
                   "llama-3-405b", JOB).exit_code == 3
    refused(lw.InvalidInput, "3", lw.time, LINE, MODEL, JOB, lw.Config(tp=3))
    refused(lw.UsageError, "zero: expected 0 to 3", lw.time, LINE, MODEL, JOB, lw.Config(zero=7))
    refused(lw.UsageError, "objective", lw.plan, LINE, MODEL, JOB, lw.Config(),
            lw.Settings(objective="fun"))
    refused(lw.InvalidInput, "model", lw.Model.from_config, {"hidden_size": -1})
    for rows in [[0, 1], [1]], [1, 2], ["ab", "cd"], [[0, 1j], [1, 0]], [[0, 10**400], [1, 0]]:
        refused(lw.UsageError, "2 rows of 2", lw.Cluster.from_matrix, rows, gpu_type="t4",
                gpus=1, intra=1)
    for job in None, {"seq": 4096}, lw.Job, lw.Config():
        refused(lw.UsageError, "expected a linkwise.Job, found", lw.plan, LINE, MODEL, job)
        refused(lw.UsageError, "expected a linkwise.Job, found", lw.mem, MODEL, "t4", job)
    refused(lw.UsageError, "expected a linkwise.Config, found", lw.time, LINE, MODEL, JOB, JOB)
    refused(lw.UsageError, "expected a linkwise.Settings, found", lw.plan, LINE, MODEL,
            settings=None)
    refused(lw.FileError, "/nowhere", lw.Plan.read, "/nowhere")
    for words in "{", "[]", '{"degrees": {"tp": 1}, "ranks": []}':
        refused(lw.InvalidInput, "expected a plan", lw.Plan, words)
    few = json.loads(PLAN.to_json())
    few["ranks"].pop()
    refused(lw.InvalidInput, "7 ranks for degrees of 8", lw.Plan, json.dumps(few))
    edited = json.loads(PLAN.to_json())
    edited["ranks"][1] = dict(edited["ranks"][0], rank=1)
    refused(lw.InvalidInput, "", lw.emit, lw.Plan(json.dumps(edited)), "env", "twice")
    refused(lw.FileError, "/nowhere", PLAN.write, "/nowhere/plan.json")
    assert isinstance(refused(lw.FileError, "", lw.Cluster, "/nowhere"), OSError)


def test_layers():
    "layers are one a stage, and a search takes none"
    for pp, layers in (32, [1] * 8), (2, [16, 16, 5]), (None, [16, 16]), (2, []):
        words = f"layers: expected {pp or 1}, as pp says, found {len(layers)}"
        refused(lw.UsageError, words, lw.mem, MODEL, "t4", JOB, lw.Config(pp=pp, layers=layers))
    for layers in [-3, 35], [16, 17]:
        refused(lw.InvalidInput, "32 in all", lw.time, LINE, MODEL, JOB,
                lw.Config(pp=2, dp=4, layers=layers))
    refused(lw.UsageError, "layers: a search finds them", lw.plan, LINE, MODEL, JOB,
            lw.Config(pp=2, layers=[16, 16]))


def test_numbers():
    "numbers that C would cut off or take for open are refused"
    over = 2**32
    for job in lw.Job(over + 1024, 64), lw.Job(4096, over + 64), lw.Job(4096, -over + 64):
        refused(lw.UsageError, "integer of 32 bits", lw.mem, MODEL, "t4", job)
    refused(lw.UsageError, "stage: expected an integer", lw.mem, MODEL, "t4", JOB, stage=over)
    refused(lw.UsageError, "layers", lw.mem, MODEL, "t4", JOB, lw.Config(layers=[over + 32]))
    refused(lw.UsageError, "layers: expected several, found 5", lw.mem, MODEL, "t4", JOB, lw.Config(layers=5))
    refused(lw.UsageError, "nodes: expected several, found 1.5", lw.Cluster.from_matrix, [[0, 1], [1, 0]],
            gpu_type="t4", gpus=1, intra=9, nodes=1.5)
    for seed in -1, 2 * over**2:
        refused(lw.UsageError, "seed: ", lw.plan, LINE, MODEL, JOB, settings=lw.Settings(seed=seed))
    bad = (over + 1, "an integer of 32 bits"), (-1, "None or 0"), (1.0, "an integer")
    for name in "tp pp dp cp ep etp vpp micro_batch zero sequence_parallel optimizer_bytes shard".split():
        for value, words in bad:
            refused(lw.UsageError, f"{name}: expected {words}", lw.mem, MODEL, "t4", JOB,
                    lw.Config(**{name: value}))
    refused(lw.UsageError, "tie", lw.plan, LINE, MODEL, JOB, settings=lw.Settings(tie="none"))
    for batch in -1, -64:
        refused(lw.InvalidInput, f"found {batch}", lw.time, LINE, MODEL, lw.Job(4096, batch))


def test_usual():
    "a job without numbers and a GPU by its short name are those of the command line"
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        memory = lw.mem(MODEL, "h100", config=lw.Config(tp=2, pp=4))
        estimate = lw.time(LINE, MODEL)
        job = lw.plan(LINE, MODEL).document["job"]
    said = json.loads(command("mem", "llama-2-7b", "--gpu", "h100", "--tp", "2", "--pp", "4",
                              "--json"))
    assert math.isclose(memory.peak_bytes, max(s["peak_bytes"] for s in said["per_stage"]))
    said = json.loads(command("time", LINE, "llama-2-7b", "--json"))
    assert math.isclose(estimate.step_s, said["step_s"])
    assert (job["seq"], job["global_batch"]) == (4096, 1024)
    assert sum("h100: taken as h100-sxm5-80g" in str(w.message) for w in seen) == 1
    assert sum("tokens, as llama-2-7b is usually trained" in str(w.message) for w in seen) == 3
    assert sum("1024 sequences" in str(w.message) for w in seen) == 2
    refused(lw.UsageError, "did you mean a100-sxm4-80g?", lw.mem, MODEL, "a100-smx4-80g", JOB)


def test_errors():
    "what Python itself would fail with is a LinkwiseError, too; the classes are those of the page"
    for kind, also in ((lw.InvalidInput, ValueError), (lw.UsageError, ValueError), (lw.FileError, OSError),
                       (lw.LibraryNotFound, lw.FileError), (lw.NothingFits, Exception), (lw.OutOfMemory, MemoryError)):
        assert issubclass(kind, lw.LinkwiseError) and issubclass(kind, also), kind
    with open("latin.json", "wb") as file:
        file.write(b'{"caf\xe9": 1}')
    refused(lw.InvalidInput, "latin.json: expected a plan", lw.Plan.read, "latin.json")
    degrees = dict(PLAN.degrees, etp=0)
    for words in "[" * 100000, json.dumps(dict(PLAN.document, degrees=degrees)):
        refused(lw.InvalidInput, "expected a plan", lw.Plan, words)
    for word in None, 7, LINE + "\0", "\ud800":
        for function in lw.Cluster, lw.Model, lw.Plan.read, PLAN.write:
            refused(lw.UsageError, "found " + repr(word), function, word)
    for what, function, wrong in (
            ("a linkwise.Cluster, a path, or a line", lw.time, (MODEL, LINE)),
            ("a preset's name or a config.json's path", lw.time, (LINE, None)),
            ("the name of a GPU type", lw.mem, (MODEL, lw.Cluster(LINE))),
            ("a plan file's path", lw.emit, (None,)), ("a plan file's path", lw.mesh, (7,)),
            ("a dict, as config.to_dict()", lw.Model.from_config, ([1],)),
            ("a function", lambda: lw.plan(LINE, MODEL, JOB, progress=5), ())):
        refused(lw.UsageError, "expected " + what, function, *wrong)
    refused(lw.FileError, 'a cluster on one line is as "4x8 h100"', lw.Cluster, "8xH100")
    refused(lw.InvalidInput, "degrees and ranks: no 'degrees'", lw.Plan, "{}")
    refused(lw.UsageError, 'precision: expected bf16, fp16', lw.time, LINE, MODEL, lw.Job(precision="float16"))
    PLAN.write("path.json")
    assert lw.mesh("path.json") == lw.mesh(PLAN) and lw.megatron_ranks("path.json") == lw.megatron_ranks(PLAN)
    lw.emit("path.json", to="env", folder="from-path")
    refused(lw.InvalidInput, "model: hidden_size: expected", lw.Model.from_config, dict(LLAMA, hidden_size=math.inf))
    assert lw.Model.from_config(dict(LLAMA, time_step_limit=[0.0, math.inf])).parameters == MODEL.parameters
    refused(lw.InvalidInput, "cluster: ", lw.Cluster.from_json, {"nodes": math.inf})
    refused(lw.InvalidInput, "cluster: ", lw.Cluster.from_json, {"nodes": {1, 2}})
    refused(lw.UsageError, "bandwidth[1][0]: expected a finite number or NaN, found inf",
            lw.Cluster.from_matrix, [[0, 1], [math.inf, 0]], gpu_type="t4", gpus=1, intra=1)
    library.cache_clear()
    try:
        with mock.patch.dict(os.environ, LINKWISE_LIBRARY="libm.so.6"):
            refused(lw.LibraryNotFound, "undefined symbol: linkwise_version", lw.version)
    finally:
        library.cache_clear()


def test_warnings():
    "remarks are warnings at the caller's line"
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        lw.mem(MODEL, "v100-sxm2-32g", JOB)
        lw.Model.from_config(dict(LLAMA, model_type="no_such_llama"))
    assert len(seen) == 2 and {w.category for w in seen} == {lw.LinkwiseWarning}, seen
    assert "bf16" in str(seen[0].message)
    assert all(os.path.basename(w.filename) == "api.py" for w in seen), [w.filename for w in seen]


def test_emit():
    "emit writes what was asked for; what a launcher cannot is an exception, with all a warning"
    lw.emit(PLAN, "openmpi,env", "some")
    assert os.path.exists("some/openmpi/rankfile") and not os.path.exists("some/slurm")
    with open("some/map.txt", encoding="ascii") as table:
        rows = [line.split() for line in table]
    assert {(host, int(gpu)): int(rank) for rank, host, gpu in rows} == lw.megatron_ranks(PLAN)
    refused(lw.UsageError, "bus", lw.emit, PLAN, "bus", "none")
    assert not os.path.exists("none") and "slurm" in lw.launchers()
    other = lw.plan(LINE, MODEL, JOB, lw.Config(pp=2, schedule="gpipe"))
    refused(lw.NothingFits, "gpipe", lw.emit, other, "megatron", "none")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        lw.emit(other, folder="all")
    assert any("megatron" in str(w.message) for w in seen), seen


def test_progress():
    "progress is told, stops a search, and what it raises comes out"
    told = []
    plan = lw.plan(LINE, MODEL, JOB, progress=lambda now: told.append(now) or True)
    assert len(told) == 1 and told[0].total > 0 and plan.step_s >= PLAN.step_s

    def fail(now):
        raise KeyError("mine")

    refused(KeyError, "mine", lw.plan, LINE, MODEL, JOB, progress=fail)


def test_threads():
    "threads plan and ask for memory side by side, on one cluster and model"
    cluster = lw.Cluster(LINE)
    want = lw.mem(MODEL, "h100-sxm5-80g", JOB)
    wrong = []

    def planning():
        for _ in range(3):
            if lw.plan(cluster, MODEL, JOB).document["ranks"] != PLAN.document["ranks"]:
                wrong.append("plan")

    def asking():
        for _ in range(200):
            if lw.mem(MODEL, "h100-sxm5-80g", JOB) != want:
                wrong.append("mem")

    threads = [threading.Thread(target=f) for f in (planning, asking, planning, asking)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong


def test_interrupt():
    "Ctrl-C in a long search gives control back"
    command("cluster", "synth", "mixed", "--nodes", "96", "--gpus", "8", "--seed", "3",
            "-o", "many.json")
    # A shell's background job, and what it starts, ignores Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    cluster, started = lw.Cluster("many.json"), threading.Event()
    threading.Thread(target=lambda: started.wait() and os.kill(os.getpid(), signal.SIGINT)).start()
    at = time.monotonic()
    try:
        lw.plan(cluster, "llama-3-405b", lw.Job(8192, 2048), progress=lambda now: started.set())
    except KeyboardInterrupt:
        assert time.monotonic() - at < 10  # the whole search takes several times as long
        assert lw.plan(LINE, MODEL, JOB).ranks == PLAN.ranks
    else:
        raise AssertionError("the search ended before it was interrupted")


def test_pickle():
    "a plan goes to another process as its text"
    assert pickle.loads(pickle.dumps(PLAN)).ranks == PLAN.ranks


if __name__ == "__main__":
    run(dict(globals()))
