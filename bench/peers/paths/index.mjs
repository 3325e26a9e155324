// Every path of `npm run bench:peers`, Hatchway's and the peers', in the order of a round. Fields in addition to those of bench/paths:
//   protocol     'tcp', 'udp', or 'http' for an edge that parses HTTP and needs a Host header; 'names', 'clients' and 'commands' for the row
//                of that name, which starts clients itself
//   carrier      connection between the two processes of the path
//   visitorsTls  whether visitors use TLS
//   programs     programs of .cache/peers, without which the path is left out; or missing(), which returns the reason
//   isOurs       whether the path runs once on each requested Node.js
//   idleMax      maximum number of idle connections
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ROOT } from '../../../scripts/lib/paths.mjs';
import { failAtExit, startChild } from '../../lib/children.mjs';
import { findNginx, nginxPath } from '../../paths/nginx.mjs';
import { oursPath } from '../../paths/ours.mjs';
import { untilThrough } from '../peer-process.mjs';
import { isThere } from '../programs.mjs';
import { goTunnels } from './go-tunnels.mjs';
import { oursAlone } from './ours-alone.mjs';
import { rustTunnels } from './rust-tunnels.mjs';
import { sshTunnel } from './ssh.mjs';

const ours = ({ protocol = 'tcp', note, carrier, ...options }) => ({
  name: options.name,
  protocol,
  note,
  isOurs: true,
  programs: [],
  carrier: carrier ?? (options.tls ? 'TLS' : 'plain'),
  visitorsTls: options.https ?? false,
  start: (settings) => oursPath(options).start({ ...settings, protocol }),
});

let found = null;
const nginxHere = () => (found ??= findNginx());

const nginx = ({ name, protocol = 'tcp', tls = false }) => ({
  name,
  protocol,
  carrier: tls ? 'TLS' : 'plain',
  programs: [],
  note: 'two proxy hops, without a tunnel',
  missing: () => nginxHere().missing ?? null,
  start: (settings) => nginxPath(nginxHere(), { name, tls }).start({ ...settings, protocol }),
});

const bareTls = {
  name: 'bare-tls',
  protocol: 'http',
  carrier: 'none',
  visitorsTls: true,
  isOurs: true,
  programs: [],
  note: 'a plain node:tls server on the same Node.js, without a tunnel: the lower bound',
  async start({ folder, node }) {
    mkdirSync(folder, { recursive: true });
    const portFile = join(folder, 'port');
    const args = ['--max-semi-space-size=4', join(ROOT, 'bench/peers/bare-tls.mjs'), portFile];
    const server = startChild({ name: 'bare-tls', command: node, args, cwd: folder });
    while (!existsSync(portFile)) await Promise.race([delay(20), failAtExit(server)]);
    const port = Number(readFileSync(portFile, 'utf8'));
    return { address: { host: '127.0.0.1', port, tls: true }, processes: { server } };
  },
};

const ALL = [
  ours({ name: 'ours' }),
  ours({ name: 'ours-tls', tls: true }),
  ours({ name: 'ours-http', protocol: 'http' }),
  ours({ name: 'ours-http-tls', protocol: 'http', tls: true }),
  ours({
    name: 'ours-http-default',
    protocol: 'http',
    talkative: true,
    note: 'the client prints a line per request and runs the inspector',
  }),
  ours({ name: 'ours-https', protocol: 'http', tls: true, https: true }),
  ours({
    name: 'ours-udp',
    protocol: 'udp',
    sealed: true,
    carrier: 'encrypted UDP',
    note: 'the default path of datagrams',
  }),
  ours({ name: 'ours-udp-carrier', protocol: 'udp', note: 'datagrams on carriers, `[udp] path = "carrier"`' }),
  ...oursAlone,
  bareTls,
  nginx({ name: 'nginx' }),
  nginx({ name: 'nginx-tls', tls: true }),
  nginx({ name: 'nginx-http', protocol: 'http' }),
  nginx({ name: 'nginx-udp', protocol: 'udp' }),
  ...rustTunnels,
  ...goTunnels,
  sshTunnel,
];

export const PATH_NAMES = ALL.map(({ name }) => name);

/** Returns the programs that the paths with these names need, or those of all paths without names. */
export const programsOf = (names) => chosen(names).flatMap(({ programs }) => programs);

const chosen = (names) => ALL.filter(({ name }) => names.length === 0 || names.includes(name));

const whyMissing = ({ programs, missing }) => {
  const lacking = programs.filter((program) => !isThere(program));
  return lacking.length > 0 ? `${lacking.join(' and ')} is not installed` : (missing?.() ?? null);
};

/** @param {{ suffix: string, node: string }[]} nodes Node.js versions for our paths; path names carry the suffix */
export function choosePeerPaths(names, nodes) {
  const wanted = chosen(names);
  const lines = wanted.map((path) => ({ path, line: whyMissing(path) })).filter(({ line }) => line !== null);
  const there = wanted.filter((path) => lines.every((one) => one.path !== path));
  const paths = there.flatMap((path) =>
    path.isOurs ? nodes.map((runtime) => onRuntime(path, runtime)) : [through(path)],
  );
  return { paths, missing: lines.map(({ path, line }) => `${path.name}: ${line}`) };
}

const onRuntime = (path, { suffix, node }) => ({
  ...through({ ...path, start: (settings) => path.start({ ...settings, node }) }),
  name: path.name + suffix,
});

/** Wraps a path so that its measurement starts when a visitor reaches the origin, and records that time as `throughAt`. */
const through = (path) => ({
  ...path,
  async start(settings) {
    const way = await path.start(settings);
    await untilThrough(way, path.protocol);
    return { ...way, throughAt: performance.now() };
  },
});
