"""Which precision `auto` takes: both timed once by a clock that the tests move, and remembered in a file."""

import json
import logging
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from ragqa.models.inference import classifier, precision
from ragqa.models.inference.bert_graph import OpenVinoEngine
from ragqa.models.inference.classifier import SequenceClassifier
from ragqa.models.inference.precision import ROUNDS, SECONDS, Subject, Timings
from ragqa.settings.paths import Paths
from tests.support.processor import SUBJECT, WITH_BF16, Bench
from tests.support.tiny_models import write_classifier


@pytest.fixture(autouse=True)
def _fresh_process(monkeypatch):
    monkeypatch.setattr(precision, "_timed", [])


# What is taken --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fp32", "bf16", "expected"),
    [
        ([2.0], [1.0], "bf16"),
        ([1.0], [2.0], "fp32"),
        ([1.0], [1.0], "fp32"),
        ([1.15], [1.0], "fp32"),  # no gain that is worth bf16's rounding
        ([1.0], [9.0, 9.0, 0.5], "bf16"),  # another program's bursts do not count
        ([9.0, 9.0, 0.5], [1.0], "fp32"),
        ([0.001], [0.0005], "bf16"),
    ],
)
def test_the_faster_one_is_taken_and_fp32_where_there_is_little_between_them(tmp_path, fp32, bf16, expected):
    assert Bench(tmp_path, fp32, bf16).faster() == expected


@pytest.mark.parametrize(
    "cpuinfo", ["flags : fpu avx2 avx512f\n", "Features : bf16 neon\n", "model name : avx512_bf16\n", ""]
)
def test_nothing_is_timed_on_a_processor_without_bf16(tmp_path, cpuinfo):
    bench = Bench(tmp_path, cpuinfo=cpuinfo)
    assert bench.faster() == "fp32"
    assert (bench.made, bench.file.exists()) == ([], False)


def test_nothing_is_timed_where_the_processor_cannot_be_asked(tmp_path):
    bench = Bench(tmp_path)
    bench.timings = Timings(bench.file, tmp_path / "absent")
    assert bench.faster() == "fp32"
    assert bench.made == []


@pytest.mark.parametrize("flag", ["avx512_bf16", "amx_bf16"])
def test_each_flag_of_bf16_is_a_reason_to_time(tmp_path, flag):
    assert Bench(tmp_path, cpuinfo=f"flags\t\t: fpu {flag} sse\n").faster() == "bf16"


def test_a_graphics_card_is_timed_whatever_the_processor_has(tmp_path):
    bench = Bench(tmp_path, cpuinfo="flags : fpu\n")
    assert bench.faster(Subject("scoring", "PyTorch on a card", "ab", on_gpu=True)) == "bf16"


def test_a_run_of_each_comes_first_and_is_not_counted(tmp_path):
    bench = Bench(tmp_path, fp32=[0.1, *[1.0] * 40], bf16=[50.0, *[0.6] * 40])
    assert bench.faster() == "bf16"
    assert bench.timings.read()[0].fp32 == pytest.approx(1.0)


def test_nothing_is_timed_beside_work_that_would_be_counted_and_what_is_known_waits_for_nothing(tmp_path):
    bench, chosen = Bench(tmp_path, [1.0], [0.5]), []
    waiting = threading.Thread(target=lambda: chosen.append(bench.faster()))
    with precision.untimed():
        waiting.start()
        waiting.join(0.2)
        assert (chosen, bench.made) == ([], [])
    waiting.join(60)
    assert chosen == ["bf16"]
    with precision.untimed(), ThreadPoolExecutor(1) as another:
        assert another.submit(bench.faster).result(60) == "bf16"


def test_neither_always_runs_first(tmp_path):
    bench = Bench(tmp_path, [0.002], [0.001])
    bench.faster()
    firsts = bench.ran[2::2]
    assert abs(firsts.count("fp32") - firsts.count("bf16")) <= 1
    assert sorted(bench.made) == ["bf16", "fp32"]


@pytest.mark.parametrize(
    ("fp32", "bf16", "rounds"),
    [(1.0, 0.8, ROUNDS[0]), (9.0, 1.0, ROUNDS[0]), (0.001, 0.001, ROUNDS[1]), (0.05, 0.05, SECONDS / 0.1)],
)
def test_about_a_second_is_spent(tmp_path, fp32, bf16, rounds):
    bench = Bench(tmp_path, [fp32], [bf16])
    bench.faster()
    assert len(bench.ran) == pytest.approx(2 + 2 * rounds, abs=2)


