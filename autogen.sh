#!/bin/sh
# Makes ./configure from configure.ac; needs autoconf, automake and libtool.
set -eu

cd "$(dirname "$0")"
for tool in autoreconf automake libtoolize pkg-config; do
	if ! command -v "$tool" >/dev/null; then
		echo "autogen.sh: $tool not found; run build-aux/install-deps" >&2
		exit 1
	fi
done
exec autoreconf --install
