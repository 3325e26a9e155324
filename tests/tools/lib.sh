# Sourced by the scripts beside it: edges on loopback, tunnels to them, one line for each thing tried, and nothing left behind.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d /tmp/try-tools.XXXXXX)
# Some tools look at every folder above a file, and some run as another user.
chmod 755 "$work"
export HOME=$work/home TMPDIR=$work
unset TUNNEL_API_KEY
mkdir "$HOME"
failures=0
pids=()

clean_up() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null; done
  for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null; done
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# report NAME STATUS [DETAIL]
report() {
  if [[ $2 -eq 0 ]]; then
    printf 'ok      %s%s\n' "$1" "${3:+  ($3)}"
  else
    printf 'failed  %s%s\n' "$1" "${3:+  ($3)}"
    failures=$((failures + 1))
  fi
}

# skip NAME WHY
skip() { printf 'skipped %s  (%s)\n' "$1" "$2"; }

# until_true SECONDS COMMAND...
until_true() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS >= deadline)) && return 1
    sleep 0.1
  done
}

free_port() {
  node -e 'const s = require("node:net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); })'
}

# field FILE NAME: of a JSON file, or of the first line of one that has the field.
field() {
  node -e '
    const [file, name] = process.argv.slice(1);
    const text = require("node:fs").readFileSync(file, "utf8");
    let value;
    try { value = JSON.parse(text)[name]; } catch {
      value = text.split("\n").filter((line) => line.startsWith("{")).map((line) => JSON.parse(line)[name]).find((one) => one != null);
    }
    console.log(value ?? "");
  ' "$1" "$2"
}

# start_edge NAME [LINES_OF_SERVER [TABLES]]: sets `control`, `token_file` and `run_json`.
start_edge() {
  start_server edge "$@"
}

# start_stack NAME [LINES_OF_SERVER [TABLES]]: the same with platform and database; sets `data_dir` too. With `platform_port` the platform
# is there, and says so in all that names its own address.
start_stack() {
  start_server stack "$@"
}

start_server() {
  local command=$1 dir=$work/$2 public_address=
  shift
  [[ -z ${platform_port:-} ]] || public_address="public_url = \"http://127.0.0.1:$platform_port\""
  mkdir "$dir"
  cat >"$dir/server.toml" <<TOML
[platform]
port = ${platform_port:-0}
$public_address
[server]
control_port = 0
api_port = 0
metrics_port = 0
http_port = 0
https_port = 0
${2:-}
[limits]
tcp_port_range = [61000, 61099]
${3:-}
TOML
  node "$root/apps/server/bin/tunnel-server.mjs" "$command" --config "$dir/server.toml" --data-dir "$dir/data" \
    >"$dir/server.log" 2>&1 &
  server_pid=$!
  pids+=("$server_pid")
  server_log=$dir/server.log
  data_dir=$dir/data
  run_json=$data_dir/run.json
  # The first start of a database takes its time on a busy machine.
  until_true 60 test -s "$run_json" || { cat "$server_log" >&2; exit 1; }
  control=$(field "$run_json" control)
  token_file=$dir/data/admin-token
}

# open_tunnel KIND LOCAL_PORT [FLAGS...]: sets `events`, `public_url` and `public_port`.
open_tunnel() {
  events=$work/tunnel-$1-$2-$RANDOM.json
  node "$root/apps/cli/bin/tunnel.mjs" "$@" --json --server "$control" --token-file "$token_file" >"$events" 2>&1 &
  pids+=($!)
  until_true 20 grep -q '"event":"ready"' "$events" || { cat "$events" >&2; return 1; }
  public_url=$(field "$events" public_url)
  public_url=${public_url%/}
  public_port=${public_url##*:}
}
