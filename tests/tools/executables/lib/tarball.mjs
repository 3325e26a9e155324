// The npm tarball on a computer with nothing but Node.js: the three commands of docs/install.md in a root file system with glibc, the C++
// library, a shell, `env` for the first line of scripts, Node.js and npm. The server runs outside and hands out the tarball.
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { startChild, stopChild, throwAwayFolder } from '../../../../bench/lib/children.mjs';
import { startServer } from '../../../../bench/lib/server.mjs';
import { fetchNode, fetchProgram } from '../../../../scripts/lib/fetch-package.mjs';
import { CACHE_DIR, ROOT } from '../../../../scripts/lib/paths.mjs';
import { unpackPrograms, unpackRoot } from '../../lib/debian.mjs';
import { until } from '../../lib/until.mjs';

const SERVER = join(ROOT, 'apps/server/bin/tunnel-server.mjs');
const NODE_MAJOR = '24';
const NPM_VERSION = '11.6.0';
const EMAIL = 'ann@localhost.test';
const PASSWORD = 'correct horse battery\n';
const ANSWER = 'from the app';
const LIMIT_MS = 120_000;

/** Node.js with npm at /opt/node, laid out as in its archive. */
async function makeRoot(libraries) {
  const root = join(CACHE_DIR, 'executables', 'node-root');
  rmSync(root, { recursive: true, force: true });
  cpSync(unpackRoot('amd64', ...libraries, 'coreutils', 'dash'), root, { recursive: true, verbatimSymlinks: true });
  const home = join(root, 'opt/node');
  mkdirSync(join(home, 'bin'), { recursive: true });
  mkdirSync(join(home, 'lib/node_modules'), { recursive: true });
  mkdirSync(join(root, 'root'));
  cpSync((await fetchNode(NODE_MAJOR)).path, join(home, 'bin/node'));
  chmodSync(join(home, 'bin/node'), 0o755);
  cpSync(await fetchProgram('npm', NPM_VERSION), join(home, 'lib/node_modules/npm'), { recursive: true });
  chmodSync(join(home, 'lib/node_modules/npm/bin/npm-cli.js'), 0o755);
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', join(home, 'bin/npm'));
  return root;
}

/** The settings with which npm reaches the registry from this machine, for the optional package of the tarball. */
function registryAccess() {
  const { stdout } = spawnSync('npm', ['config', 'get', 'cache'], { encoding: 'utf8' });
  const cache = stdout.trim();
  const settings = join(homedir(), '.npmrc');
  const authorities = process.env.NODE_EXTRA_CA_CERTS;
  const kept = Object.entries(process.env).filter(([name]) => /_proxy$|^npm_config_/i.test(name));
  const readable = ['/etc/resolv.conf', authorities].filter((file) => file !== undefined && existsSync(file));
  return [
    ...kept.flatMap(([name, value]) => ['--setenv', name, value]),
    ...readable.flatMap((file) => ['--ro-bind', file, file]),
    ...(existsSync(settings) ? ['--ro-bind', settings, '/root/.npmrc'] : []),
    ...(authorities === undefined ? [] : ['--setenv', 'NODE_EXTRA_CA_CERTS', authorities]),
    ...['--bind', cache, '/root/.npm', '--setenv', 'npm_config_cache', '/root/.npm'],
  ];
}

const visit = (url) =>
  new Promise((resolve, reject) => {
    const { host, port } = new URL(url);
    const sent = request({ host: '127.0.0.1', port, headers: { host }, agent: false }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text) => (body += text));
      response.on('end', () => resolve(body));
    });
    sent.on('error', reject).end();
  });

const listen = () =>
  new Promise((resolve) => {
    const app = createServer((_, response) => response.end(ANSWER));
    app.listen(0, '127.0.0.1', () => resolve(app));
  });

/** A server with an account and the files of a release. */
async function startPlatform(release) {
  const folder = throwAwayFolder();
  const dataDir = join(folder, 'data');
  const config = join(folder, 'server.toml');
  const ports = ['control_port', 'api_port', 'metrics_port', 'http_port', 'https_port'].map((key) => `${key} = 0`);
  const downloads = join(folder, 'downloads');
  writeFileSync(config, `[server]\n${ports.join('\n')}\n[platform]\nport = 0\ndownloads_dir = "${downloads}"\n`);
  const command = (args, input) => {
    const all = [SERVER, ...args, '--config', config, '--data-dir', dataDir];
    const { status, stderr } = spawnSync(process.execPath, all, { input, encoding: 'utf8' });
    if (status !== 0) throw new Error(`tunnel-server ${args.join(' ')}: ${stderr.trim()}`);
  };
  command(['downloads', 'fetch', '--from', release]);
  const args = [SERVER, 'stack', '--config', config, '--data-dir', dataDir];
  const child = await startServer({ name: 'server', command: process.execPath, args, dataDir, cwd: folder });
  command(['admin', 'create-user', EMAIL, '--password-stdin'], PASSWORD);
  return { child, run: JSON.parse(readFileSync(join(dataDir, 'run.json'), 'utf8')) };
}

/** Ends with a page that was opened through a tunnel. */
export async function tryTarball({ release, libraries, say, check }) {
  const root = await makeRoot(libraries);
  const bwrap = join(unpackPrograms('bubblewrap'), 'usr/bin/bwrap');
  const box = (...more) => [
    ...['--bind', root, '/', '--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp', '--die-with-parent', '--clearenv'],
    ...['--setenv', 'PATH', '/opt/node/bin:/usr/bin', '--setenv', 'HOME', '/root', '--chdir', '/root', ...more],
  ];
  const { child, run } = await startPlatform(release);
  const app = await listen();
  try {
    const { files } = JSON.parse(readFileSync(join(release, 'manifest.json'), 'utf8'));
    const tarball = files.map(({ path }) => path).find((path) => /^npm\/hatchway-\d[^/]*\.tgz$/.test(path));
    const url = `${run.platform_url}/downloads/${tarball.slice('npm/'.length)}`;
    const once = (what, before, args, input) => {
      const ended = spawnSync(bwrap, [...before, ...args], { input, encoding: 'utf8', timeout: LIMIT_MS });
      check(ended.status === 0, `only Node.js: ${what}`);
      if (ended.status !== 0) say(`${ended.stdout}${ended.stderr}${ended.error?.message ?? ''}`.trim());
    };
    once('npm install -g', box(...registryAccess()), ['npm', 'install', '-g', url, '--no-audit', '--no-fund']);
    const login = ['tunnel', 'login', '--platform', run.platform_url, '--email', EMAIL, '--password-stdin'];
    once('tunnel login', box(), login, PASSWORD);
    let published;
    const onLine = (line) => (published ??= /https?:\/\/[\w-]+\.localhost:\d+/.exec(line)?.[0]);
    const args = [...box(), 'tunnel', 'http', String(app.address().port)];
    const client = startChild({ name: 'tunnel http', command: bwrap, args, onLine });
    const opened = await until('a public URL', () => published, { timeoutMs: 30_000 }).catch(() => null);
    check(opened !== null && (await visit(opened)) === ANSWER, 'only Node.js: tunnel http, and the page came');
    if (opened === null) say(client.output.trim());
    await stopChild(client, 'SIGTERM');
  } finally {
    app.close();
    app.closeAllConnections();
    await stopChild(child, 'SIGTERM');
  }
}
