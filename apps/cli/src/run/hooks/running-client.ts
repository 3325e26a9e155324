// A running client as the hooks of a run see it (agent, readiness, reload): its tunnels with their source and state, and the commands
// that a hook may give.
import type { Client, ClientSpec, ConnectPeerOptions, PeerConnection, Tunnel } from '@tunnel/client';
import type { Fault } from '@tunnel/errors';
import type { ReloadOutcome } from '@tunnel/tunnel-spec';
import type { RunningTunnelState } from '../../agent/answers.ts';
import type { TunnelSource } from '../../agent/readiness.rules.ts';
import type { ComfortFlags, ConnectionFlags, RequestFlags } from '../../config/flags.ts';
import type { ConnectionSettings } from '../../config/settings.ts';
import type { Output, RemovedTunnel } from '../../output/output.ts';

/** What a command wants to run. */
export interface TunnelRun {
  readonly settings: ConnectionSettings;
  readonly flags: Pick<ConnectionFlags, 'json' | 'wait' | 'drainSecs' | 'newName'> &
    Partial<RequestFlags> &
    ComfortFlags;
  readonly stateKey: string;
  /** The config file it was told to use, or found; null: there is none. */
  readonly config: string | null;
  /** Where its tunnels come from. */
  readonly source: Extract<TunnelSource, 'file' | 'flags' | 'mcp'>;
  readonly tunnels: readonly ClientSpec[];
  /** What others publish. */
  readonly peers?: readonly ConnectPeerOptions[];
  /** Reads the file again and applies it. Left out: there is nothing to read. */
  readonly reload?: (running: RunningClient) => Promise<ReloadOutcome>;
  /** What the `ready` event of `--json` says besides. Not for logs: it may be a secret. */
  readonly readyFields?: (tunnel: Tunnel) => Readonly<Record<string, unknown>>;
  /** Besides those of every run. */
  readonly hooks?: readonly RunHook[];
}

/** A tunnel, or a connection to what another client publishes. */
export interface RunningTunnel {
  readonly name: string;
  readonly source: TunnelSource;
  readonly state: RunningTunnelState;
  readonly wanted: ClientSpec | ConnectPeerOptions;
  /** null until it was open once, and for a connection to a peer. */
  readonly tunnel: Tunnel | null;
  /** null until it was ready once, and for a tunnel. */
  readonly connection: PeerConnection | null;
  readonly lastError: Fault | null;
}

export interface RunningClient {
  readonly plan: TunnelRun;
  /** Epoch milliseconds. */
  readonly since: number;
  readonly state: 'connecting' | 'connected' | 'reconnecting' | 'closing';
  /** null until it was connected once. */
  readonly client: Client | null;
  readonly tunnels: readonly RunningTunnel[];
  readonly inspectUrl: string | null;
  /** Rejects with a Fault when the name is taken, or the edge refuses. */
  open(spec: ClientSpec, source: TunnelSource): Promise<Tunnel>;
  connectPeer(options: ConnectPeerOptions, source: TunnelSource): Promise<PeerConnection>;
  /** Opens a tunnel of the config file as soon as the client is connected; events tell the result. `endpointOf` is the tunnel that had the endpoint before. */
  begin(wanted: ClientSpec | ConnectPeerOptions, endpointOf: Tunnel | null): void;
  /** The tunnel of that name leads elsewhere from now on. */
  retarget(spec: ClientSpec): Promise<void>;
  /** The tunnel of that name has another policy or other services from now on, and maybe another target. Rejects with why it has not. */
  update(spec: ClientSpec): Promise<void>;
  /** Closes a tunnel that is about to be opened again with other options, without an event for its end. Resolves to the closed tunnel. */
  release(name: string): Promise<Tunnel | null>;
  /** The file names it now. */
  adopt(name: string): void;
  /** No new visitors; those that are there may finish. false: there is none of that name. */
  remove(name: string, reason: RemovedTunnel['reason']): Promise<boolean>;
  /** Prints whole lines to every output of the run. */
  notice(text: string, channel: 'stdout' | 'stderr'): void;
  /** Ends it as the first signal does. */
  stop(): void;
  /** null: it has no file. Rejects with why the file is not good; outputs were told either way. */
  readonly reload: (() => Promise<ReloadOutcome>) | null;
}

/** A part of a run beside the tunnels, such as the agent or the log file. A hook is made before the run, sees it, and closes after it. */
export interface RunHook {
  /** Sees what happens from the first moment on. */
  readonly output?: Partial<Output>;
  /** Before the client connects, which waits for it. */
  onRunning?(running: RunningClient): void | Promise<void>;
  close?(): Promise<void>;
}

export const isTunnel = (wanted: ClientSpec | ConnectPeerOptions): wanted is ClientSpec => 'proto' in wanted;

/** The client's own rule, for those that were given none. */
export const nameOf = (wanted: ClientSpec | ConnectPeerOptions): string => {
  if (!isTunnel(wanted)) return wanted.name ?? wanted.p2pName;
  return wanted.name ?? wanted.p2p_publish ?? `${wanted.proto}-${wanted.local_port}`;
};
