// One client that runs: who it is, where its machine stands, and the connection and streams it has now.
import { type Owner } from '@tunnel/rules/tunnels';
import { SerialQueue } from '@tunnel/runtime';
import type { Tunnel } from '../routing/tunnel.ts';
import { MuxUpstream } from '../upstream/upstream.ts';
import type { ControlConnection } from './control-connection.ts';
import { type SessionState, startSession } from './session-life.rules.ts';

export class Session {
  readonly sessionId: string;
  /** SHA-256 of the resume secret: what is stored cannot be used. */
  readonly secretHash: string;
  readonly owner: Owner;
  /** The key of the latest Auth: a resume may come with another one of the same owner. */
  keyId: string;
  /** What the latest Auth agreed on: a resume may come from a newer or older client. */
  capabilities: readonly string[];
  /** What the client calls its computer, by the latest Auth; undefined: it does not say. */
  clientName: string | undefined;
  state: SessionState;
  connection: ControlConnection | null;
  /** The way to its client, whichever connection that has now. */
  readonly upstream = new MuxUpstream();
  /** Living and held ones, by id. */
  readonly tunnels = new Map<string, Tunnel>();
  /**
   * How long names of alert URLs may still be looked up on this connection. Frames are handled in turn, so that a silent name
   * server would hold up the last tunnel of many for longer than its client waits, and each time it comes back.
   */
  alertLookupMs = 0;
  /**
   * Registrations run one after the other, also those of a connection and of the one that replaced it. Each connection has one at most, so that only a client that
   * reconnects hundreds of times during one registration loses its connection here.
   */
  readonly registrations = new SerialQueue({
    maxWaiting: 256,
    full: () => new Error('too many registrations are queued'),
  });

  constructor(given: {
    readonly sessionId: string;
    readonly secretHash: string;
    readonly owner: Owner;
    readonly keyId: string;
    readonly capabilities: readonly string[];
    readonly clientName?: string | undefined;
    readonly connection: ControlConnection;
  }) {
    this.sessionId = given.sessionId;
    this.secretHash = given.secretHash;
    this.owner = given.owner;
    this.keyId = given.keyId;
    this.capabilities = given.capabilities;
    this.clientName = given.clientName;
    this.connection = given.connection;
    this.state = startSession(given.connection.id);
  }
}
