// The live view as people see it: `tunnel http` in a real terminal (tmux) at a real edge. Ctrl-C, a name that is taken, narrow and resized
// windows, NO_COLOR, a terminal without a cursor. One ok/failed line each. Needs tmux and a build (`npm run build`); without tmux it says so.
// Usage: node tests/tools/cli/live-view.mjs    Exit code: the number of failures.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const TUNNEL = join(ROOT, 'apps/cli/bin/tunnel.mjs');
const SERVER = join(ROOT, 'apps/server/bin/tunnel-server.mjs');
/** A busy machine takes its time; only what fails takes all of it. */
const PATIENCE_MS = 20_000;

if (spawnSync('tmux', ['-V']).status !== 0) {
  process.stdout.write('skipped: tmux is not installed\n');
  process.exit(0);
}

const folder = mkdtempSync(join(tmpdir(), 'live-view-'));
const tmux = (...args) => spawnSync('tmux', ['-S', join(folder, 'tmux'), ...args], { encoding: 'utf8' }).stdout;
let failures = 0;

const until = async (what, look) => {
  const giveUpAt = performance.now() + PATIENCE_MS;
  for (;;) {
    const found = look();
    if (found) return found;
    if (performance.now() > giveUpAt) throw new Error(`${what} did not come`);
    await pause(100);
  }
};

const startEdge = async () => {
  const config = join(folder, 'server.toml');
  const ports = ['control_port', 'api_port', 'metrics_port', 'http_port'].map((key) => `${key} = 0`);
  writeFileSync(config, `data_dir = "${join(folder, 'data')}"\n[server]\n${ports.join('\n')}\n`);
  const edge = spawn(process.execPath, [SERVER, 'edge', '--config', config], { stdio: 'ignore' });
  const file = join(folder, 'data', 'run.json');
  await until('the edge', () => existsSync(file));
  return { edge, run: JSON.parse(readFileSync(file, 'utf8')) };
};

/** A terminal with a shell in it. */
class Terminal {
  constructor(name, columns, env = {}) {
    this.name = name;
    const settings = Object.entries({ HOME: folder, PS1: '$ ', ...env }).map(([key, value]) => `${key}=${value}`);
    tmux(
      'new-session',
      '-d',
      '-x',
      `${columns}`,
      '-y',
      '30',
      '-s',
      name,
      'env',
      '-u',
      'NO_COLOR',
      ...settings,
      'bash',
      '--norc',
    );
  }

  type(text) {
    tmux('send-keys', '-t', this.name, text, 'Enter');
  }

  key(name) {
    tmux('send-keys', '-t', this.name, name);
  }

  resize(columns) {
    tmux('resize-window', '-t', this.name, '-x', `${columns}`, '-y', '30');
  }

  /** Wrapped lines are joined; `escapes`: with the colours. */
  lines(escapes = false) {
    const shown = tmux('capture-pane', '-J', '-p', ...(escapes ? ['-e'] : []), '-t', this.name);
    return shown
      .split('\n')
      .map((line) => line.trimEnd())
      .filter((line) => line !== '');
  }

  /** As they stand on the screen: wrapped lines are several rows. */
  rows() {
    return tmux('capture-pane', '-p', '-t', this.name).split('\n');
  }

  waitFor(pattern) {
    return until(String(pattern), () => this.lines().find((line) => pattern.test(line)));
  }

  count(pattern) {
    return this.lines().filter((line) => pattern.test(line)).length;
  }
}

const check = async (name, trial) => {
  try {
    await trial();
    process.stdout.write(`ok      ${name}\n`);
  } catch (error) {
    failures += 1;
    process.stdout.write(`failed  ${name}: ${error.message}\n`);
  }
};

const expectEqual = (found, wanted, what) => {
  if (found !== wanted) throw new Error(`${what}: ${found}, not ${wanted}`);
};

const visit = (run, subdomain, path) =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(run.http_url);
    const headers = { host: `${subdomain}.localhost:${port}` };
    request({ host: hostname, port, path, headers, agent: false }, (response) => {
      response.resume().once('end', resolve);
    })
      .once('error', reject)
      .end();
  });

const service = createServer((_, response) => response.end('hello')).listen(0, '127.0.0.1');
await until('the service', () => service.listening);
const { edge, run } = await startEdge();
const base = `${process.execPath} ${TUNNEL} http ${service.address().port} --server ${run.control} --token-file ${run.admin_token_file}`;

