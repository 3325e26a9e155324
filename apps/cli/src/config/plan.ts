// The entries of `tunnels` in config.yml as the client takes them: tunnels of this computer, and tunnels of others to connect to.
import { type ClientSpec, type ConnectPeerOptions, TunnelPolicy } from '@tunnel/client';
import type { ClientTunnel } from '@tunnel/config/client';
import { readPolicySource } from '@tunnel/config/policy';
import { libraryTunnelOf, specOfEntry } from '@tunnel/tunnel-spec';
import type { Io } from '../io/io.ts';

export type NamedTunnel = readonly [name: string, entry: ClientTunnel];

/** Tunnels to publish and peers to connect to. Reads the policies and the files that they name. Throws a Fault or a ConfigProblem. */
export const planTunnels = (entries: readonly NamedTunnel[], io: Pick<Io, 'env' | 'home'>, wait = false) => ({
  tunnels: published(entries).map(
    ([name, entry]) => ({ ...specOf(name, entry), ...policyOf(entry, io) }) as ClientSpec,
  ),
  peers: entries.flatMap(([name, entry]) => peerOf(name, entry, wait)),
});

/** The tunnels without their policies, for code that looks only at their targets. */
export const planLocalTunnels = (entries: readonly NamedTunnel[]): ClientSpec[] =>
  published(entries).map((entry) => specOf(...entry));

const published = (entries: readonly NamedTunnel[]): NamedTunnel[] =>
  entries.filter(([, { p2p_connect }]) => p2p_connect === undefined);

/** Files that are read besides config.yml: a change of such a file is a change of its tunnel. */
export const policyFilesOf = (entries: readonly NamedTunnel[]): string[] => [
  ...new Set(entries.flatMap(([, { policy }]) => (typeof policy === 'string' ? [policy] : []))),
];

const policyOf = ({ policy }: ClientTunnel, { env, home }: Pick<Io, 'env' | 'home'>): Pick<ClientSpec, 'policy'> => {
  if (policy === undefined) return {};
  const source = typeof policy === 'string' ? readPolicySource({ file: policy, env, home }) : policy;
  return { policy: TunnelPolicy.of([source]) };
};

/** By the library's names. */
const peerOf = (name: string, entry: ClientTunnel, wait: boolean): ConnectPeerOptions[] => {
  if (entry.p2p_connect === undefined) return [];
  const { protocol: _protocol, allow: _allow, ...options } = libraryTunnelOf(specOfEntry(entry));
  return [{ ...(options as unknown as ConnectPeerOptions), name, wait }];
};

const specOf = (name: string, { policy: _, ...entry }: ClientTunnel): ClientSpec =>
  ({ ...specOfEntry(entry), name }) as ClientSpec;