@pytest.mark.parametrize(("on_gpu", "expected"), [(False, "fp32"), (True, "bf16")])
def test_other_programs_do_not_count_but_a_graphics_card_does(tmp_path, monkeypatch, on_gpu, expected):
    """In bf16 the processor computes for longer and the clock on the wall goes on less."""
    wall, processor = Bench(tmp_path / "wall"), Bench(tmp_path / "processor", fp32=[1.0], bf16=[2.0])
    clocks = {"perf_counter": lambda: wall.now, "process_time": lambda: processor.now}
    monkeypatch.setattr(precision, "time", SimpleNamespace(**clocks))
    timings = Timings(tmp_path / "precision.json", tmp_path / "wall" / "cpuinfo")

    def trial(wanted):
        return lambda: (wall.run(wanted), processor.run(wanted))

    assert timings.faster(Subject("scoring", "any", "ab", on_gpu), trial) == expected


def test_the_log_names_the_choice_and_both_timings(tmp_path, caplog):
    with caplog.at_level(logging.INFO):
        Bench(tmp_path).faster()
    assert "bf16 is taken: scoring timed here: fp32 2,000.0 ms, bf16 1,000.0 ms (OpenVINO 1.2.3)" in caplog.text


# What is remembered ---------------------------------------------------------------------------------------------------


def another_process(monkeypatch, tmp_path, **about):
    monkeypatch.setattr(precision, "_timed", [])
    return Bench(tmp_path, **about)


def test_the_next_process_does_not_time_again(tmp_path, monkeypatch):
    Bench(tmp_path).faster()
    later = another_process(monkeypatch, tmp_path, fp32=[1.0], bf16=[9.0])
    assert later.faster() == "bf16"
    assert later.made == []
    (timing,) = later.timings.of_weights(SUBJECT.weights)
    assert (timing.fp32, timing.bf16, timing.purpose) == (2.0, 1.0, "scoring")
    assert timing.processor.startswith("Made Up, flags ")
    later.file.unlink()
    assert another_process(monkeypatch, tmp_path, fp32=[1.0], bf16=[9.0]).faster() == "fp32"


@pytest.mark.parametrize(
    ("subject", "cpuinfo"),
    [
        (Subject("encoding", SUBJECT.library, SUBJECT.weights), WITH_BF16),
        (Subject("scoring", "OpenVINO 1.2.4", SUBJECT.weights), WITH_BF16),
        (Subject("scoring", SUBJECT.library, "cd"), WITH_BF16),
        (SUBJECT, WITH_BF16.replace("Made Up", "Other")),
        (SUBJECT, WITH_BF16.replace("avx512_bf16", "avx512_bf16 amx_bf16")),
    ],
)
def test_another_purpose_library_model_or_processor_is_timed_for_itself(tmp_path, monkeypatch, subject, cpuinfo):
    Bench(tmp_path).faster()
    other = another_process(monkeypatch, tmp_path, fp32=[1.0], bf16=[9.0], cpuinfo=cpuinfo)
    assert other.faster(subject) == "fp32"
    assert len(other.timings.read()) == 2
    assert Bench(tmp_path).faster() == "bf16"


def test_weights_without_a_name_are_timed_each_time_and_not_remembered(tmp_path):
    nameless = Subject("scoring", "OpenVINO 1.2.3", "")
    assert Bench(tmp_path).faster(nameless) == "bf16"
    assert Bench(tmp_path, fp32=[1.0]).faster(nameless) == "fp32"
    assert not (tmp_path / "precision.json").exists()


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xfe\x00", b"3", b"{}", b'["a"]', b'[{"fp32": 1}]', b"[[]]", b"null"]
)
def test_a_file_that_cannot_be_read_is_made_again(tmp_path, content):
    bench = Bench(tmp_path)
    bench.file.write_bytes(content)
    assert bench.faster() == "bf16"
    assert [timing.weights for timing in bench.timings.read()] == [SUBJECT.weights]


