// Puts compiled code of the client beside its bundle, so that the first start is as fast as later starts. A client of the new build opens a
// tunnel to an edge of the new build and serves a request. The client keeps its compiled code in its home folder then, as after any first
// start, and the file moves beside the bundle. The code is for this version of Node.js; other versions do not find it.
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { writeAtomically } from './build-state.mjs';
import { ROOT } from './paths.mjs';

const TIMEOUT_MS = 30_000;
const EVERY_MS = 10;

/** Files with compiled code of the bundle that opens tunnels. */
const KEPT = /^publish-[0-9a-f]+$/;

const EDGE_CONFIG = `[server]
control_port = 0
api_port = 0
metrics_port = 0
http_port = 0
https_port = 0
`;

/** Removes the compiled code of earlier builds from the folder `dist` of a client. */
export function removeCompiledCode(dist) {
  for (const name of readdirSync(dist)) if (KEPT.test(name)) rmSync(join(dist, name));
}

/**
 * Needs the bundles of the checkout. Code for another Node.js, or of another bundle, stays beside the new code.
 * @param {object} options
 * @param {string} options.client folder with `bin` and `dist` of a client
 * @param {string} [options.node] the Node.js that will run the client
 * @returns {Promise<string>} a line about the result. A failure is no error, because the client also starts without the code
 */
export async function keepCompiledCode({ client, node = process.execPath }) {
  // The client keeps no code there.
  if (process.platform === 'win32') return 'compiled code  none on Windows';
  const home = mkdtempSync(join(tmpdir(), 'hatchway-build-'));
  const children = [];
  try {
    await Promise.race([serveOnce({ client, node, home, children }), tooLate()]);
    const folder = join(home, '.cache/hatchway');
    const [name] = existsSync(folder) ? readdirSync(folder).filter((one) => KEPT.test(one)) : [];
    if (name === undefined) throw new Error('the client has kept none');
    const code = readFileSync(join(folder, name));
    // The client refuses code that a group can write, so the mode must not depend on the umask.
    writeAtomically(join(client, 'dist', name), code, { mode: 0o644 });
    return `compiled code  ${Math.round(code.length / 1024)} KiB`;
  } catch (error) {
    return `compiled code  none (${error.message}); the first start of the client takes longer`;
  } finally {
    for (const { child, ended } of children) {
      child.kill('SIGKILL');
      await ended;
    }
    rmSync(home, { recursive: true, force: true });
  }
}

async function tooLate() {
  await delay(TIMEOUT_MS, undefined, { ref: false });
  throw new Error(`not ready after ${TIMEOUT_MS / 1000} s`);
}

/** Opens a tunnel with the client, sends a request through it, and stops the client. */
async function serveOnce({ client, node, home, children }) {
  const service = createServer((_request, response) => response.end('ok')).listen(0, '127.0.0.1');
  service.unref();
  try {
    const run = await startEdge(home, children);
    const args = [join(client, 'bin/tunnel.mjs'), 'http', String(service.address().port), '--json', '--no-tls'];
    const tunnel = start(node, [...args, '--server', run.control, '--token-file', run.admin_token_file], home);
    children.push(tunnel);
    await Promise.race([publicUrl(tunnel.child).then(answered), failAtExit('the client', tunnel)]);
    tunnel.child.kill('SIGTERM');
    await tunnel.ended;
  } finally {
    service.closeAllConnections();
    service.close();
  }
}

async function startEdge(home, children) {
  const dataDir = join(home, 'edge');
  mkdirSync(dataDir);
  const config = join(home, 'server.toml');
  writeFileSync(config, EDGE_CONFIG);
  const bin = join(ROOT, 'apps/server/bin/tunnel-server.mjs');
  const edge = start(process.execPath, [bin, 'edge', '--config', config, '--data-dir', dataDir], home);
  children.push(edge);
  const ready = join(dataDir, 'run.json');
  while (!existsSync(ready)) await Promise.race([delay(EVERY_MS), failAtExit('the edge', edge)]);
  return JSON.parse(readFileSync(ready, 'utf8'));
}

/** Starts a program without settings of the user who builds. The compiled code depends on options for Node.js. */
function start(command, args, home) {
  const own = Object.entries(process.env).filter(([name]) => !/^(?:NODE_|TUNNEL_)/.test(name));
  const env = { ...Object.fromEntries(own), HOME: home };
  const child = spawn(command, args, { cwd: home, env, stdio: ['ignore', 'pipe', 'ignore'] });
  const ended = new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code, signal) => resolve(`${signal ?? `exit code ${code}`}`));
  });
  child.stdout.resume();
  return { child, ended };
}

async function failAtExit(name, { ended }) {
  throw new Error(`${name} ended: ${await ended}`);
}

const publicUrl = (child) =>
  new Promise((resolve) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      const { event, public_url: url } = JSON.parse(line);
      if (event === 'ready') resolve(new URL(url));
    });
  });

/** Resolves after a response to a request through the tunnel. */
const answered = ({ host, port }) =>
  new Promise((resolve, reject) => {
    // The name below localhost need not be known to this machine.
    const request = get({ host: '127.0.0.1', port, headers: { host }, agent: false }, (response) => {
      response.resume().on('end', resolve);
    });
    request.on('error', reject);
  });
