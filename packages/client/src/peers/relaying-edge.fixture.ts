// A scripted edge with the parts that peers need: publishers by name, joins with the right secret, and relay streams spliced to the
// publisher.
import { type MuxStream, splice } from '@tunnel/mux';
import type { MessageOf, StreamHead } from '@tunnel/protocol';
import { rethrow } from '@tunnel/testkit';
import { ScriptedEdge, type ScriptedSession } from '../scripted-edge.fixture.ts';

interface Publication {
  readonly session: ScriptedSession;
  readonly tunnelId: string;
  readonly request: MessageOf<'RegisterTunnel'>;
}

interface Join {
  readonly session: ScriptedSession;
  readonly publication: Publication;
}

export class RelayingEdge extends ScriptedEdge {
  readonly published = new Map<string, Publication>();
  readonly joins = new Map<string, Join>();
  /** If true, the edge does not compare secret hashes and lets every subscriber join. */
  isCareless = false;
  #peers = 0;

  constructor() {
    super();
    this.onStream = (stream, head) => this.#relay(stream, head);
    this.script = {
      RegisterTunnel: (request, session) => {
        const tunnelId = this.registered(session, request);
        if (request.p2p_name !== undefined) this.published.set(request.p2p_name, { session, tunnelId, request });
        return true;
      },
      ConnectPeer: (request, session) => {
        this.#join(request, session);
        return true;
      },
    };
  }

  /** Ends a join, as when an operator dismisses the peer or the key is revoked. */
  endJoin(peerId: string, code = 'P2P_DISMISSED', message = 'this peer was dismissed'): void {
    const join = this.joins.get(peerId);
    this.joins.delete(peerId);
    const { session, tunnelId } = join?.publication ?? {};
    session?.send({ type: 'PeerGone', tunnel_id: tunnelId ?? '', peer_id: peerId, reason: 'dismissed' });
    join?.session.send({ type: 'PeerError', peer_id: peerId, code, message, retryable: true });
  }

  #join(request: MessageOf<'ConnectPeer'>, session: ScriptedSession): void {
    const { request_id, p2p_name: name, p2p_secret_hash: hash, service } = request;
    const publication = this.published.get(name);
    const refuse = (code: string, message: string, retryable: boolean): void =>
      session.send({ type: 'PeerError', request_id, code, message, retryable });
    if (publication === undefined || (!this.isCareless && publication.request.p2p_secret_hash !== hash)) {
      return refuse('P2P_NOT_FOUND', `p2p '${name}' was not found, or the secret does not match`, true);
    }
    const { p2p_service: published = 'tcp' } = publication.request;
    if (published !== service) return refuse('P2P_SERVICE_MISMATCH', `'${name}' is a ${published} service`, false);
    this.#peers += 1;
    const peerId = `peer_${this.#peers}`;
    this.joins.set(peerId, { session, publication });
    publication.session.send({
      type: 'PeerJoined',
      tunnel_id: publication.tunnelId,
      peer_id: peerId,
      client_addr: '192.0.2.7:5000',
    });
    session.send({ type: 'PeerConnected', request_id, peer_id: peerId });
  }

  #relay(stream: MuxStream, { tunnelId: peerId }: StreamHead): void {
    const join = this.joins.get(peerId);
    if (join === undefined) return stream.refuse({ code: 'unknown-tunnel', text: 'no such peer' });
    const { session, tunnelId } = join.publication;
    const pending = session.mux.open(
      { tunnelId, visitor: '192.0.2.7:5000', peerId },
      {
        onOpened: (other) => {
          stream.accept();
          splice(stream, other, { onDone: () => {}, abandon: rethrow });
        },
        onRefused: (reason) => stream.refuse(reason),
        abandon: rethrow,
      },
    );
    if (pending === null) stream.refuse({ code: 'carrier-lost', text: 'the publisher is away' });
  }
}
