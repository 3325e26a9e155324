// A tunnel to be added, on its way from the command that asks for it to the client that opens it: JSON with the names of the library.
import { checkTunnelSpec, policyToSend, type TunnelSpec } from '@tunnel/client';
import { Secret } from '@tunnel/runtime';
import { misuse } from '../io/problem-report.ts';

/** The name is known to whoever asks: it is what the tunnel is removed by. */
export type NamedSpec = TunnelSpec & { readonly name: string };

type Kind = 'string' | 'number' | 'boolean' | 'object';

/** What may be said of a tunnel that is added; p2p has secrets of its own, and commands of its own. */
const KEYS: Readonly<Partial<Record<keyof TunnelSpec, Kind>>> = {
  protocol: 'string',
  name: 'string',
  localHost: 'string',
  localPort: 'number',
  localSocket: 'string',
  allowControlSocket: 'boolean',
  files: 'object',
  subdomain: 'string',
  domain: 'string',
  hostHeader: 'string',
  localProtocol: 'string',
  localTlsVerify: 'boolean',
  capture: 'boolean',
  remotePort: 'number',
  idleSecs: 'number',
  proxyProtocol: 'string',
  group: 'string',
  groupKey: 'string',
  healthCheck: 'object',
  policy: 'object',
  policyRevision: 'number',
  services: 'object',
};

/**
 * The key of a group goes along: the socket is its owner's alone, and so is the client behind it. A policy goes as the edge would be sent it: no
 * password, no token, and no file that would be looked for from another folder.
 */
export const specToWire = async (spec: NamedSpec): Promise<object> => {
  const { groupKey } = spec;
  const policy = await policyToSend(spec);
  return {
    ...spec,
    ...(groupKey instanceof Secret ? { groupKey: groupKey.reveal() } : {}),
    ...(policy === null ? {} : { policy }),
  };
};

/** Throws a Fault for what is no tunnel. */
export const specFromWire = (json: unknown): NamedSpec => {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) throw misuse('a tunnel is a JSON object');
  for (const [key, value] of Object.entries(json)) {
    const kind = Object.hasOwn(KEYS, key) ? KEYS[key as keyof TunnelSpec] : undefined;
    if (kind === undefined) throw misuse(`\`${key}\` says nothing about a tunnel that is added`);
    if (typeof value !== kind || value === null || Array.isArray(value))
      throw misuse(`\`${key}\` must be of the kind ${kind}`);
  }
  const spec = json as NamedSpec;
  if (typeof spec.name !== 'string' || spec.name === '') throw misuse('a tunnel that is added has a `name`');
  if ((spec.protocol as string) === 'p2p') throw misuse('p2p tunnels are published with `tunnel p2p publish`');
  checkTunnelSpec(spec);
  return spec;
};
