#!/bin/sh
# Makes .venv with the package and all tools. Debian's python3 comes without what makes a virtual
# environment: that is installed where we may, and named in one line where we may not.
set -eu
python=${1:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || {
  echo "error: Headwater needs Python 3.11 or later; name one with make PYTHON=…" >&2
  exit 1
}
if ! "$python" -c 'import ensurepip' 2>/dev/null; then
  version=$("$python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing $version-venv, which Debian keeps apart from python3"
    apt-get update -qq && apt-get install -y -qq "$version-venv" >/dev/null
  else
    echo "error: the venv module is missing; install it with: sudo apt-get install $version-venv" >&2
    exit 1
  fi
fi
"$python" -m venv --clear .venv
echo "installing packages into .venv"
.venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
touch .venv/ready
echo "done: .venv/bin/headwater is there; see it at work with make demo"
