// Conversion of `tunnels` in config.yml for the client: tunnels to publish, and tunnels of other clients to connect to.
import { type ClientSpec, type ConnectPeerOptions, TunnelPolicy } from '@tunnel/client';
import type { ClientTunnel } from '@tunnel/config/client';
import { readPolicySource } from '@tunnel/config/policy';
import { libraryTunnelOf, specOfEntry } from '@tunnel/tunnel-spec';
import type { Io } from '../io/io.ts';

export type NamedTunnel = readonly [name: string, entry: ClientTunnel];

/**
 * Returns the tunnels to publish and the peers to connect to. Reads the policies, and the files named in policies. Throws a Fault or a
 * ConfigProblem.
 */
export const planTunnels = (entries: readonly NamedTunnel[], io: Pick<Io, 'env' | 'home'>, wait = false) => ({
  tunnels: published(entries).map(
    ([name, entry]) => ({ ...specOf(name, entry), ...policyOf(entry, io) }) as ClientSpec,
  ),
  peers: entries.flatMap(([name, entry]) => peerOf(name, entry, wait)),
});

/** Returns the tunnels without their policies, for code that only needs the local targets. */
export const planLocalTunnels = (entries: readonly NamedTunnel[]): ClientSpec[] =>
  published(entries).map((entry) => specOf(...entry));

const published = (entries: readonly NamedTunnel[]): NamedTunnel[] =>
  entries.filter(([, { p2p_connect }]) => p2p_connect === undefined);

/** Returns the policy files named by tunnels. A change of such a file is a change of its tunnels. */
export const policyFilesOf = (entries: readonly NamedTunnel[]): string[] => [
  ...new Set(entries.flatMap(([, { policy }]) => (typeof policy === 'string' ? [policy] : []))),
];

const policyOf = ({ policy }: ClientTunnel, { env, home }: Pick<Io, 'env' | 'home'>): Pick<ClientSpec, 'policy'> => {
  if (policy === undefined) return {};
  const source = typeof policy === 'string' ? readPolicySource({ file: policy, env, home }) : policy;
  return { policy: TunnelPolicy.of([source]) };
};

/** Returns the connection options of a peer, with the option names of the client library. Empty for a published tunnel. */
const peerOf = (name: string, entry: ClientTunnel, wait: boolean): ConnectPeerOptions[] => {
  if (entry.p2p_connect === undefined) return [];
  const { protocol: _protocol, allow: _allow, ...options } = libraryTunnelOf(specOfEntry(entry));
  return [{ ...(options as unknown as ConnectPeerOptions), name, wait }];
};

const specOf = (name: string, { policy: _, ...entry }: ClientTunnel): ClientSpec =>
  ({ ...specOfEntry(entry), name }) as ClientSpec;
