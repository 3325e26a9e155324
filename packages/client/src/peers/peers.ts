// The peers of one client: subscribers of its published p2p tunnels, and its connections to other publishers. Passes the current session
// and the edge's messages to both.

import { Fault } from '@tunnel/errors';
import type { DatagramStream, MuxStream } from '@tunnel/mux';
import type { ControlMessage, StreamHead } from '@tunnel/protocol';
import type { EntryFields } from '@tunnel/tunnel-spec';
import type { ConnectionSettings } from '../connection/connection.ts';
import type { Session } from '../connection/session.ts';
import { checkP2pName, p2pSecretHash, resolveP2pSecret } from '../tunnels/kinds/p2p-secret.ts';
import type { TunnelEntry } from '../tunnels/tunnel.ts';
import type { TunnelEvent } from '../tunnels/tunnel-event.ts';
import { PeerLink } from './peer-connection.ts';
import { ClientPeerNetwork, type EdgeView, loadPeerPackage, type PeerIdentity } from './peer-network.ts';
import type { ConnectPeerOptions, PeerEvent } from './peer-types.ts';
import { PublishedPeers } from './published-peers.ts';

/** Checks the options of a p2p connection. Throws a Fault if they are invalid, before the edge is asked. */
export const checkPeerOptions = ({ p2pName, secret, service, listenPort, listenHost }: ConnectPeerOptions): void => {
  const refuse = (reason: string): Fault => new Fault('CLIENT_USAGE', { reason });
  checkP2pName(p2pName);
  resolveP2pSecret(secret);
  if (service !== undefined && service !== 'tcp' && service !== 'udp') throw refuse('a p2p service must be tcp or udp');
  const isPort = listenPort === undefined || (Number.isInteger(listenPort) && listenPort >= 0 && listenPort <= 65_535);
  if (!isPort) throw refuse('the port to listen on must be a whole number from 0 to 65535');
  if (listenHost !== undefined && (typeof listenHost !== 'string' || listenHost === '')) {
    throw refuse('the host to listen on must be a string');
  }
};

/** Returns the fields of a peer connection for comparison, like tunnelFields() for tunnels. */
export const peerFields = (options: ConnectPeerOptions): EntryFields => ({
  p2p_connect: options.p2pName.toLowerCase(),
  p2p_secret: p2pSecretHash(resolveP2pSecret(options.secret)),
  p2p_service: options.service ?? 'tcp',
  p2p_direct: options.direct ?? true,
  listen_host: options.listenHost ?? '127.0.0.1',
  listen_port: options.listenPort,
});

export interface PeersOptions {
  readonly settings: Pick<ConnectionSettings, 'clock' | 'random' | 'report' | 'wait'>;
  readonly emit: (event: PeerEvent | TunnelEvent) => void;
  readonly findTunnel: (tunnelId: string) => TunnelEntry | undefined;
  readonly serve: (stream: MuxStream, tunnel: TunnelEntry) => void;
  readonly serveFlow: (stream: DatagramStream, head: StreamHead, tunnel: TunnelEntry) => void;
  readonly beginServing: () => () => void;
}

export class Peers {
  readonly #options: PeersOptions;
  readonly #published = new Map<TunnelEntry, PublishedPeers>();
  readonly #connections = new Set<PeerLink>();
  #session: Session | null = null;
  /** The latest session with the edge, which may have been lost. */
  #edge: EdgeView | null = null;
  #lastRequest = 0;
  #isDraining = false;

  constructor(options: PeersOptions) {
    this.#options = options;
  }

