// What is measured: an edge and a client as people run them, with plain carriers or with TLS on the control port.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ROOT } from '../../scripts/lib/paths.mjs';
import { failAtExit, startChild } from '../lib/children.mjs';
import { freePort } from '../lib/free-ports.mjs';

const SERVER = join(ROOT, 'apps/server/bin/tunnel-server.mjs');
const CLI = join(ROOT, 'apps/cli/bin/tunnel.mjs');
const CERTIFICATE = join(ROOT, 'packages/testkit/fixtures/tls/cert.pem');
const KEY = join(ROOT, 'packages/testkit/fixtures/tls/key.pem');
const START_TIMEOUT_MS = 20_000;

const configOf = (port, tls) => `
[server]
control_port = 0
api_port = 0
metrics_port = 0
http_port = 0
https_port = 0
[limits]
tcp_port_range = [${port}, ${port}]
connections_per_tunnel = 20000
connections_per_address = 20000
${tls ? `[tls]\ncert_path = "${CERTIFICATE}"\nkey_path = "${KEY}"` : ''}
`;

/** Nothing of the person who runs the bench: no config file, no key, no options for Node.js. */
function environment(folder) {
  const kept = Object.entries(process.env).filter(([name]) => !/^(?:TUNNEL_|NODE_)/.test(name));
  return { ...Object.fromEntries(kept), HOME: folder };
}

async function startEdge({ ground, folder, node, nodeArgs, port, tls }) {
  const dataDir = join(folder, 'data');
  const config = join(folder, 'server.toml');
  writeFileSync(config, configOf(port, tls));
  const { command, args } = ground.network.wrap(node, [
    // As `npm start` runs it.
    '--max-semi-space-size=4',
    ...(nodeArgs?.edge ?? []),
    ...[SERVER, 'edge', '--config', config, '--data-dir', dataDir],
  ]);
  const child = startChild({ name: 'edge', command, args, env: environment(folder), cwd: folder });
  const deadline = Date.now() + START_TIMEOUT_MS;
  while (!existsSync(join(dataDir, 'run.json'))) {
    if (Date.now() > deadline) throw new Error(`the edge did not start: ${child.output}`);
    await Promise.race([delay(20), failAtExit(child)]);
  }
  return { child, run: JSON.parse(readFileSync(join(dataDir, 'run.json'), 'utf8')) };
}

async function startClient({ ground, folder, node, nodeArgs, port, tls, run }) {
  const { command, args } = ground.network.wrap(node, [
    ...(nodeArgs?.client ?? []),
    ...[CLI, 'tcp', String(ground.originPort), '--json', '--remote-port', String(port)],
    ...['--server', run.control, '--token-file', run.admin_token_file],
    ...(tls ? ['--tls', '--ca-file', CERTIFICATE] : ['--no-tls']),
  ]);
  let opened;
  const ready = new Promise((resolve) => {
    opened = resolve;
  });
  const onLine = (line) => line.includes('"event":"ready"') && opened();
  const child = startChild({ name: 'client', command, args, env: environment(folder), cwd: folder, onLine });
  await Promise.race([ready, failAtExit(child), lateClient(child)]);
  return child;
}

async function lateClient(child) {
  await delay(START_TIMEOUT_MS, undefined, { ref: false });
  throw new Error(`the client did not open its tunnel: ${child.output}`);
}

/** `nodeArgs` are for profiles: { edge: string[], client: string[] }. */
export const oursPath = ({ tls }) => ({
  name: tls ? 'ours-tls' : 'ours',
  async start(settings) {
    mkdirSync(settings.folder, { recursive: true });
    const port = await freePort();
    const { child: edge, run } = await startEdge({ ...settings, port, tls });
    const client = await startClient({ ...settings, port, tls, run });
    return { address: { host: '127.0.0.1', port }, processes: { edge, client } };
  },
});
