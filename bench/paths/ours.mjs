// The measured paths: an edge and a client as users run them, with plain carriers or with TLS on the control port. With p2p, an edge and
// two clients: visitors connect to the subscriber's local port.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ROOT } from '../../scripts/lib/paths.mjs';
import { failAtExit, startChild, untilExit } from '../lib/children.mjs';
import { freePort } from '../lib/free-ports.mjs';
import { cleanEnvironment, startServer } from '../lib/server.mjs';
import { HTTP_NAME } from '../lib/wrk.mjs';
import { CERTIFICATE, KEY } from './certificate.mjs';

const SERVER = 'apps/server/bin/tunnel-server.mjs';
const CLI = 'apps/cli/bin/tunnel.mjs';
const START_TIMEOUT_MS = 20_000;
// Flags for production use: no line per request, and no inspector.
const SILENT = ['--quiet', '--no-inspect'];

/** Returns the edge's configuration. `port` is the port for visitors, regardless of the protocol. */
const configOf = ({ protocol, port, tls, https, captures, sealed }) => `
[server]
control_port = 0
api_port = 0
metrics_port = 0
http_port = ${protocol === 'http' && !https ? port : 0}
https_port = ${https || protocol === 'tls' ? port : 0}
plain_http = "proxy"
[limits]
tcp_port_range = [${port}, ${port}]
${protocol === 'udp' ? `udp_port_range = [${port}, ${port}]` : ''}
connections_per_tunnel = 20000
connections_per_address = 20000
[capture]
enabled = ${captures}
${protocol === 'udp' || protocol === 'p2p' ? '[udp]\nports = [0, 0]' : ''}
${protocol === 'udp' ? `path = "${sealed ? 'auto' : 'carrier'}"` : ''}
${tls ? `[tls]\ncert_path = "${CERTIFICATE}"\nkey_path = "${KEY}"` : ''}
`;

const clientCommand = ({ root, ground, node, nodeArgs, role, what, more, tls, run }) =>
  ground.network.wrap(node, [
    ...(nodeArgs?.[role] ?? []),
    ...[join(root, CLI), ...what, ...more],
    ...['--server', run.control, '--token-file', run.admin_token_file],
    ...(tls ? ['--tls', '--ca-file', CERTIFICATE] : ['--no-tls']),
  ]);

/**
 * Starts a client with default flags, with a line per request and the inspector. The lines go to a file. The client does not report when
 * it is ready, so the caller has to poll.
 */
function startTalkativeClient({ folder, ...settings }) {
  const { command, args } = clientCommand({ ...settings, role: 'client', more: [] });
  const words = ['-c', 'exec "$0" "$@" > lines.txt', command, ...args];
  return startChild({ name: 'client', command: 'sh', args: words, env: cleanEnvironment(folder), cwd: folder });
}

export async function startEdge({ root, ground, folder, node, nodeArgs, ...settings }) {
  const dataDir = join(folder, 'data');
  const config = join(folder, 'server.toml');
  writeFileSync(config, configOf(settings));
  const { command, args } = ground.network.wrap(node, [
    // The same flag as with `npm start`.
    '--max-semi-space-size=4',
    ...(nodeArgs?.edge ?? []),
    ...[join(root, SERVER), 'edge', '--config', config, '--data-dir', dataDir],
  ]);
  const child = await startServer({ name: 'edge', command, args, dataDir, cwd: folder });
  return { child, run: JSON.parse(readFileSync(join(dataDir, 'run.json'), 'utf8')) };
}

/** @returns {Promise<{ child: object, events: object[] }>} after the first event that `isUp` accepts */
async function startClient({ role = 'client', isUp = isReady, ...settings }) {
  const { folder } = settings;
  const { command, args } = clientCommand({ ...settings, role, more: ['--json'] });
  let opened;
  const ready = new Promise((resolve) => {
    opened = resolve;
  });
  const events = [];
  const onLine = (line) => {
    events.push(JSON.parse(line));
    if (isUp(events.at(-1))) opened();
  };
  const child = startChild({ name: role, command, args, env: cleanEnvironment(folder), cwd: folder, onLine });
  await Promise.race([ready, failAtExit(child), lateClient(child)]);
  return { child, events };
}

