// The paths from a visitor to the origin, in the order of a round.
// A path has a name and start({ ground, folder, node, nodeArgs, protocol }) -> { address, processes: { edge?, client?, subscriber? } or { server }, account?, stopSignal? };
// `protocol` is 'http' or 'udp' for such tunnels, and tcp otherwise.
import { direct } from './direct.mjs';
import { findNginx, nginxPath } from './nginx.mjs';
import { oursPath, peersPath } from './ours.mjs';
import { bareHonoPath, platformPath } from './platform.mjs';
import { POLICIES } from './policies.mjs';
import { bareTlsPath, tlsNamesPath } from './tls.mjs';

/** Paths of a scenario that does not list its own. */
export const USUAL_PATHS = ['direct', 'nginx', 'ours', 'ours-tls'];
export const PATH_NAMES = [
  ...[...USUAL_PATHS, 'ours-sealed', 'ours-uncaptured', ...Object.keys(POLICIES)],
  ...['bare-tls', 'ours-https', 'ours-names', 'ours-tcp-of-tls', 'ours-passthrough'],
  ...['ours-relay', 'ours-direct', 'bare-hono', 'platform', 'platform-mcp'],
];

/** Returns the name of the same path with an earlier build, which is measured beside the current build. */
export const baselineOf = (name) => name.replace(/^ours/, 'before').replace(/^platform/, 'before-platform');

/** Returns the name of the current build's path; baseline paths take part in the scenarios of that path. */
export const pathOfBaseline = (name) => name.replace(/^before-platform/, 'platform').replace(/^before/, 'ours');

/** @returns {{ paths: object[], nginx: object }} `nginx.missing` is the reason if the yardstick is missing */
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
    // The same server with calls by models: a separate path, so that both are in the same table.
    ...withBaseline({ name: 'platform-mcp' }, baseline, platformPath),
  ];
  return { paths: all.filter(({ name }) => names.includes(pathOfBaseline(name))), nginx };
}

/** Returns the path with its baseline right before it, so that a disturbance of the machine affects both. */
const withBaseline = (given, root, pathOf = oursPath) => [
  ...(root === undefined ? [] : [pathOf({ ...given, name: baselineOf(given.name), root })]),
  pathOf(given),
];
