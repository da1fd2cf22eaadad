#!/usr/bin/env bash
# vLLM on CPU loads libnuma, the one system library that a bare Debian or Ubuntu lacks. Where it is missing, the system's
# own package of it is unpacked into .venv, which any user may do, and every Python that starts there loads it first.
set -euo pipefail
cd "$(dirname "$0")/../.venv"

if bin/python -c 'import ctypes; ctypes.CDLL("libnuma.so.1")' 2>/dev/null; then
  exit
fi
echo "setup: fetching libnuma"
apt=$(mktemp -d)
trap 'rm -rf "$apt"' EXIT
mkdir -p "$apt/lists/partial" "$apt/archives/partial"
options=(-qq -o "Dir::State::Lists=$apt/lists" -o "Dir::Cache=$apt" -o APT::Sandbox::User=)
(
  cd "$apt"
  apt-get "${options[@]}" update && apt-get "${options[@]}" download libnuma1 && dpkg-deb -x libnuma1_*.deb .
) >/dev/null || {
  echo "error: vLLM on CPU needs the system library libnuma; install it with: sudo apt-get install libnuma1" >&2
  exit 1
}
cp -L "$apt"/usr/lib/*/libnuma.so.1 lib/
packages=$(bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
echo 'import ctypes, sys; ctypes.CDLL(f"{sys.prefix}/lib/libnuma.so.1")' >"$packages/libnuma.pth"