await check('a tunnel shows where it is, and requests as they pass', async () => {
  const terminal = new Terminal('shown', 100);
  terminal.type(`${base} --subdomain shown`);
  await terminal.waitFor(/^Forwarding {2}http:\/\/shown\.localhost:\d+ -> 127\.0\.0\.1:\d+$/);
  for (const pattern of [
    /^Status {6}Online$/,
    /^Region {6}local /,
    /^Inspector {3}http/,
    /No requests yet$/,
    /^Ctrl-C to stop$/,
  ]) {
    expectEqual(terminal.count(pattern), 1, String(pattern));
  }
  await terminal.waitFor(/^Region .* ms$/);
  await visit(run, 'shown', '/hook');
  await terminal.waitFor(/ GET +\/hook +200 /);
  await terminal.waitFor(/^Requests {4}1 request, /);
});

await check('Ctrl-C leaves one whole block and nothing else', async () => {
  const terminal = new Terminal('stopped', 100);
  terminal.type(`${base} --subdomain stopped`);
  await terminal.waitFor(/^Ctrl-C to stop$/);
  terminal.key('C-c');
  await terminal.waitFor(/^Status {6}Stopped after /);
  await until('the shell', () => terminal.lines().at(-1) === '$');
  expectEqual(terminal.count(/\^C|^Status {6}Online|Ctrl-C/), 0, 'left over');
  expectEqual(terminal.count(/^Forwarding/), 1, 'blocks');
});

await check('a name that is taken is refused, and that is all that is said', async () => {
  const terminal = new Terminal('refused', 100);
  terminal.type('clear');
  terminal.type(`${base} --subdomain shown; echo code $?`);
  await terminal.waitFor(/^code 4$/);
  expectEqual(terminal.count(/subdomain 'shown' is already in use$/), 1, 'refusals');
  expectEqual(terminal.count(/^Status|^Inspector|^Region|connected/), 0, 'other lines');
});

await check('a narrow window has the address whole', async () => {
  const terminal = new Terminal('narrow', 28);
  terminal.type(`${base} --subdomain narrow-window-of-a-phone`);
  await terminal.waitFor(/^http:\/\/narrow-window-of-a-phone\.localhost:\d+$/);
  expectEqual(terminal.count(/^Status/), 1, 'blocks');
});

await check('a window that is made wider and narrower again has one block', async () => {
  const terminal = new Terminal('resized', 90);
  terminal.type(`${base} --subdomain resized`);
  await terminal.waitFor(/^Region .* ms$/);
  for (const columns of [120, 80, 140, 75]) {
    terminal.resize(columns);
    await pause(1000);
    expectEqual(terminal.count(/^Status/), 1, `blocks at ${columns}`);
  }
});

await check('a window that is made narrower breaks no line of a request', async () => {
  const terminal = new Terminal('lines', 110);
  terminal.type(`clear; ${base} --subdomain lines`);
  await terminal.waitFor(/^Region .* ms$/);
  for (const path of ['/first', `/${'long/'.repeat(30)}`, '/last']) await visit(run, 'lines', path);
  await terminal.waitFor(/ \/last +200 /);
  for (const columns of [60, 90, 50]) {
    terminal.resize(columns);
    await until(
      `three whole lines at ${columns}`,
      () => terminal.count(/^[\d:]{8} GET +\/\S+ +200 +[\d.]+ m?s$/) === 3,
    );
    const wide = terminal.rows().filter((row) => / 200 /.test(row) && !/^[\d:]{8} GET/.test(row));
    expectEqual(wide.length, 0, `broken lines at ${columns}`);
  }
});

await check('NO_COLOR has no colours, TERM=dumb no cursor', async () => {
  const colourful = new Terminal('colourful', 100);
  const plain = new Terminal('plain', 100, { NO_COLOR: '1' });
  const dumb = new Terminal('dumb', 100, { TERM: 'dumb' });
  for (const [at, terminal] of [colourful, plain, dumb].entries()) terminal.type(`${base} --subdomain colour-${at}`);
  for (const terminal of [colourful, plain]) await terminal.waitFor(/^Forwarding/);
  expectEqual(
    colourful.lines(true).some((line) => line.includes('\u001b[')),
    true,
    'colours',
  );
  expectEqual(
    plain.lines(true).some((line) => line.includes('\u001b[')),
    false,
    'colours without them',
  );
  await dumb.waitFor(/^http-\d+: http:\/\/colour-2\.localhost/);
  expectEqual(dumb.count(/^Status/), 0, 'blocks');
});

tmux('kill-server');
edge.kill('SIGTERM');
await until('the end of the edge', () => edge.exitCode !== null || edge.signalCode !== null);
service.close();
service.closeAllConnections();
rmSync(folder, { recursive: true, force: true });
process.stdout.write(failures === 0 ? 'ok: the live view holds\n' : `FAILED: ${failures}\n`);
process.exit(failures);
