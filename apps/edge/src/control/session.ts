// Session of a client: owner, state, current connection and streams.
import { type Owner } from '@tunnel/rules/tunnels';
import { SerialQueue } from '@tunnel/runtime';
import type { Tunnel } from '../routing/tunnel.ts';
import { MuxUpstream } from '../upstream/upstream.ts';
import type { ControlConnection } from './control-connection.ts';
import { type SessionState, startSession } from './session-life.rules.ts';

const REGISTRATIONS = {
  maxWaiting: 256,
  full: () => new Error('too many registrations are queued'),
};

export class Session {
  readonly sessionId: string;
  /** SHA-256 of the resume secret, so that the stored value cannot be used to resume. */
  readonly secretHash: string;
  readonly owner: Owner;
  /** Key of the latest Auth. A client can resume with another key of the same owner. */
  keyId: string;
  /** Capabilities of the latest Auth. A client can resume with a newer or older version. */
  capabilities: readonly string[];
  /** Name of the client's computer, from the latest Auth. Undefined if the client sent none. */
  clientName: string | undefined;
  state: SessionState;
  connection: ControlConnection | null;
  /** Streams to the client, independent of its current connection. */
  readonly upstream = new MuxUpstream();
  /** Open tunnels of the session, and tunnels held for its return, by id. */
  readonly tunnels = new Map<string, Tunnel>();
  /**
   * Remaining time for DNS lookups of alert URLs on this connection, in milliseconds. Frames are handled in order, so a DNS server without
   * response could delay the last of many tunnels beyond the client's timeout, on every reconnect.
   */
  alertLookupMs = 0;
  /**
   * Runs registrations in order, including those of a replaced connection and its successor. Each connection has at most one in the queue,
   * so only a client reconnecting hundreds of times during a registration exceeds the maximum.
   */
  readonly registrations = new SerialQueue(REGISTRATIONS);

  constructor(options: {
    readonly sessionId: string;
    readonly secretHash: string;
    readonly owner: Owner;
    readonly keyId: string;
    readonly capabilities: readonly string[];
    readonly clientName?: string | undefined;
    readonly connection: ControlConnection;
  }) {
    this.sessionId = options.sessionId;
    this.secretHash = options.secretHash;
    this.owner = options.owner;
    this.keyId = options.keyId;
    this.capabilities = options.capabilities;
    this.clientName = options.clientName;
    this.connection = options.connection;
    this.state = startSession(options.connection.id);
  }
}
