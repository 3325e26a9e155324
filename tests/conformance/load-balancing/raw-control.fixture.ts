// A client that is a bare WebSocket, for rows about single frames. It has no carriers, so it serves no visitors.
import { once } from 'node:events';
import {
  type ControlMessage,
  type ControlMessageInput,
  encodeControl,
  type MessageOf,
  PROTOCOL_VERSION,
} from '@tunnel/protocol';
import { eventually } from '@tunnel/testkit';
import { WebSocket } from 'ws';
import type { Harness } from '../../system/harness.fixture.ts';
import { type GroupEdge, PATIENCE_MS, sha256, type Who } from './group-edge.fixture.ts';

type Frame = { readonly type: string } & Record<string, unknown>;
type TunnelRequest = Partial<Extract<ControlMessageInput, { type: 'RegisterTunnel' }>>;
export type Registered = MessageOf<'TunnelRegistered'>;
export type Refused = MessageOf<'TunnelError'>;

/** Returns a registration for a member of an http group with a probe, unless `more` overrides these fields. */
export const memberRequest = (group: string, more: TunnelRequest & { readonly key?: string } = {}): TunnelRequest => {
  const { key = 'key', ...fields } = more;
  return { protocol: 'http', group, group_key_hash: sha256(key), health_check: { type: 'tcp' }, ...fields };
};

export class RawControl {
  readonly frames: Frame[] = [];
  readonly #ws: WebSocket;
  #asked = 0;

  constructor(ws: WebSocket) {
    this.#ws = ws;
    ws.on('error', () => {});
    ws.on('message', (data) => {
      const frame = JSON.parse((data as Buffer).toString('utf8')) as Frame;
      // Pings need an answer, because the edge treats a client that is silent for 25 s as dead.
      if (frame.type === 'Ping') this.send({ type: 'Pong', id: Number(frame['id']) });
      else this.frames.push(frame);
    });
  }

  /** Connects and authenticates as the tenant. */
  static async enter(
    harness: Harness,
    edge: Pick<GroupEdge, 'server' | 'token'>,
    who: Who = 'alice',
    resume?: { readonly session_id: string; readonly secret: string },
  ): Promise<RawControl> {
    const ws = new WebSocket(`ws://${edge.server}/_control`);
    const raw = new RawControl(ws);
    await once(ws, 'open');
    harness.use({ close: async () => ws.terminate() });
    raw.send({ type: 'Auth', versions: [PROTOCOL_VERSION], token: edge.token(who), agent: 'raw', resume });
    await raw.heard('AuthOk');
    return raw;
  }

  send(message: ControlMessageInput): void {
    this.#ws.send(encodeControl(message as ControlMessage));
  }

  /** Returns all frames of a type received so far. */
  of(type: string): Frame[] {
    return this.frames.filter((frame) => frame.type === type);
  }

  async heard(type: string, fits: (frame: Frame) => boolean = () => true): Promise<Frame> {
    return eventually(
      () => {
        const found = this.of(type).find(fits);
        if (found === undefined)
          throw new Error(`no ${type} among ${this.frames.map((frame) => frame.type).join(' ')}`);
        return found;
      },
      { intervalMs: 2, timeoutMs: PATIENCE_MS },
    );
  }

  /** The session id and resume secret, as needed for a resume. */
  get secret(): { readonly session_id: string; readonly secret: string } {
    const [welcome] = this.of('AuthOk');
    return { session_id: String(welcome?.['session_id']), secret: String(welcome?.['resume_secret']) };
  }

  /** Sends a registration and returns the edge's answer, whether success or error. */
  async ask(request: TunnelRequest): Promise<Registered | Refused> {
    this.#asked += 1;
    const request_id = `r${this.#asked}`;
    this.send({ type: 'RegisterTunnel', name: 'raw', protocol: 'http', ...request, request_id });
    const isAnswer = (frame: Frame): boolean => frame['request_id'] === request_id;
    await eventually(
      () => {
        if (!this.frames.some(isAnswer)) throw new Error('no answer');
      },
      { intervalMs: 2, timeoutMs: PATIENCE_MS },
    );
    return this.frames.find(isAnswer) as unknown as Registered | Refused;
  }

  async join(request: TunnelRequest): Promise<Registered> {
    const answer = await this.ask(request);
    if (answer.type !== 'TunnelRegistered') throw new Error(`refused: ${answer.message}`);
    return answer;
  }

  async refusal(request: TunnelRequest): Promise<Refused> {
    const answer = await this.ask(request);
    if (answer.type !== 'TunnelError') throw new Error('it was not refused');
    return answer;
  }

  async healthy(tunnel: { readonly tunnel_id: string }): Promise<void> {
    this.send({ type: 'TunnelHealthy', tunnel_id: tunnel.tunnel_id });
    await this.settle();
  }

  async unhealthy(tunnel: { readonly tunnel_id: string }, reason = 'down', failures = 3): Promise<void> {
    const { tunnel_id } = tunnel;
    this.send({ type: 'TunnelUnhealthy', tunnel_id, reason, consecutive_failures: failures });
    await this.settle();
  }

  async leave({ tunnel_id }: { readonly tunnel_id: string }): Promise<void> {
    this.#asked += 1;
    const request_id = `r${this.#asked}`;
    this.send({ type: 'UnregisterTunnel', request_id, tunnel_id });
    await this.heard('TunnelUnregistered', (frame) => frame['request_id'] === request_id);
  }

  /** Waits for the answer to a ping. By then the edge has handled all frames sent before. */
  async settle(): Promise<void> {
    this.#asked += 1;
    const id = this.#asked;
    this.send({ type: 'Ping', id });
    await this.heard('Pong', (frame) => frame['id'] === id);
  }

  /** Drops the connection without a closing handshake, like a machine that loses power. */
  async cut(): Promise<void> {
    const closed = once(this.#ws, 'close');
    this.#ws.terminate();
    await closed;
  }
}