@pytest.mark.parametrize("seconds", ["NaN", "Infinity", '"quick"', "null"])
def test_seconds_that_are_none_are_not_believed(tmp_path, monkeypatch, seconds):
    Bench(tmp_path).faster()
    bench = another_process(monkeypatch, tmp_path, fp32=[1.0])
    bench.file.write_text(bench.file.read_text().replace('"fp32": 2.0', f'"fp32": {seconds}'))
    assert bench.faster() == "fp32"
    assert bench.made


def test_where_nothing_can_be_written_it_is_timed_once_a_process(tmp_path, monkeypatch, caplog):
    (tmp_path / "home").write_text("a file, no folder")
    bench = Bench(tmp_path)
    bench.timings = Timings(tmp_path / "home" / "precision.json", tmp_path / "cpuinfo", lambda: bench.now)
    assert [bench.faster(), bench.faster()] == ["bf16", "bf16"]
    assert sorted(bench.made) == ["bf16", "fp32"]
    assert "cannot be written" in caplog.text
    assert [timing.bf16 for timing in bench.timings.of_weights(SUBJECT.weights)] == [1.0]


def test_a_folder_that_is_not_there_is_made(tmp_path):
    bench = Bench(tmp_path)
    bench.timings = Timings(tmp_path / "new" / "home" / "p.json", tmp_path / "cpuinfo", lambda: bench.now)
    bench.faster()
    assert [file.name for file in (tmp_path / "new" / "home").iterdir()] == ["p.json"]


def test_of_two_processes_that_time_at_once_the_first_to_write_decides_for_both(tmp_path, monkeypatch):
    late, early = Bench(tmp_path, fp32=[1.0], bf16=[9.0]), Bench(tmp_path)
    late.trial("fp32")

    def trial(wanted):
        if wanted == "bf16" and not early.file.exists():  # while the late one is timing
            early.timings._write([early.timings._time(SUBJECT, early.trial)])
        return late.trial(wanted)

    assert late.timings.faster(SUBJECT, trial) == "bf16"
    assert len(late.timings.read()) == 1


@pytest.mark.long
def test_processes_that_write_at_once_leave_a_whole_file(tmp_path):
    code = (
        "import sys; from pathlib import Path; from ragqa.models.inference.precision import Subject, Timings\n"
        "timings = Timings(Path(sys.argv[1]) / 'precision.json', Path(sys.argv[1]) / 'cpuinfo')\n"
        "for n in range(60):\n"
        "    timings.faster(Subject('scoring', sys.argv[2], str(n)), lambda wanted: lambda: None)\n"
    )
    (tmp_path / "cpuinfo").write_text(WITH_BF16)
    writers = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), str(n)]) for n in range(3)]
    file, seen = tmp_path / "precision.json", 0
    while any(writer.poll() is None for writer in writers):
        if file.exists():
            seen = max(seen, len(json.loads(file.read_text())))
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    assert seen >= 60 / 2
    assert {timing.processor for timing in Timings(file).read()} == {Timings(file, tmp_path / "cpuinfo").processor}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cpuinfo", "precision.json"]


def test_the_file_is_under_ragqa_home_and_forgets_the_oldest(tmp_path, monkeypatch):
    monkeypatch.setenv("RAGQA_HOME", str(tmp_path))
    assert Paths.from_env().precision_timings == tmp_path / "precision.json"
    monkeypatch.setattr(precision, "MOST_KEPT", 3)
    bench = Bench(tmp_path)
    for n in range(1, 6):
        bench.faster(Subject("scoring", "OpenVINO", str(n)))
    assert [timing.weights for timing in precision.timings().read()] == ["3", "4", "5"]


# With models ----------------------------------------------------------------------------------------------------------


class Watched:
    """What was asked for, compiled and run, on a machine where bf16 takes ``bf16`` and fp32 1 s."""

    def __init__(self, monkeypatch, tmp_path, bf16):
        self.bench = bench = Bench(tmp_path / "machine", fp32=[1.0], bf16=[bf16])
        self.shapes = []
        watched = self

        class Engine(OpenVinoEngine):
            def __init__(self, folder, shape, precision, *more, **options):
                super().__init__(folder, shape, precision, *more, **options)
                bench.made.append(precision)
                self.precision = precision  # as on a processor with bf16

            def infer(self, batches):
                bench.run(self.precision)
                watched.shapes.append([batch["input_ids"].shape for batch in batches])
                return super().infer(batches)

        self.engine = Engine
        monkeypatch.setattr("ragqa.models.inference.classifier.OpenVinoEngine", Engine)
        monkeypatch.setattr("ragqa.retrieval.encoder.OpenVinoEngine", Engine)
        for module in ("models.inference.classifier", "retrieval.encoder"):
            monkeypatch.setattr(f"ragqa.{module}.timings", lambda: bench.timings)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    labels = ["contradiction", "entailment", "neutral"]
    return write_classifier(tmp_path_factory.mktemp("model"), labels, positions=512)


