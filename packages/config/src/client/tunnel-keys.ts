// Which keys of config.yml belong to which kinds of tunnels. A key that a file has for a tunnel of another kind would change nothing
// there, so it was meant otherwise: it is refused at its line, whatever its value.
import { hasOption, OPTION_KEYS, type OptionKey, optionOf, type Proto } from '@tunnel/tunnel-spec';
import type { Tree } from '../layers/layer.ts';
import type { Finding } from '../layers/problem.ts';

/** To the letter what the edge says of the same. */
const GROUPS_ONLY = 'left out: groups exist for http and tcp tunnels only';
const HEALTH_ONLY = 'left out: health_check exists for http and tcp tunnels only';
const POLICY_ONLY = 'left out: policy is for http, tcp and udp tunnels';

/** `written`: the keys of one tunnel as they stand in the file, without defaults. */
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

// Every other entry leads to one place on this machine.

const TARGET_KEYS = ['local_port', 'local_socket', 'files'];
/** What says nothing without the port that it belongs to, or about a folder that the client serves itself. */
const TARGETLESS_KEYS: readonly [key: string, beside: readonly string[]][] = [
  ['local_host', ['local_socket', 'files']],
  ['local_protocol', ['files']],
  ['health_check', ['files']],
];

/** `written`: as above. */
export const localFindings = (path: readonly string[], written: Tree): Finding[] => {
  const [first, second] = TARGET_KEYS.filter((key) => written[key] !== undefined);
  if (first === undefined) {
    // Nobody has to know the other two to publish a port.
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

// A p2p entry has one of two roles, each with keys of its own, and a secret.

const SECRET_KEYS = ['p2p_secret', 'p2p_secret_env', 'p2p_secret_file'];
const PUBLISH_KEYS = ['local_port', 'local_host', 'p2p_allow'];
const CONNECT_KEYS = ['listen_port', 'listen_host'];

/** `written`: as above. */
export const peerFindings = (path: readonly string[], written: Tree): Finding[] => {
  const has = (key: string): boolean => written[key] !== undefined;
  const at = (key: string, expected: string, got?: string): Finding[] => [
    { path: [...path, key], expected, ...(got === undefined ? {} : { got }) },
  ];
  if (!has('p2p_publish') && !has('p2p_connect')) {
    return at('proto', 'joined by `p2p_publish` or `p2p_connect`', 'neither');
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
  if (first === undefined) return at(role, 'joined by a `p2p_secret_file`, `p2p_secret_env` or `p2p_secret`', 'none');
  return second === undefined ? [] : at(second, `left out when \`${first}\` is given`, 'both');
};
