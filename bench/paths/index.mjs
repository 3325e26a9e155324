// The ways from a visitor to the origin, in the order in which a round takes them.
// A path has a name and start({ ground, folder, node, nodeArgs, protocol }) -> { address, processes: { edge?, client?, subscriber? } or { server }, account?, stopSignal? };
// `protocol` is 'http' or 'udp' where the tunnel is one, and tcp else.
import { direct } from './direct.mjs';
import { findNginx, nginxPath } from './nginx.mjs';
import { oursPath, peersPath } from './ours.mjs';
import { bareHonoPath, platformPath } from './platform.mjs';
import { POLICIES } from './policies.mjs';
import { bareTlsPath, tlsNamesPath } from './tls.mjs';

/** Where a scenario does not say otherwise. */
export const USUAL_PATHS = ['direct', 'nginx', 'ours', 'ours-tls'];
export const PATH_NAMES = [
  ...[...USUAL_PATHS, 'ours-sealed', 'ours-uncaptured', ...Object.keys(POLICIES)],
  ...['bare-tls', 'ours-https', 'ours-names', 'ours-tcp-of-tls', 'ours-passthrough'],
  ...['ours-relay', 'ours-direct', 'bare-hono', 'platform', 'platform-mcp'],
];

/** The name of the same path with an earlier build, measured beside ours. */
export const baselineOf = (name) => name.replace(/^ours/, 'before').replace(/^platform/, 'before-platform');

/** The inverse: the path whose scenarios a path takes part in. */
export const pathOfBaseline = (name) => name.replace(/^before-platform/, 'platform').replace(/^before/, 'ours');

/** @returns {{ paths: object[], nginx: object }} `nginx.missing` says why there is no yardstick */
export function choosePaths(names = PATH_NAMES, baseline) {
  const nginx = findNginx();
  const all = [
    direct,
    ...(nginx.missing ? [] : [nginxPath(nginx)]),
    ...withBaseline({ name: 'ours' }, baseline),
    ...withBaseline({ name: 'ours-tls', tls: true }, baseline),
    ...withBaseline({ name: 'ours-sealed', sealed: true }, baseline),
    ...withBaseline({ name: 'ours-uncaptured', captures: false }, baseline),
    ...Object.entries(POLICIES).map(([name, policy]) => oursPath({ name, policy })),
    ...[bareTlsPath, ...withBaseline({ name: 'ours-https', tls: true, https: true }, baseline), tlsNamesPath],
    ...[{ name: 'ours-tcp-of-tls' }, { name: 'ours-passthrough', kind: 'tls' }].map((given) =>
      oursPath({ ...given, tls: true, ofTls: true }),
    ),
    ...withBaseline({ name: 'ours-relay', direct: false }, baseline, peersPath),
    ...withBaseline({ name: 'ours-direct', direct: true }, baseline, peersPath),
    bareHonoPath,
    ...withBaseline({ name: 'platform' }, baseline, platformPath),
    // The same server, called by models: a path of its own, so that both stand in one table.
    ...withBaseline({ name: 'platform-mcp' }, baseline, platformPath),
  ];
  return { paths: all.filter(({ name }) => names.includes(pathOfBaseline(name))), nginx };
}

/** One right behind the other, so that a disturbance of the machine hits both. */
const withBaseline = (given, root, pathOf = oursPath) => [
  ...(root === undefined ? [] : [pathOf({ ...given, name: baselineOf(given.name), root })]),
  pathOf(given),
];
