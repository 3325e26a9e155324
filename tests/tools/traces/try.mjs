// Traces with a real OpenTelemetry collector, and the cost of a collector that misbehaves: npm run try:traces
// Builds the collector with Go into .cache. Load comes from wrk. A missing program is reported in a line.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { startChild, stopChild } from '../../../bench/lib/children.mjs';
import { freePort } from '../../../bench/lib/free-ports.mjs';
import { CACHE_DIR, ROOT } from '../../../scripts/lib/paths.mjs';
import { installGoPrograms } from '../lib/go-programs.mjs';
import { loadBundled } from '../lib/load-bundled.mjs';
import { runScript } from '../lib/script.mjs';
import { until } from '../lib/until.mjs';

const USAGE = `usage: npm run try:traces [-- --seconds N] [--quick]
A stack with the collector of docs/traces.md: visitors over HTTP/1.1, HTTP/2 and TLS, a page of the platform. Then load on an edge while the
collector hangs, drips, resets or answers with errors, 10 s each (--seconds). --quick: without load. Minutes the first time.`;

/** Version of the collector, and of its modules with a stable interface. */
const VERSION = 'v0.139.0';
const STABLE = 'v1.45.0';
const FOLDER = join(CACHE_DIR, 'otelcol', VERSION);
const OTELCOL = join(FOLDER, 'build/otelcol');

const MANIFEST = `dist:
  name: otelcol
  output_path: ${join(FOLDER, 'build')}
receivers:
  - gomod: go.opentelemetry.io/collector/receiver/otlpreceiver ${VERSION}
exporters:
  - gomod: go.opentelemetry.io/collector/exporter/debugexporter ${VERSION}
  - gomod: go.opentelemetry.io/collector/exporter/otlphttpexporter ${VERSION}
providers:
  - gomod: go.opentelemetry.io/collector/confmap/provider/fileprovider ${STABLE}
conf_resolver:
  default_uri_scheme: file
`;

/** @returns {'ready' | 'no Go' | 'failed'} */
function makeCollector() {
  if (existsSync(OTELCOL)) return 'ready';
  const builder = installGoPrograms(FOLDER, { builder: `go.opentelemetry.io/collector/cmd/builder@${VERSION}` });
  if (builder !== 'ready') return builder;
  mkdirSync(FOLDER, { recursive: true });
  const manifest = join(FOLDER, 'manifest.yaml');
  writeFileSync(manifest, MANIFEST);
  const { status } = spawnSync(join(FOLDER, 'builder'), ['--config', manifest], { cwd: FOLDER, stdio: 'inherit' });
  return status === 0 && existsSync(OTELCOL) ? 'ready' : 'failed';
}

/** Returns the collector's configuration of docs/traces.md with another port. */
function documentedConfig(port) {
  const page = readFileSync(join(ROOT, 'docs/traces.md'), 'utf8');
  const [, config] = /```yaml\n(# collector\.yaml\n[\s\S]*?)```/.exec(page) ?? [];
  if (config === undefined) throw new Error('docs/traces.md has no collector.yaml');
  return config.replace(':4318', `:${port}`);
}

/** A second configuration: passes all traces on to a server of this script, as JSON. */
const passOn = (url, telemetryPort) => `exporters:
  otlphttp:
    endpoint: ${url}
    encoding: json
    compression: none
service:
  pipelines:
    traces:
      exporters: [debug, otlphttp]
  telemetry:
    metrics:
      readers:
        - pull:
            exporter:
              prometheus:
                host: 127.0.0.1
                port: ${telemetryPort}
`;

async function startCollector(folder, url) {
  const port = await freePort();
  writeFileSync(join(folder, 'collector.yaml'), documentedConfig(port));
  writeFileSync(join(folder, 'pass-on.yaml'), passOn(url, await freePort()));
  const args = ['--config', join(folder, 'collector.yaml'), '--config', join(folder, 'pass-on.yaml')];
  const child = startChild({ name: 'otelcol', command: OTELCOL, args });
  const isOpen = () =>
    fetch(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false,
    );
  await until('the collector', isOpen, { timeoutMs: 30_000 });
  return { url: `http://127.0.0.1:${port}`, child };
}

