import resource
import subprocess
import sys

import grit


def run(*arguments, code=0):
    done = subprocess.run([sys.executable, "-m", "grit", *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr
    return done


def test_importing_the_command_loads_nothing_heavy():
    heavy = "('torch', 'rdkit', 'matplotlib', 'numpy', 'pydantic')"
    program = f"import sys, grit.cli; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_help_is_quick():
    def spent():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = spent()
    assert "recipes" in run("--help").stdout
    assert spent() - before < 0.5


def test_version():
    assert run("--version").stdout == f"grit {grit.__version__}\n"


def test_recipes():
    listed = {line.split()[0]: line for line in run("recipes").stdout.splitlines() if line}
    assert "Table 1, ZINC" in listed["zinc"]
    assert "GPS (Rampášek et al. 2022)" in listed["zinc-gps"]
    assert "num_layers: 4" in run("recipes", "zinc", "model.num_layers=4").stdout


def test_a_users_mistake_is_one_message():
    done = run("recipes", "zink", code=2)
    assert done.stderr.startswith("error: unknown recipe 'zink'")
    assert "Traceback" not in done.stderr
