from grit.studies.race import race
from grit.studies.race.probe import measure


def test_a_race_from_the_command_line(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(race, "measure_apart", measure)  # here, not in a process of its own
    arguments = ("reproduce", "race", "budget=epochs:1", "only=zinc", "--budget", "smoke", "--root", tmp_path / "data")
    assert "Race on stand-in for zinc, 1 epoch each" in command(*arguments)
    assert (tmp_path / "runs/race-smoke/race.png").exists()
    assert "was finished already" in command(*arguments, "seeds=0")
    assert "budget=5: expected budget=epochs:5" in command("reproduce", "race", "budget=5", "--run", "other", code=2)