async function checkRealCollector(Trial, { say, check }) {
  const folder = mkdtempSync(join(tmpdir(), 'tunnel-try-traces-'));
  const trial = await Trial.open();
  let collector;
  try {
    collector = await startCollector(folder, trial.sink.url);
    say(`the collector ${VERSION} runs with the configuration of docs/traces.md`);
    for (const [what, isRight] of await trial.walk(collector.url)) check(isRight, what);
    const { output } = collector.child;
    check(/http\.request\.method: Str\(GET\)|Span #\d/.test(output), 'the collector prints the spans');
  } finally {
    await trial.close();
    if (collector !== undefined) await stopChild(collector.child);
    rmSync(folder, { recursive: true, force: true });
  }
}

const WRK = ['-t', '2', '-c', '50', '--latency'];

/** Runs wrk against the tunnel. Returns requests per second and the number of failed requests. */
async function wrk({ host, port }, seconds) {
  const args = [...WRK, '-d', `${seconds}s`, '-H', `Host: ${host}`, `http://127.0.0.1:${port}/`];
  const child = startChild({ name: 'wrk', command: 'wrk', args });
  await child.exited;
  const number = (pattern) => Number(pattern.exec(child.output)?.[1] ?? 0);
  const failed = number(/Non-2xx or 3xx responses: (\d+)/);
  const [, ...sockets] =
    /Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)/.exec(child.output) ?? [];
  return {
    requests: number(/(\d+) requests in /),
    perSecond: Math.round(number(/Requests\/sec:\s+([\d.]+)/)),
    failed: failed + sockets.reduce((sum, count) => sum + Number(count), 0),
  };
}

async function checkLoad(Trial, { say, check, values: { seconds } }) {
  const trial = await Trial.open();
  try {
    const load = await trial.openLoad();
    await wrk(load.endpoint, seconds);
    const startMb = load.memoryMb();
    let mostMb = startMb;
    for (const mode of ['accept', 'hang', 'drip', 500, 'reset', 'huge', 'never-read']) {
      trial.sink.mode = mode;
      const droppedBefore = await load.dropped();
      const { requests, perSecond, failed } = await wrk(load.endpoint, seconds);
      mostMb = Math.max(mostMb, load.memoryMb());
      const dropped = (await load.dropped()) - droppedBefore;
      check(
        failed === 0 && requests > 0,
        `${mode}: ${requests} requests, ${perSecond}/s, ${failed} failed, ${dropped} spans dropped`,
      );
    }
    check(
      mostMb - startMb < 60,
      `memory of the edge: ${Math.round(startMb)} MB before, ${Math.round(mostMb)} MB at most`,
    );
    trial.sink.mode = 'accept';
    const before = trial.sink.spans.length;
    await wrk(load.endpoint, 2);
    await until('spans after the trouble', () => trial.sink.spans.length > before, { timeoutMs: 120_000 });
    say(`${trial.sink.spans.length} spans delivered`);
  } finally {
    await trial.close();
    await pause(100);
  }
}

async function main({ values, say, check }) {
  const { TracesTrial } = await loadBundled(new URL('trial.ts', import.meta.url), 'traces-trial');
  const made = makeCollector();
  if (made === 'no Go') say('skipped: the real collector, because Go is not found');
  if (made === 'failed') check(false, 'the collector is built with Go');
  if (made === 'ready') await checkRealCollector(TracesTrial, { say, check });
  if (values.quick) return 'without load';
  if (spawnSync('wrk', ['--version']).error !== undefined) say('skipped: the load, because wrk is not found');
  else await checkLoad(TracesTrial, { say, check, values });
  return 'all checks passed';
}

const options = { seconds: 10, quick: false };
await runScript({ name: 'traces', usage: USAGE, options, limitSecs: ({ seconds }) => 1200 + 12 * seconds }, main);
