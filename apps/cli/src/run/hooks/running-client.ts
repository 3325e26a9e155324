// The interface of a running client for the hooks of a run (agent, readiness, reload): its tunnels with their origin and state, and the
// commands available to a hook.
import type { Client, ClientSpec, ConnectPeerOptions, PeerConnection, Tunnel } from '@tunnel/client';
import type { Fault } from '@tunnel/errors';
import type { ReloadOutcome } from '@tunnel/tunnel-spec';
import type { RunningTunnelState } from '../../agent/answers.ts';
import type { TunnelSource } from '../../agent/readiness.rules.ts';
import type { ComfortFlags, ConnectionFlags, RequestFlags } from '../../config/flags.ts';
import type { ConnectionSettings } from '../../config/settings.ts';
import type { Output, RemovedTunnel } from '../../output/output.ts';

/** The plan of a run, made by a command: settings, tunnels and peer connections. */
export interface TunnelRun {
  readonly settings: ConnectionSettings;
  readonly flags: Pick<ConnectionFlags, 'json' | 'wait' | 'drainSecs' | 'newName'> &
    Partial<RequestFlags> &
    ComfortFlags;
  readonly stateKey: string;
  /** Path of the config file, given by a flag or found. Null without a config file. */
  readonly config: string | null;
  /** Origin of the tunnels in the plan. */
  readonly source: Extract<TunnelSource, 'file' | 'flags' | 'mcp'>;
  readonly tunnels: readonly ClientSpec[];
  /** Connections to tunnels published by other clients. */
  readonly peers?: readonly ConnectPeerOptions[];
  /** Reads the config file again and applies the changes. Undefined if there is no config file to read. */
  readonly reload?: (running: RunningClient) => Promise<ReloadOutcome>;
  /** Returns additional fields for the `ready` event of `--json`. The fields are not logged, because they can contain a secret. */
  readonly readyFields?: (tunnel: Tunnel) => Readonly<Record<string, unknown>>;
  /** Hooks in addition to the hooks of every run. */
  readonly hooks?: readonly RunHook[];
}

/** A tunnel, or a connection to a tunnel published by another client. */
export interface RunningTunnel {
  readonly name: string;
  readonly source: TunnelSource;
  readonly state: RunningTunnelState;
  readonly wanted: ClientSpec | ConnectPeerOptions;
  /** Null until the tunnel has been open once, and for a connection to a peer. */
  readonly tunnel: Tunnel | null;
  /** Null until the connection has been ready once, and for a tunnel. */
  readonly connection: PeerConnection | null;
  readonly lastError: Fault | null;
}

export interface RunningClient {
  readonly plan: TunnelRun;
  /** Start of the run, in epoch milliseconds. */
  readonly since: number;
  readonly state: 'connecting' | 'connected' | 'reconnecting' | 'closing';
  /** Null until the client has been connected once. */
  readonly client: Client | null;
  readonly tunnels: readonly RunningTunnel[];
  readonly inspectUrl: string | null;
  /** Opens a tunnel. Rejects with a Fault if the name is already used, or the edge rejects the tunnel. */
  open(spec: ClientSpec, source: TunnelSource): Promise<Tunnel>;
  connectPeer(options: ConnectPeerOptions, source: TunnelSource): Promise<PeerConnection>;
  /**
   * Opens a tunnel or peer connection of the config file as soon as the client is connected. Status events report the result.
   * `endpointOf` is the closed tunnel that had the public endpoint before.
   */
  begin(wanted: ClientSpec | ConnectPeerOptions, endpointOf: Tunnel | null): void;
  /** Changes the local target of the tunnel with the spec's name. */
  retarget(spec: ClientSpec): Promise<void>;
  /**
   * Changes policy and services of the tunnel with the spec's name, and its target if that differs. Rejects with the reason of a failure.
   */
  update(spec: ClientSpec): Promise<void>;
  /** Closes a tunnel that will be reopened with other options, without an event for the removal. Resolves to the closed tunnel. */
  release(name: string): Promise<Tunnel | null>;
  /** Marks a tunnel as defined by the config file. */
  adopt(name: string): void;
  /** Closes a tunnel to new visitors; current visitors may finish. Resolves to false if no tunnel has the name. */
  remove(name: string, reason: RemovedTunnel['reason']): Promise<boolean>;
  /** Prints whole lines to every output of the run. */
  notice(text: string, channel: 'stdout' | 'stderr'): void;
  /** Ends the run in the same way as the first signal. */
  stop(): void;
  /**
   * Reloads the config file. Null without a config file. Rejects with the reason if the file is invalid. Outputs are notified in both
   * cases.
   */
  readonly reload: (() => Promise<ReloadOutcome>) | null;
}

/**
 * A part of a run beside the tunnels, such as the agent or the log file. A hook is created before the run, observes the run, and closes
 * after the run.
 */
export interface RunHook {
  /** Receives the events of the run from the start. */
  readonly output?: Partial<Output>;
  /** Called before the client connects. The client waits for the returned promise. */
  onRunning?(running: RunningClient): void | Promise<void>;
  close?(): Promise<void>;
}

export const isTunnel = (wanted: ClientSpec | ConnectPeerOptions): wanted is ClientSpec => 'proto' in wanted;

/** Returns the name of a tunnel or peer connection. An unnamed tunnel gets its name by the same rule as in the client library. */
export const nameOf = (wanted: ClientSpec | ConnectPeerOptions): string => {
  if (!isTunnel(wanted)) return wanted.name ?? wanted.p2pName;
  return wanted.name ?? wanted.p2p_publish ?? `${wanted.proto}-${wanted.local_port}`;
};
