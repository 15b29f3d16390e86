#!/usr/bin/env bash
# Runs this example against a server of its own and fails when it does not do what it promises.
set -euo pipefail
cd "$(dirname "$0")/../.."
exec npm run --silent examples -- scheduled-digest
