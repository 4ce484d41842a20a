import grit


def test_every_public_name_resolves():
    assert sorted(grit.__all__) == sorted(grit._HOME)
    for name in grit.__all__:
        assert getattr(grit, name) is not None
    assert set(grit.__all__) <= set(dir(grit))
