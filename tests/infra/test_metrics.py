"""Figures for Prometheus: its text format, and that nothing gets lost between threads."""

from threading import Thread

from ragqa.infra.metrics import BOUNDS, MOST_SERIES, MetricRegistry


def test_the_text_is_prometheus_own_format():
    figures = MetricRegistry()
    figures.count("ragqa_questions_total", outcome="answered")
    figures.count("ragqa_questions_total", 2, outcome="answered")
    figures.count("ragqa_errors_total", kind='odd "\\\n')
    figures.observe("ragqa_stage_seconds", 0.02, stage="scoring")
    figures.observe("ragqa_stage_seconds", 1.0, stage="scoring")
    figures.observe("ragqa_stage_seconds", 500.0, stage="scoring")
    figures.watch("ragqa_runs", "Runs.", lambda: 4)
    lines = figures.text().splitlines()
    assert 'ragqa_questions_total{outcome="answered"} 3' in lines
    assert r'ragqa_errors_total{kind="odd \"\\\n"} 1' in lines
    buckets = [line for line in lines if line.startswith("ragqa_stage_seconds_bucket")]
    assert [int(line.rpartition(" ")[2]) for line in buckets] == [0, 1, 1, 1, 2, 2, 2, 2, 2, 3]
    assert len(buckets) == len(BOUNDS) + 1
    assert 'le="+Inf"' in buckets[-1]
    assert 'ragqa_stage_seconds_sum{stage="scoring"} 501.020000' in lines
    assert 'ragqa_stage_seconds_count{stage="scoring"} 3' in lines
    assert lines[-3:] == ["# HELP ragqa_runs Runs.", "# TYPE ragqa_runs gauge", "ragqa_runs 4"]


def test_threads_lose_no_count_and_labels_are_bounded():
    figures = MetricRegistry()

    def work():
        for n in range(1000):
            figures.count("ragqa_pairs_scored_total")
            figures.count("ragqa_errors_total", kind=str(n))

    threads = [Thread(target=work) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert "\nragqa_pairs_scored_total 8000\n" in figures.text()
    assert figures.text().count("ragqa_errors_total{") < MOST_SERIES
