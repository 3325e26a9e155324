// What one key of config.yml demands of another.
import type { Finding } from '../refuse.ts';
import type { ClientFile } from './schema.ts';

type TunnelEntry = ClientFile['tunnels'][string];

export const GROUP_KEY_SOURCES = ['group_key', 'group_key_env', 'group_key_file'] as const;

export const clientFindings = (config: ClientFile): Finding[] => [
  ...(config.auth_token !== undefined && config.auth_token_file !== undefined
    ? [{ path: ['auth_token_file'], expected: 'left out when `auth_token` is given', got: 'both' }]
    : []),
  ...Object.entries(config.tunnels).flatMap(([name, entry]) => tunnelFindings(['tunnels', name], entry)),
];

const tunnelFindings = (path: string[], entry: TunnelEntry): Finding[] => [
  ...groupFindings(path, entry),
  ...(entry.health_check?.type === 'http' && entry.health_check.path === undefined
    ? [{ path: [...path, 'health_check', 'path'], expected: 'given when `type` is "http"', got: 'nothing' }]
    : []),
  ...(entry.remote_port !== undefined && entry.proto !== 'tcp'
    ? [{ path: [...path, 'remote_port'], expected: 'left out unless `proto` is "tcp"', got: String(entry.remote_port) }]
    : []),
  ...httpFindings(path, entry),
];

/** Keys that say nothing about other protocols. */
const httpFindings = (path: string[], entry: TunnelEntry): Finding[] => {
  const findings: Finding[] = [];
  const isHttp = entry.proto === 'http' || entry.proto === 'https';
  const refuse = (key: string, unless: string, got: string): void => {
    findings.push({
      path: [...path, key],
      expected: `left out unless \`proto\` is ${unless}`,
      got: JSON.stringify(got),
    });
  };
  if (!isHttp && entry.subdomain !== undefined) refuse('subdomain', '"http" or "https"', entry.subdomain);
  if (!isHttp && entry.host_header !== 'keep') refuse('host_header', '"http" or "https"', entry.host_header);
  // Over TLS, HTTP/2 is no h2c; and nothing but HTTP needs the key.
  if (entry.proto !== 'http' && entry.local_protocol !== 'http1')
    refuse('local_protocol', '"http"', entry.local_protocol);
  return findings;
};

const groupFindings = (path: string[], entry: TunnelEntry): Finding[] => {
  const [first, second] = GROUP_KEY_SOURCES.filter((key) => entry[key] !== undefined);
  if (first !== undefined && entry.group === undefined) {
    return [{ path: [...path, first], expected: 'left out without a `group`', got: 'no `group`' }];
  }
  if (first === undefined && entry.group !== undefined) {
    return [
      {
        path: [...path, 'group'],
        expected: 'joined by a `group_key`, `group_key_env` or `group_key_file`',
        got: 'none',
      },
    ];
  }
  return second === undefined
    ? []
    : [{ path: [...path, second], expected: `left out when \`${first}\` is given`, got: 'both' }];
};
