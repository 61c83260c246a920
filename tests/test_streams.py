from ragqa.streams import returned


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
