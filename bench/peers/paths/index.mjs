// Every path of `npm run bench:peers`, ours and theirs, in the order in which a round takes them. Beside what bench/paths says of a path:
//   protocol     'http' for an edge that reads HTTP; its visitors are asked by name. 'tcp' else
//   carrier      what lies between its two processes
//   visitorsTls  whether its visitors speak TLS
//   programs     of .cache/peers, without which it is left out; or missing(): the line that says why
//   isOurs       runs on the Node.js that is asked for, once for each
//   idleMax      how many idle connections it bears
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
import { rustTunnels } from './rust-tunnels.mjs';
import { sshTunnel } from './ssh.mjs';

const ours = ({ protocol = 'tcp', note, ...options }) => ({
  name: options.name,
  protocol,
  note,
  isOurs: true,
  programs: [],
  carrier: options.tls ? 'TLS' : 'plain',
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
  bareTls,
  nginx({ name: 'nginx' }),
  nginx({ name: 'nginx-tls', tls: true }),
  nginx({ name: 'nginx-http', protocol: 'http' }),
  ...rustTunnels,
  ...goTunnels,
  sshTunnel,
];

export const PATH_NAMES = ALL.map(({ name }) => name);

/** Of the paths with these names, or of all where there are none. */
export const programsOf = (names) => chosen(names).flatMap(({ programs }) => programs);

const chosen = (names) => ALL.filter(({ name }) => names.length === 0 || names.includes(name));

const whyMissing = ({ programs, missing }) => {
  const lacking = programs.filter((program) => !isThere(program));
  return lacking.length > 0 ? `${lacking.join(' and ')} is not installed` : (missing?.() ?? null);
};

/** @param {{ suffix: string, node: string }[]} nodes what runs ours; the name of a path on any but the first one says which */
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

/** Measured from when a visitor gets through. */
const through = (path) => ({
  ...path,
  async start(settings) {
    const way = await path.start(settings);
    await untilThrough(way, path.protocol);
    return way;
  },
});
