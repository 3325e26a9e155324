// What is measured: an edge and a client as people run them, with plain carriers or with TLS on the control port.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ROOT } from '../../scripts/lib/paths.mjs';
import { failAtExit, startChild } from '../lib/children.mjs';
import { freePort } from '../lib/free-ports.mjs';
import { cleanEnvironment, startServer } from '../lib/server.mjs';
import { HTTP_NAME } from '../lib/wrk.mjs';

const SERVER = 'apps/server/bin/tunnel-server.mjs';
const CLI = 'apps/cli/bin/tunnel.mjs';
const CERTIFICATE = join(ROOT, 'packages/testkit/fixtures/tls/cert.pem');
const KEY = join(ROOT, 'packages/testkit/fixtures/tls/key.pem');
const START_TIMEOUT_MS = 20_000;
// Without a line for each request, and without the inspector: what a service in production needs.
const HTTP_TUNNEL = ['--subdomain', HTTP_NAME, '--quiet', '--no-inspect'];

/** The port is the one visitors come to, whichever the protocol. */
const configOf = ({ protocol, port, tls, captures, sealed }) => `
[server]
control_port = 0
api_port = 0
metrics_port = 0
http_port = ${protocol === 'http' ? port : 0}
https_port = 0
plain_http = "proxy"
[limits]
tcp_port_range = [${port}, ${port}]
${protocol === 'udp' ? `udp_port_range = [${port}, ${port}]` : ''}
connections_per_tunnel = 20000
connections_per_address = 20000
[capture]
enabled = ${captures}
${protocol === 'udp' ? `[udp]\npath = "${sealed ? 'auto' : 'carrier'}"\nports = [0, 0]` : ''}
${tls ? `[tls]\ncert_path = "${CERTIFICATE}"\nkey_path = "${KEY}"` : ''}
`;

async function startEdge({ root, ground, folder, node, nodeArgs, ...settings }) {
  const dataDir = join(folder, 'data');
  const config = join(folder, 'server.toml');
  writeFileSync(config, configOf(settings));
  const { command, args } = ground.network.wrap(node, [
    // As `npm start` runs it.
    '--max-semi-space-size=4',
    ...(nodeArgs?.edge ?? []),
    ...[join(root, SERVER), 'edge', '--config', config, '--data-dir', dataDir],
  ]);
  const child = await startServer({ name: 'edge', command, args, dataDir, cwd: folder });
  return { child, run: JSON.parse(readFileSync(join(dataDir, 'run.json'), 'utf8')) };
}

async function startClient({ root, ground, folder, node, nodeArgs, protocol, port, tls, sealed, run }) {
  const what = protocol === 'http' ? HTTP_TUNNEL : ['--remote-port', String(port)];
  const { command, args } = ground.network.wrap(node, [
    ...(nodeArgs?.client ?? []),
    ...[join(root, CLI), protocol, String(ground.originPort), '--json', ...what],
    ...['--server', run.control, '--token-file', run.admin_token_file],
    ...(tls ? ['--tls', '--ca-file', CERTIFICATE] : ['--no-tls']),
  ]);
  let opened;
  const ready = new Promise((resolve) => {
    opened = resolve;
  });
  // Datagrams begin on carriers, and move.
  const sign = sealed ? /"event":"datagrams".*"path":"udp"/ : /"event":"ready"/;
  const onLine = (line) => sign.test(line) && opened();
  const child = startChild({ name: 'client', command, args, env: cleanEnvironment(folder), cwd: folder, onLine });
  await Promise.race([ready, failAtExit(child), lateClient(child)]);
  return child;
}

async function lateClient(child) {
  await delay(START_TIMEOUT_MS, undefined, { ref: false });
  throw new Error(`the client did not open its tunnel: ${child.output}`);
}

/** `root` is the checkout whose build runs. `nodeArgs` are for profiles: { edge: string[], client: string[] }. */
export const oursPath = ({ name, root = ROOT, tls = false, captures = true, sealed = false }) => ({
  name,
  async start({ protocol = 'tcp', ...settings }) {
    mkdirSync(settings.folder, { recursive: true });
    const port = await freePort();
    const { child: edge, run } = await startEdge({ ...settings, root, protocol, port, tls, captures, sealed });
    const client = await startClient({ ...settings, root, protocol, port, tls, sealed, run });
    return { address: { host: '127.0.0.1', port }, processes: { edge, client } };
  },
});
