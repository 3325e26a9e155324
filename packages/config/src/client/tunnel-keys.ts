// Checks which keys of config.yml belong to which kinds of tunnels. A key for another kind of tunnel would have no effect, so the key is
// surely a mistake: config loading rejects the key at its line, whatever its value.
import { hasOption, OPTION_KEYS, type OptionKey, optionOf, type Proto } from '@tunnel/tunnel-spec';
import type { Tree } from '../layers/layer.ts';
import type { Finding } from '../layers/problem.ts';

/** Messages for keys of another kind of tunnel. The edge reports the same mistakes with exactly these words. */
const GROUPS_ONLY = 'left out: groups exist for http and tcp tunnels only';
const HEALTH_ONLY = 'left out: health_check exists for http and tcp tunnels only';
const POLICY_ONLY = 'left out: policy is for http, tcp and udp tunnels';

/** Finds keys that do not belong to a tunnel of the kind `proto`. `written` has the tunnel's keys as in the file, without defaults. */
export const foreignKeys = (path: readonly string[], proto: Proto, written: Tree): Finding[] =>
  OPTION_KEYS.filter((key) => Object.hasOwn(written, key) && !hasOption(proto, key)).map((key) => ({
    path: [...path, key],
    expected: expectedOf(key),
  }));

const expectedOf = (key: OptionKey): string => {
  if (key === 'health_check') return HEALTH_ONLY;
  if (key === 'policy') return POLICY_ONLY;
  if (key.startsWith('group')) return GROUPS_ONLY;
  const protos = optionOf(key).protos.map((proto) => JSON.stringify(proto));
  return `left out unless \`proto\` is ${protos.join(' or ')}`;
};

// Targets of tunnels other than p2p tunnels: exactly one service, socket or folder on this machine.

const TARGET_KEYS = ['local_port', 'local_socket', 'files'];
/**
 * Keys without a meaning beside certain targets: each key, with the targets that exclude the key. `local_host` only completes
 * `local_port`; a folder that the client serves has no protocol and no health check.
 */
const TARGETLESS_KEYS: readonly [key: string, beside: readonly string[]][] = [
  ['local_host', ['local_socket', 'files']],
  ['local_protocol', ['files']],
  ['health_check', ['files']],
];

/** Checks the target keys of a tunnel other than a p2p tunnel. `written` has the tunnel's keys as in the file, without defaults. */
export const localFindings = (path: readonly string[], written: Tree): Finding[] => {
  const [first, second] = TARGET_KEYS.filter((key) => written[key] !== undefined);
  if (first === undefined) {
    // The message mentions only `local_port`: a user who wants to publish a port need not know `local_socket` and `files`.
    return [{ path: [...path, 'local_port'], expected: 'a whole number from 1 to 65535', got: 'nothing' }];
  }
  if (second !== undefined) {
    return [{ path: [...path, second], expected: `left out when \`${first}\` is given`, got: 'both' }];
  }
  return TARGETLESS_KEYS.filter(([key, beside]) => written[key] !== undefined && beside.includes(first)).map(
    ([key]) => ({
      path: [...path, key],
      expected: `left out when \`${first}\` is given`,
      got: 'both',
    }),
  );
};

// Keys of p2p tunnels. An entry either publishes a service or connects to a published service, with different keys for the two roles, and
// has a secret.

const SECRET_KEYS = ['p2p_secret', 'p2p_secret_env', 'p2p_secret_file'];
const PUBLISH_KEYS = ['local_port', 'local_host', 'p2p_allow'];
const CONNECT_KEYS = ['listen_port', 'listen_host'];

/** Checks the keys of a p2p tunnel. `written` has the tunnel's keys as in the file, without defaults. */
export const peerFindings = (path: readonly string[], written: Tree): Finding[] => {
  const has = (key: string): boolean => written[key] !== undefined;
  const at = (key: string, expected: string, got?: string): Finding[] => [
    { path: [...path, key], expected, ...(got === undefined ? {} : { got }) },
  ];
  if (!has('p2p_publish') && !has('p2p_connect')) {
    return at('proto', 'combined with `p2p_publish` or `p2p_connect`', 'neither');
  }
  if (has('p2p_publish') && has('p2p_connect')) {
    return at('p2p_connect', 'left out when `p2p_publish` is given', 'both');
  }
  const [role, other] = has('p2p_publish') ? ['p2p_publish', 'p2p_connect'] : ['p2p_connect', 'p2p_publish'];
  const foreign = (role === 'p2p_publish' ? CONNECT_KEYS : PUBLISH_KEYS).find(has);
  if (foreign !== undefined) return at(foreign, `left out unless \`${other}\` is given`);
  const needed = role === 'p2p_publish' ? 'local_port' : 'listen_port';
  if (!has(needed)) return at(needed, `\`${role}\` needs it`, 'nothing');
  const [first, second] = SECRET_KEYS.filter(has);
  if (first === undefined) return at(role, 'combined with `p2p_secret_file`, `p2p_secret_env` or `p2p_secret`', 'none');
  return second === undefined ? [] : at(second, `left out when \`${first}\` is given`, 'both');
};