  get connections(): readonly PeerLink[] {
    return [...this.#connections].filter(({ isLeaving }) => !isLeaving);
  }

  get isUsed(): boolean {
    return this.#published.size + this.#connections.size > 0;
  }

  // ---- the edge ----

  sessionUp(session: Session): void {
    this.#session = session;
    this.#edge = session;
    for (const connection of this.#connections) connection.sessionUp(session);
  }

  sessionDown(): void {
    this.#session = null;
    for (const connection of this.#connections) connection.sessionDown();
  }

  /** Handles a message of the edge. Returns false if the message does not concern peers. */
  onMessage(message: ControlMessage): boolean {
    switch (message.type) {
      case 'PeerJoined':
      case 'PeerGone':
        this.#options.findTunnel(message.tunnel_id)?.published?.onMessage(message);
        return true;
      case 'PeerConnected': {
        const isTaken = [...this.#connections].some((connection) => connection.onMessage(message));
        // The p2p connection was closed while the request to join was on its way.
        if (!isTaken) this.#session?.send({ type: 'DisconnectPeer', peer_id: message.peer_id });
        return true;
      }
      case 'PeerError':
        for (const connection of this.#connections) if (connection.onMessage(message)) break;
        return true;
      default:
        return false;
    }
  }

  /** Sends due traffic reports of published p2p tunnels. Called every CLIENT_TICK_MS by the owner of the timer. */
  tick(now: number): void {
    for (const published of this.#published.values()) published.tick(now);
  }

  // ---- publishing ----

  /** Prepares a p2p tunnel before its registration, because a subscriber may arrive immediately afterwards. */
  async publish(tunnel: TunnelEntry): Promise<void> {
    const loaded = await loadPeerPackage();
    const { settings, emit, serve, serveFlow } = this.#options;
    const { clock, report } = settings;
    const { p2p_publish, p2p_secret, p2p_service: service = 'tcp', p2p_direct: direct = true } = tunnel.asked;
    const published = new PublishedPeers(loaded, {
      tunnel,
      identity: { p2pName: checkP2pName(p2p_publish), service, direct },
      secret: resolveP2pSecret(p2p_secret),
      network: new ClientPeerNetwork(loaded, clock, () => this.#edge),
      clock,
      report,
      emit,
      tell: (message) => {
        if (tunnel.state === 'open') this.#session?.send(message);
      },
      serve: (stream) => {
        if (this.#isDraining) stream.refuse({ code: 'shutting-down', text: 'the publisher is stopping' });
        else serve(stream, tunnel);
      },
      serveFlow: (stream, head) => serveFlow(stream, head, tunnel),
    });
    this.#published.set(tunnel, published);
    tunnel.publishes(published, () => this.#published.delete(tunnel));
  }

  // ---- connecting ----

  async connect(options: ConnectPeerOptions): Promise<PeerLink> {
    checkPeerOptions(options);
    const loaded = await loadPeerPackage();
    const { settings, emit, beginServing } = this.#options;
    const { clock, random, report } = settings;
    const { secret, listenHost: host = '127.0.0.1', listenPort: port } = options;
    const identity: PeerIdentity = {
      p2pName: checkP2pName(options.p2pName),
      service: options.service ?? 'tcp',
      direct: options.direct ?? true,
    };
    const connection: PeerLink = new PeerLink(loaded, {
      name: options.name ?? identity.p2pName,
      identity,
      secret: resolveP2pSecret(secret),
      listen: port === undefined ? null : { host, port },
      wait: options.wait ?? settings.wait,
      network: new ClientPeerNetwork(loaded, clock, () => this.#edge),
      clock,
      random,
      report,
      emit,
      beginServing,
      newRequestId: () => {
        this.#lastRequest += 1;
        return `p${this.#lastRequest}`;
      },
      onClosed: (closed) => this.#connections.delete(closed),
    });
    this.#connections.add(connection);
    await connection
      .start(() => this.#session)
      .catch((error: unknown) => {
        connection.end(Fault.from(error));
        throw error;
      });
    return connection;
  }

  // ---- the end ----

  /** Stops accepting new p2p connections. Current connections may finish. */
  drain(): void {
    this.#isDraining = true;
    for (const connection of this.#connections) connection.drain();
  }

  close(fault?: Fault): void {
    for (const connection of [...this.#connections]) connection.end(fault);
  }
}
