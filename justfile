# All recipes use .venv and install nothing elsewhere.

stamp := ".venv/.numtok-setup"
wanted := sha256(sha256_file("requirements.lock") + sha256_file("pyproject.toml"))
stamp_dev := ".venv/.numtok-setup-dev"
wanted_dev := sha256(wanted + sha256_file("requirements-dev.lock"))
pip := ".venv/bin/pip --disable-pip-version-check"

# Keep byte code: tests start numtok hundreds of times, and would compile it again each time.
export PYTHONDONTWRITEBYTECODE := ""

# List the recipes.
default:
    @{{ just_executable() }} --list

# torch is installed first and without a hash. With hashes, pip installs the build of the package
# index even if a CPU build is configured. The install of numtok adds the GPU libraries that the
# build of torch requires.
# Install the locked dependencies and numtok into .venv if they changed, and compile its kernels.
setup:
    @if [ "$(cat {{ stamp }} 2>/dev/null)" != "{{ wanted }}" ]; then \
        echo "setup: installing the locked dependencies into .venv (a minute, once)" >&2 && \
        {{ pip }} install --quiet --no-deps "$(grep -o '^torch==[^ ]*' requirements.lock)" && \
        {{ pip }} install --quiet --no-deps --require-hashes -r requirements.lock && \
        {{ pip }} install --quiet --no-build-isolation -e . && \
        {{ pip }} check > .venv/.numtok-check || { cat .venv/.numtok-check >&2; exit 1; } && \
        .venv/bin/numtok doctor > .venv/.numtok-doctor || { cat .venv/.numtok-doctor >&2; exit 1; } && \
        echo "{{ wanted }}" > {{ stamp }}; \
    fi

# Also install the packages of tests, checks and optional parts, if they changed.
setup-dev: setup
    @if [ "$(cat {{ stamp_dev }} 2>/dev/null)" != "{{ wanted_dev }}" ]; then \
        echo "setup-dev: installing the packages of the tests into .venv (a minute, once)" >&2 && \
        {{ pip }} install --quiet --no-deps --require-hashes -r requirements-dev.lock && \
        {{ pip }} check > .venv/.numtok-check || { cat .venv/.numtok-check >&2; exit 1; } && \
        echo "{{ wanted_dev }}" > {{ stamp_dev }}; \
    fi

# Write hashes into the lock files and docs/LICENSES.md, after you changed locked versions.
lock:
    {{ pip }} install --quiet --upgrade --target build/uv uv
    .venv/bin/python .ci/locks.py hashes build/uv/bin/uv
    @{{ just_executable() }} setup-dev
    .venv/bin/python .ci/locks.py licenses

# Compare encodings in a minute: all schemes on the sample data, and three trained on arithmetic.
demo: setup
    @.venv/bin/numtok demo

# Rewrite the code in the house format.
format: setup-dev
    .venv/bin/ruff format .
    .venv/bin/ruff check --fix .

# Check format and lint rules.
lint: setup-dev
    .venv/bin/ruff check .
    .venv/bin/ruff format --check .

# Check types.
types: setup-dev
    .venv/bin/mypy

# With worksteal, most tests of a file run on one worker and share its fixtures.
tests := ".venv/bin/pytest -q -n auto --dist worksteal --durations 10"

# Lint, types and unit tests during development: `just quick -k NAME`, `just quick tests/models`.
quick *options: setup-dev lint types
    {{ tests }} -m "not integration and not slow" {{ options }}

# Lint, types, unit and integration tests.
test: setup-dev lint types
    {{ tests }}

# Lint, types and all tests, including slow ones.
test-all: setup-dev lint types
    {{ tests }} -m ""

# Run the tests that need a GPU; all other recipes test on the CPU.
test-gpu: setup-dev
    NUMTOK_TESTS_GPU=1 .venv/bin/pytest -q tests/test_device_hygiene.py -k on_a_gpu

# Test numtok's guarantees for some minutes, and rewrite docs/RELIABILITY.md: `just trust --help`.
trust *options: setup-dev
    @.venv/bin/python -m tests.trust {{ options }}

# Fuzz the file readers for about a minute, without recording results. Only on Linux, x86-64.
fuzz: setup-dev
    @.venv/bin/python -m tests.trust fuzzing --minutes 0.1 --dry-run

# Write all messages that tests check into tests/messages.json.
messages: setup-dev
    {{ tests }} --write-messages

# Build the site in build/site. Its search needs a server: python -m http.server -d build/site.
docs: setup
    @PYTHONPATH=. .venv/bin/python -m docs.site

# Run the console blocks of pages and rewrite their output: `just docs-update --slow README.md`.
docs-update *options: setup
    @PYTHONPATH=. .venv/bin/python -m docs.site --update {{ options }}

# Folder with a copy of uci_datasets (`just uci=DIR pages`); if empty, sets are downloaded.
uci := ""

# Build example pages of ERA5 texts, a UCI table and arithmetic in build/pages (minutes).
pages: setup-dev
    @mkdir -p build/pages
    @PATH="$PWD/.venv/bin:$PATH" bash pipelines/pages.sh build/pages {{ uci }}

# Print the table of every benchmark except races, which take three hours.
bench: setup-dev
    @for script in $(ls benchmarks/[a-z]*.py | grep -v /race.py); do \
        echo "== $script" && .venv/bin/python "$script" || exit $?; \
    done