@pytest.mark.long
@pytest.mark.parametrize(("seconds", "expected"), [(0.5, "bf16"), (3.0, "fp32")])
def test_a_classifier_keeps_the_faster_engine_and_remembers_it(folder, tmp_path, monkeypatch, seconds, expected):
    watched = Watched(monkeypatch, tmp_path, seconds)
    assert SequenceClassifier(folder, fingerprint="ab").arithmetic.startswith(f"{expected}, OpenVINO ")
    assert watched.bench.made == ["fp32", "bf16"]
    assert watched.shapes[0] == [classifier.TRIAL] * classifier.STREAMS
    again = SequenceClassifier(folder, fingerprint="ab")
    assert watched.bench.made == ["fp32", "bf16", expected]
    again.logits([("the sky", "is blue")])
    assert watched.bench.ran[-1] == expected
    assert [timing.purpose for timing in watched.bench.timings.of_weights("ab")] == ["scoring"]


@pytest.mark.long
@pytest.mark.parametrize("asked", ["fp32", "bf16"])
def test_a_precision_that_is_asked_for_is_taken_untimed(folder, tmp_path, monkeypatch, asked):
    watched = Watched(monkeypatch, tmp_path, 3.0 if asked == "bf16" else 0.1)
    assert SequenceClassifier(folder, asked, fingerprint="ab").arithmetic.startswith(asked)
    assert watched.bench.made == [asked]
    assert watched.bench.timings.of_weights("ab") == []


@pytest.mark.long
def test_a_window_that_is_short_is_not_exceeded(tmp_path, monkeypatch):
    small = write_classifier(tmp_path / "small", ["contradiction", "entailment", "neutral"], positions=16)
    watched = Watched(monkeypatch, tmp_path, 0.5)
    assert SequenceClassifier(small).arithmetic.startswith("bf16, OpenVINO ")
    assert watched.shapes[0][0] == (classifier.TRIAL[0], 16)


@pytest.mark.long
def test_torch_is_timed_likewise(folder, tmp_path, monkeypatch):
    from ragqa.models.inference.torch_engine import TorchEngine

    bench = Bench(tmp_path / "machine", fp32=[1.0], bf16=[0.5])
    plain = TorchEngine.infer

    def infer(engine, batches):
        bench.run(engine.precision)
        return plain(engine, batches)

    monkeypatch.setattr(TorchEngine, "infer", infer)
    monkeypatch.setattr(classifier, "openvino_version", lambda: None)
    monkeypatch.setattr(classifier, "timings", lambda: bench.timings)
    assert SequenceClassifier(folder, fingerprint="ab").arithmetic.startswith("bf16, PyTorch ")
    assert [timing.library[:8] for timing in bench.timings.of_weights("ab")] == ["PyTorch "]


@pytest.mark.model
@pytest.mark.parametrize(("seconds", "expected"), [(0.5, "bf16"), (3.0, "fp32")])
def test_an_encoder_takes_the_faster_one_for_passages_and_fp32_for_questions(tmp_path, monkeypatch, seconds, expected):
    from ragqa.retrieval.encoder import TRIAL, BertEncoder

    watched = Watched(monkeypatch, tmp_path, seconds)
    encoder = BertEncoder()
    assert encoder.info.precision.startswith(f"{expected}, OpenVINO ")
    assert watched.shapes[0] == [TRIAL]
    (timing,) = watched.bench.timings.of_weights(encoder.info.fingerprint)
    assert timing.purpose == "encoding"
    watched.bench.made.clear()
    later = BertEncoder()
    assert watched.bench.made == []
    assert later.info == encoder.info
    later.encode(["one"])
    assert watched.bench.ran[-1] == expected
    question = later.encode_query("one")
    assert watched.bench.ran[-1] == "fp32"
    assert np.allclose(question, BertEncoder(precision="fp32").encode(["one"]))
