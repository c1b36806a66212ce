#!/usr/bin/env bash
# The steps of action.yml, so that they can be run anywhere: `action.sh install`, `action.sh run`.
# Inputs are environment variables, because text that GitHub inserts into a script could be code.
set -euo pipefail

install() {
  local -a more=()
  read -r -a more <<<"${MISCOMPILE_REQUIREMENTS:-}"
  python -m pip install --quiet --disable-pip-version-check "$MISCOMPILE_SOURCE" "${more[@]}"
}

run() {
  local -a targets=() arguments=()
  read -r -a targets <<<"$MISCOMPILE_TARGETS"
  read -r -a arguments <<<"${MISCOMPILE_ARGUMENTS:-}"
  [ -z "${MISCOMPILE_BASELINE:-}" ] || arguments+=(--baseline "$MISCOMPILE_BASELINE")
  [ -z "${MISCOMPILE_TESTS:-}" ] || arguments+=(--tests "$MISCOMPILE_TESTS")
  local code=0
  python -m miscompile ci "${targets[@]}" --seed "${MISCOMPILE_SEED:-0}" --shard "${MISCOMPILE_SHARD:-1/1}" \
    --out "$MISCOMPILE_OUT" --junit "$MISCOMPILE_JUNIT" --sarif "$MISCOMPILE_SARIF" "${arguments[@]}" || code=$?
  [ -z "${GITHUB_OUTPUT:-}" ] || echo "exit-code=$code" >>"$GITHUB_OUTPUT"
  if [ -n "${GITHUB_STEP_SUMMARY:-}" ] && [ -d "$MISCOMPILE_OUT" ]; then
    { echo '```'; python -m miscompile findings "$MISCOMPILE_OUT" || true; echo '```'; } >>"$GITHUB_STEP_SUMMARY"
  fi
  return "$code"
}

case "${1:-}" in
  install | run) "$1" ;;
  *) echo "usage: action.sh install|run" >&2; exit 2 ;;
esac
