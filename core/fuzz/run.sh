#!/bin/sh
# Fuzz each target for SECONDS (default 60), from the committed corpus. Needs clang with libFuzzer.
# What is found lies in build/fuzz; run a target with the file as argument to see it again.
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:-60}
for compiler in "${CXX:-}" clang++ clang++-18 clang++-17 clang++-16 clang++-15 clang++-14; do
  if [ -n "$compiler" ] && command -v "$compiler" >/dev/null; then break; fi
  compiler=
done
[ -n "$compiler" ] || { echo "fuzzing needs clang++: install clang, or set CXX" >&2; exit 2; }
cmake -S . -B build/fuzz -G Ninja -DCMAKE_BUILD_TYPE=Fuzz -DTFRIO_PYTHON=OFF \
  -DCMAKE_CXX_COMPILER="$compiler" >/dev/null
cmake --build build/fuzz
for source in core/fuzz/fuzz_*.cpp; do
  target=$(basename "$source" .cpp)
  mkdir -p "build/fuzz/$target.corpus"
  echo "$target: $seconds s"
  "build/fuzz/$target" -max_total_time="$seconds" -max_len=4096 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/$target." -verbosity=0 -print_funcs=0 2>&1 \
    "build/fuzz/$target.corpus" "core/fuzz/corpus/$target"
done
