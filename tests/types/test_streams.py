from ragqa.types.streams import mapped, returned


def counted(n):
    yield from range(n)
    return n * 10


def test_a_stream_is_drained_and_its_result_given():
    seen = []
    assert returned(counted(3), seen.append) == 30
    assert seen == [0, 1, 2]


def test_nothing_is_called_where_only_the_result_is_wanted():
    assert returned(counted(2)) == 20
    assert returned(counted(0), each=lambda value: 1 / 0) == 0


def test_values_are_mapped_and_the_result_is_passed_on():
    def work():
        yield 1
        yield 2
        return "done"

    shown = []
    assert returned(mapped(work(), lambda n: 10 * n), shown.append) == "done"
    assert shown == [10, 20]
