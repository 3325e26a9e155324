// The ways from a visitor to the origin, in the order in which a round takes them.
// A path has a name and start({ ground, folder, node, nodeArgs }) -> { address, processes: { edge?, client? } }.
import { direct } from './direct.mjs';
import { findNginx, nginxPath } from './nginx.mjs';
import { oursPath } from './ours.mjs';

export const PATH_NAMES = ['direct', 'nginx', 'ours', 'ours-tls'];

/** @returns {{ paths: object[], nginx: object }} `nginx.missing` says why there is no yardstick */
export function choosePaths(names = PATH_NAMES) {
  const nginx = findNginx();
  const all = [direct, ...(nginx.missing ? [] : [nginxPath(nginx)]), oursPath({ tls: false }), oursPath({ tls: true })];
  return { paths: all.filter(({ name }) => names.includes(name)), nginx };
}
