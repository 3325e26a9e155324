// A minimal client of the control plane: sends the given frames and records received frames. Used by tests only.
import { once } from 'node:events';
import {
  type ControlMessage,
  type ControlType,
  encodeControl,
  type MessageOf,
  PROTOCOL_VERSION,
} from '@tunnel/protocol';
import { WebSocket } from 'ws';

type Heard = { readonly type: string } & Record<string, unknown>;

interface RawClientOptions {
  readonly scheme?: string;
  readonly headers?: Record<string, string>;
  /** ALPN protocols offered in the TLS handshake. */
  readonly alpn?: readonly string[];
}

export class RawClient {
  readonly ws: WebSocket;
  /** Received frames not yet consumed by a test, in order. */
  readonly heard: Heard[] = [];
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
  #wake: () => void = () => {};
  #over: { readonly code: number; readonly reason: string } | null = null;

  constructor(port: number, options: RawClientOptions = {}) {
    const { scheme = 'ws', headers = {}, alpn } = options;
    const tls = { rejectUnauthorized: false, ...(alpn === undefined ? {} : { ALPNProtocols: [...alpn] }) };
    this.ws = new WebSocket(`${scheme}://127.0.0.1:${port}/_control`, { headers, ...tls });
    this.ws.on('error', () => {});
    this.ws.on('message', (data) => {
      this.heard.push(JSON.parse((data as Buffer).toString('utf8')) as Heard);
      this.#wake();
    });
    this.closed = new Promise((resolve) => {
      this.ws.on('close', (code, reason) => {
        this.#over = { code, reason: String(reason) };
        resolve(this.#over);
        this.#wake();
      });
    });
  }

  static async connect(port: number, options?: ConstructorParameters<typeof RawClient>[1]): Promise<RawClient> {
    const client = new RawClient(port, options);
    await once(client.ws, 'open');
    return client;
  }

  /** Connects and authenticates. */
  static async enter(
    port: number,
    token: string,
    resume?: { readonly session_id: string; readonly secret: string },
    capabilities?: readonly string[],
  ): Promise<{ client: RawClient; welcome: MessageOf<'AuthOk'> }> {
    const client = await RawClient.connect(port);
    client.auth(token, resume, capabilities);
    return { client, welcome: await client.next('AuthOk') };
  }

  send(message: object): void {
    this.ws.send(encodeControl(message as ControlMessage));
  }

  auth(
    token: string,
    resume?: { readonly session_id: string; readonly secret: string },
    capabilities?: readonly string[],
  ): void {
    const more = { ...(resume ? { resume } : {}), ...(capabilities ? { capabilities } : {}) };
    this.send({ type: 'Auth', versions: [PROTOCOL_VERSION], token, agent: 'raw', ...more });
  }

  /** Waits for the next frame of the given type and drops earlier frames. */
  async next<T extends ControlType>(type: T): Promise<MessageOf<T>> {
    for (;;) {
      const index = this.heard.findIndex((message) => message.type === type);
      if (index >= 0) return this.heard.splice(0, index + 1)[index] as unknown as MessageOf<T>;
      if (this.#over !== null) throw new Error(`closed with ${this.#over.code} ${this.#over.reason} before ${type}`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  register(fields: object = {}, requestId = 'r1'): void {
    this.send({ type: 'RegisterTunnel', request_id: requestId, name: 'db', protocol: 'tcp', ...fields });
  }

  async registered(fields: object = {}): Promise<MessageOf<'TunnelRegistered'>> {
    this.register(fields);
    return this.next('TunnelRegistered');
  }

  async refused(fields: object = {}): Promise<MessageOf<'TunnelError'>> {
    this.register(fields);
    return this.next('TunnelError');
  }

  /** Waits until the edge has handled all frames sent before, by sending a Ping. */
  async settle(): Promise<void> {
    this.send({ type: 'Ping', id: 7777 });
    while ((await this.next('Pong')).id !== 7777);
  }
}
