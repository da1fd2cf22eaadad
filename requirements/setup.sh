#!/usr/bin/env bash
# Makes .venv from the locks and installs the project into it: `requirements/setup.sh [gpu] [dev]`.
# `gpu`: with CUDA, from then on; `dev`: with what tests and checks need. A stamp in .venv holds the digest of each
# lock that was installed, so that nothing is installed twice.
set -euo pipefail
cd "$(dirname "$0")/.."

torch_index=https://download.pytorch.org/whl/cpu
oldest=11 newest=14 # of Python 3

die() {
  echo "error: $*" >&2
  exit 1
}

suits() { "$1" -c "import sys; sys.exit(not (3, $oldest) <= sys.version_info[:2] <= (3, $newest))" 2>/dev/null; }

find_python() {
  local name found=""
  for name in python3 $(seq -f 'python3.%g' "$newest" -1 "$oldest"); do
    suits "$name" || continue
    "$name" -c 'import ensurepip, venv' 2>/dev/null && echo "$name" && return
    found=${found:-$("$name" -c 'import sys; print("python3.%d" % sys.version_info[1])')}
  done
  [ -z "$found" ] || die "$found has no venv module; install it with: sudo apt-get install $found-venv"
  die "CardioLens runs on Python 3.$oldest to 3.$newest, and here is $(python3 -V 2>/dev/null || echo none);" \
    "install one of them with its venv module"
}

make_venv() {
  local python
  python=$(find_python)
  echo "setup: making .venv with $("$python" -V)"
  rm -rf .venv
  mkdir -p .venv/stamps
  echo "$1" >.venv/flavour
  "$python" -m venv .venv
}

pip_install() {
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input --no-deps "$@"
}

install_lock() { pip_install --no-build-isolation --require-hashes -r "$1"; }

install_torch() {
  pip_install -r "$1" 2>/dev/null && return
  pip_install --index-url "$torch_index" -r "$1" && return
  die "the CPU build $(grep '==' "$1") is neither where pip is configured to look nor at $torch_index;" \
    "bring its wheel from a machine that reaches that address and name its folder: PIP_FIND_LINKS=/that/folder make setup"
}

install_project() { pip_install --no-build-isolation --editable .; }

once() { # once FILE COMMAND SAYING: the command, where the file is not the one it was done for
  local stamp digest
  stamp=.venv/stamps/$(basename "$1")
  digest=$(sha256sum <"$1")
  [ "$(cat "$stamp" 2>/dev/null)" != "$digest" ] || return 0
  echo "setup: $3"
  "$2" "$1"
  echo "$digest" >"$stamp"
}

gpu_needs() { # says what the first engine on this machine will lack; on a machine that only submits it may
  command -v "${CC:-gcc}" >/dev/null || echo "setup: no gcc, which Triton needs at its first use; install it, or set CC"
  .venv/bin/python -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")))' ||
    echo "setup: no Python.h, which Triton needs at its first use; install Python's headers, e.g. python3-dev"
  echo "setup: done; .venv/bin/python -m cardiolens.doctor +experiment=... looks for everything that a sweep will need"
}

there=$(cat .venv/flavour 2>/dev/null || true)
[ -n "$there" ] || [ ! -e .venv ] || die ".venv is not one that this script made; move it away and run this again"
flavour=${there:-cpu}
[[ " $* " != *" gpu "* ]] || flavour=gpu
if [ "$there" != "$flavour" ] || ! suits .venv/bin/python; then
  make_venv "$flavour"
fi

# In the order in which they need each other.
locks=requirements
once $locks/build.txt install_lock "installing pip and build tools"
if [ "$flavour" = cpu ]; then
  requirements/libnuma.sh
  once $locks/torch-cpu.txt install_torch "installing the CPU build of torch"
fi
once "$locks/$flavour.txt" install_lock "installing the $(grep -c '==' "$locks/$flavour.txt") packages of $locks/$flavour.txt (minutes)"
[[ " $* " != *" dev "* ]] || once $locks/dev.txt install_lock "installing what tests and checks need"
once pyproject.toml install_project "installing CardioLens"
[ "$flavour" != gpu ] || gpu_needs
