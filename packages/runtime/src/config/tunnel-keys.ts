// Which keys of config.yml belong to which kinds of tunnels. A key that a file has for a tunnel of another kind would change nothing
// there, so it was meant otherwise: it is refused at its line, whatever its value.
import type { Tree } from './layer.ts';
import type { Finding } from './problem.ts';

/** What `proto` can be; a kind that is not in this version may have its keys here before. */
type TunnelKind = 'http' | 'https' | 'tcp' | 'udp' | 'p2p';

const HTTP: readonly TunnelKind[] = ['http', 'https'];
const GROUPED: readonly TunnelKind[] = [...HTTP, 'tcp'];
const PORTED: readonly TunnelKind[] = ['tcp', 'udp'];

/** Keys that are not here belong to every kind. A new kind with keys of its own adds its lines. */
const KINDS_OF_KEY: ReadonlyMap<string, readonly TunnelKind[]> = new Map<string, readonly TunnelKind[]>([
  ['local_protocol', HTTP],
  ['local_tls_verify', ['https']],
  ['subdomain', HTTP],
  ['host_header', HTTP],
  ['capture', HTTP],
  ['remote_port', PORTED],
  ['idle_secs', ['udp']],
  ['proxy_protocol', ['udp']],
  ['group', GROUPED],
  ['group_key', GROUPED],
  ['group_key_env', GROUPED],
  ['group_key_file', GROUPED],
  ['health_check', GROUPED],
]);

/** To the letter what the edge says of the same. */
const GROUPS_ONLY = 'left out: groups exist for http and tcp tunnels only';
const HEALTH_ONLY = 'left out: health_check exists for http and tcp tunnels only';

/** `written`: the keys of one tunnel as they stand in the file, without defaults. */
export const foreignKeys = (path: readonly string[], kind: TunnelKind, written: Tree): Finding[] =>
  Object.keys(written).flatMap((key) => {
    const kinds = KINDS_OF_KEY.get(key);
    if (kinds === undefined || kinds.includes(kind)) return [];
    return [{ path: [...path, key], expected: expectedOf(key, kinds) }];
  });

const expectedOf = (key: string, kinds: readonly TunnelKind[]): string => {
  if (key === 'health_check') return HEALTH_ONLY;
  if (kinds === GROUPED) return GROUPS_ONLY;
  return `left out unless \`proto\` is ${kinds.map((kind) => JSON.stringify(kind)).join(' or ')}`;
};
