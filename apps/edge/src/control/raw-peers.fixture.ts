// Publishers and subscribers with a bare WebSocket and one carrier each: received messages, and opened or accepted streams. Used by tests
// only.

import { MuxSession, type MuxStream, processBudget } from '@tunnel/mux';
import type { ControlType, MessageOf, StreamHead, StreamReason } from '@tunnel/protocol';
import { systemClock } from '@tunnel/runtime';
import { eventually, RecordingReader, rethrow } from '@tunnel/testkit';
import { expect } from 'vitest';
import { openCarrier } from './raw-carrier.fixture.ts';
import { RawClient } from './raw-client.fixture.ts';

export const SECRET_HASH = 'a'.repeat(64);
export const WRONG_HASH = 'b'.repeat(64);

export const P2P_TUNNEL = {
  protocol: 'p2p',
  name: 'office-db',
  p2p_name: 'office-db',
  p2p_secret_hash: SECRET_HASH,
  p2p_service: 'tcp',
};

interface Offered {
  readonly stream: MuxStream;
  readonly head: StreamHead;
}

export class RawPeer {
  readonly client: RawClient;
  readonly welcome: MessageOf<'AuthOk'>;
  readonly mux: MuxSession;
  /** Streams opened by the edge and not yet consumed by a test. */
  readonly offered: Offered[] = [];
  #requests = 0;

  private constructor(client: RawClient, welcome: MessageOf<'AuthOk'>) {
    this.client = client;
    this.welcome = welcome;
    this.mux = new MuxSession({
      role: 'client',
      budget: processBudget(),
      clock: systemClock,
      capabilities: welcome.capabilities ?? [],
      handlers: {
        onCarrierLost: () => {},
        report: rethrow,
        onStream: (stream, head) => void this.offered.push({ stream, head }),
      },
    });
  }

  static async enter(
    port: number,
    token: string,
    resume?: { readonly session_id: string; readonly secret: string },
    capabilities: readonly string[] = ['p2p'],
  ): Promise<RawPeer> {
    const { client, welcome } = await RawClient.enter(port, token, resume, capabilities);
    const peer = new RawPeer(client, welcome);
    const [token1 = ''] = welcome.carriers.tokens;
    peer.mux.addCarrier(await openCarrier(port, token1));
    return peer;
  }

  get resume(): { readonly session_id: string; readonly secret: string } {
    return { session_id: this.welcome.session_id, secret: this.welcome.resume_secret };
  }

  publish(fields: object = {}): Promise<MessageOf<'TunnelRegistered'>> {
    return this.client.registered({ ...P2P_TUNNEL, ...fields });
  }

  /** Joins a p2p tunnel. Returns the peer id, or code and message of the refusal. */
  async connect(fields: object = {}): Promise<string> {
    const answer = await this.ask(fields);
    return answer.type === 'PeerConnected' ? answer.peer_id : `${answer.code}: ${answer.message}`;
  }

  async ask(fields: object = {}): Promise<MessageOf<'PeerConnected'> | MessageOf<'PeerError'>> {
    this.#requests += 1;
    const request_id = `c${this.#requests}`;
    const asked = { p2p_name: 'office-db', p2p_secret_hash: SECRET_HASH, service: 'tcp' };
    this.client.send({ type: 'ConnectPeer', request_id, ...asked, ...fields });
    return (await this.hears((message) => message['request_id'] === request_id)) as never;
  }

  /** Waits for the next message of the given type. Other messages stay available. */
  async told<T extends ControlType>(type: T): Promise<MessageOf<T>> {
    return (await this.hears((message) => message.type === type)) as never;
  }

  async hears(isMeant: (message: RawClient['heard'][number]) => boolean): Promise<RawClient['heard'][number]> {
    const { heard } = this.client;
    await eventually(() => expect(heard.some(isMeant)).toBe(true));
    return heard.splice(heard.findIndex(isMeant), 1)[0] as RawClient['heard'][number];
  }

  /** Waits for the next stream opened by the edge. */
  async taken(): Promise<Offered> {
    await eventually(() => expect(this.offered.length).toBeGreaterThan(0));
    return this.offered.shift() as Offered;
  }

  /** Opens a relay stream. Resolves with the stream, or with the reason of the refusal. */
  open(peerId: string): Promise<MuxStream | StreamReason> {
    return new Promise((resolve, reject) => {
      const opening = this.mux.open(
        { tunnelId: peerId, visitor: '' },
        { onOpened: resolve, onRefused: resolve, abandon: rethrow },
      );
      if (opening === null) reject(new Error('the session takes no streams'));
    });
  }

  /** Sends a sign of life and waits until the edge has received it. */
  async isAlive(): Promise<void> {
    this.client.send({ type: 'Ping', id: 4242 });
    await this.hears(({ type, id }) => type === 'Pong' && id === 4242);
  }

  kill(): void {
    this.client.ws.terminate();
    this.mux.close({ code: 'cancelled', text: 'killed' });
  }
}

/** Both ends of a relay stream, with readers that record received bytes. */
export interface RelayEnds {
  readonly near: MuxStream;
  readonly far: MuxStream;
  readonly nearReads: RecordingReader;
  readonly farReads: RecordingReader;
  readonly head: StreamHead;
}

export const openRelay = async (subscriber: RawPeer, publisher: RawPeer, peerId: string): Promise<RelayEnds> => {
  const opening = subscriber.open(peerId);
  const { stream: far, head } = await publisher.taken();
  far.accept();
  const near = (await opening) as MuxStream;
  return { near, far, nearReads: new RecordingReader(near), farReads: new RecordingReader(far), head };
};