const isReady = ({ event }) => event === 'ready';
/** Whether datagrams have moved to the UDP path. They begin on carriers. */
const isSealed = ({ event, path }) => event === 'datagrams' && path === 'udp';

async function lateClient(child) {
  await delay(START_TIMEOUT_MS, undefined, { ref: false });
  throw new Error(`the ${child.name} did not come up: ${child.output}`);
}

function tunnelOf({ protocol, port, ground, talkative, rules, ofTls }) {
  const local = String(ofTls ? ground.originTlsPort : ground.originPort);
  if (protocol === 'tls') return ['tls', local, '--subdomain', HTTP_NAME];
  if (protocol !== 'http') return [protocol, local, '--remote-port', String(port)];
  return ['http', local, '--subdomain', HTTP_NAME, ...rules, ...(talkative ? [] : SILENT)];
}

/** Returns a function that measures the start and end of Node.js alone, in milliseconds. */
export const bareNode =
  (node, { cwd, env }) =>
  () =>
    untilExit({ name: 'node', command: node, args: ['-e', '0'], cwd, env });

/**
 * `root` is the checkout with the build to run. With `https`, HTTP visitors use TLS; with `ofTls`, visitors and origin use TLS end to end.
 * `kind` is the tunnel's protocol if it differs from the scenario's. With `talkative`, the client runs with default flags. `policy` is an
 * entry of policies.mjs. `nodeArgs` are for profiles: { edge: string[], client: string[] }.
 */
export const oursPath = ({
  name,
  root = ROOT,
  tls = false,
  captures = true,
  sealed = false,
  https = false,
  talkative = false,
  policy = null,
  ofTls = false,
  kind,
}) => ({
  name,
  async start({ protocol: asked = 'tcp', ...given }) {
    const protocol = kind ?? asked;
    mkdirSync(given.folder, { recursive: true });
    const port = await freePort();
    const settings = { ...given, root, protocol, port, tls };
    const { child: edge, run } = await startEdge({ ...settings, https, captures, sealed });
    const what = tunnelOf({ ...settings, talkative, ofTls, rules: await rulesOf(policy, given.folder) });
    const isUp = sealed ? isSealed : isReady;
    const startMeasuredClient = async () =>
      talkative
        ? startTalkativeClient({ ...settings, what, run })
        : (await startClient({ ...settings, what, isUp, run })).child;
    const client = await startMeasuredClient();
    const address = { host: '127.0.0.1', port, tls: https || ofTls };
    const account = policy === null ? {} : { account: { headers: await policy.visitor(address) } };
    const node = bareNode(given.node, { cwd: given.folder, env: cleanEnvironment(given.folder) });
    return { address, processes: { edge, client }, startMeasuredClient, bareNode: node, ...account };
  },
});

async function rulesOf(policy, folder) {
  const text = policy === null ? null : await policy.text();
  if (text === null) return [];
  const file = join(folder, 'policy.yml');
  writeFileSync(file, text, { mode: 0o600 });
  return ['--policy', file];
}

/** A p2p path. The direct path is confirmed before the measurement; for the relay, the publisher disables direct paths. */
export const peersPath = ({ name, root = ROOT, direct }) => ({
  name,
  async start(settings) {
    mkdirSync(settings.folder, { recursive: true });
    const port = await freePort();
    const { child: edge, run } = await startEdge({ ...settings, root, protocol: 'p2p', port, captures: false });
    const secretFile = join(settings.folder, 'secret');
    writeFileSync(secretFile, 'a secret of the bench, for one run alone\n', { mode: 0o600 });
    const secret = ['--secret-file', secretFile];
    const publish = ['p2p', 'publish', 'bench', String(settings.ground.originPort), ...secret];
    const { child: client } = await startClient({
      ...settings,
      root,
      run,
      what: direct ? publish : [...publish, '--no-direct'],
    });
    const { child: subscriber, events } = await startClient({
      ...settings,
      root,
      run,
      role: 'subscriber',
      what: ['p2p', 'connect', 'bench', '--listen', '0', ...secret],
      isUp: ({ event, path }) => (direct ? event === 'path' && path === 'direct' : isReady({ event })),
    });
    const { listen } = events.find(isReady);
    const address = { host: '127.0.0.1', port: Number(listen.split(':').at(-1)) };
    return { address, processes: { edge, client, subscriber } };
  },
});
