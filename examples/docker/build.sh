#!/bin/sh
# Builds the image from this checkout: ./build.sh [--tag NAME] [--base IMAGE]
# ENGINE is podman or docker; PIP is what installs Python packages into a folder.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
tag=localhost/ostler:latest
base=
while [ $# -gt 0 ]; do
    case $1 in
        --tag) tag=$2; shift 2 ;;
        --base) base=$2; shift 2 ;;
        *) echo "build.sh: unknown option '$1'. Use --tag NAME or --base IMAGE." >&2; exit 2 ;;
    esac
done
engine=${ENGINE:-$(command -v podman || command -v docker)} || {
    echo "build.sh: neither podman nor docker is here. Install one, or name it: ENGINE=/path ./build.sh" >&2
    exit 1
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
${PIP:-python3 -m pip} install --quiet --no-deps --require-hashes --target "$work/app" --requirement "$top/requirements/runtime.txt"
cp -R "$top/src/ostler" "$work/app/ostler"
find "$work/app" -name __pycache__ -type d -prune -exec rm -rf {} +
chmod -R a+rX "$work/app"
cp "$here/Containerfile" "$work/Containerfile"
format=
case $engine in *podman*) format="--format docker" ;; esac # without it podman drops HEALTHCHECK
# shellcheck disable=SC2086
"$engine" build $format ${base:+--pull=never --build-arg "BASE=$base"} --tag "$tag" --file "$work/Containerfile" "$work"
echo "built $tag"
