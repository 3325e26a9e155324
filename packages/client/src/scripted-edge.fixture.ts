// A scripted test edge on real sockets. Without a script the edge accepts every client.

import { createServer, type IncomingMessage, type Server } from 'node:http';
import { createServer as createSecureServer, type ServerOptions as SecureServerOptions } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { createCarrier, type MuxHandlers, MuxSession, processBudget } from '@tunnel/mux';
import { type Policy, policyHash } from '@tunnel/policy';
import {
  CAPABILITIES,
  type ControlMessage,
  type ControlMessageInput,
  type ControlType,
  carrierTagOf,
  decodeControl,
  encodeControl,
  type MessageOf,
  type TunnelProtocol,
} from '@tunnel/protocol';
import { sha256Hex, systemClock } from '@tunnel/runtime';
import { rethrow } from '@tunnel/testkit';
import { type WebSocket, WebSocketServer } from 'ws';

/** Handlers by message type. A handler returns true if it has answered, and false to leave the response to the default. */
type Script = { [T in ControlType]?: (message: MessageOf<T>, session: ScriptedSession) => boolean };

export class ScriptedSession {
  readonly id: string;
  readonly received: ControlMessage[] = [];
  readonly mux: MuxSession;
  readonly #socket: WebSocket;

  constructor(id: string, socket: WebSocket, capabilities: readonly string[], onStream: MuxHandlers['onStream']) {
    this.id = id;
    this.#socket = socket;
    this.mux = new MuxSession({
      role: 'edge',
      budget: processBudget(),
      clock: systemClock,
      capabilities,
      handlers: { ...(onStream === undefined ? {} : { onStream }), onCarrierLost: () => {}, report: rethrow },
    });
  }

  send(message: ControlMessageInput): void {
    this.#socket.send(encodeControl(message));
  }

  close(code: number): void {
    this.#socket.close(code);
  }

  /** Cuts the control connection without a close, as a failing network does. */
  cut(): void {
    this.#socket.terminate();
  }

  all<T extends ControlType>(type: T): MessageOf<T>[] {
    return this.received.filter((message): message is MessageOf<T> => message.type === type);
  }
}

export class ScriptedEdge {
  script: Script = {};
  /** Whether the edge accepts new carriers. */
  admitCarriers = true;
  /** Whether the edge accepts connections with a resumed TLS session. Otherwise the edge closes them after the handshake. */
  admitResumed = true;
  /** Capabilities of the edge. An older edge has an empty list. */
  capabilities: readonly string[] = CAPABILITIES;
  /** Account fields in the AuthOk message of an edge with a platform. */
  shown: Partial<Pick<MessageOf<'AuthOk'>, 'account' | 'plan' | 'region' | 'dashboard_url'>> = {};
  /** Handler for streams opened by clients. */
  onStream: MuxHandlers['onStream'];
  /** Computes the policy hash that the edge reports. By default the hash matches the policy in the request. */
  policyHash: (request: MessageOf<'RegisterTunnel'>) => string | undefined = ({ policy, services = [] }) =>
    policy === undefined ? undefined : policyHash(policy as Policy, services, sha256Hex);
  readonly sessions: ScriptedSession[] = [];
  /** For each completed TLS handshake, whether the client resumed an earlier TLS session. */
  readonly resumptions: boolean[] = [];
  readonly #http: Server;
  readonly #webSockets = new WebSocketServer({ noServer: true });
  readonly #tokens = new Map<string, ScriptedSession>();
  readonly #sockets = new Set<Socket>();
  #tokenCount = 0;
  #tunnelCount = 0;

  constructor(tls?: SecureServerOptions) {
    this.#http = tls === undefined ? createServer() : (createSecureServer(tls) as unknown as Server);
    this.#http.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
      socket.on('error', () => {});
    });
    this.#http.on('secureConnection', (socket: TLSSocket) => {
      this.resumptions.push(socket.isSessionReused());
      if (socket.isSessionReused() && !this.admitResumed) socket.destroy();
    });
    this.#http.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
      if (request.url === '/_carrier') this.#acceptCarrier(request, socket, head);
      else this.#webSockets.handleUpgrade(request, socket, head, (webSocket) => this.#acceptControl(webSocket));
    });
    this.#http.on('request', (_request, response) => response.writeHead(404).end('nothing here\n'));
  }

  async listen(port = 0): Promise<this> {
    await new Promise<void>((resolve) => this.#http.listen(port, '127.0.0.1', resolve));
    return this;
  }

  get port(): number {
    return (this.#http.address() as AddressInfo).port;
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** The newest session. Throws if no client has connected. */
  get session(): ScriptedSession {
    const last = this.sessions.at(-1);
    if (last === undefined) throw new Error('nobody has come yet');
    return last;
  }

  async close(): Promise<void> {
    for (const session of this.sessions) session.mux.close({ code: 'shutting-down', text: 'the test is over' });
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#http.close(resolve));
  }

  tokensFor(session: ScriptedSession, count: number): string[] {
    return Array.from({ length: count }, () => {
      this.#tokenCount += 1;
      this.#tokens.set(`token-${this.#tokenCount}`, session);
      return `token-${this.#tokenCount}`;
    });
  }

  welcome(session: ScriptedSession, resumed: boolean): void {
    session.send({
      type: 'AuthOk',
      version: 1,
      session_id: session.id,
      resumed,
      resume_secret: `secret-of-${session.id}`,
      resume_window_secs: 30,
      region_id: 'test',
      ping_interval_secs: 10,
      dead_after_secs: 25,
      carriers: { count: 2, path: '/_carrier', tokens: this.tokensFor(session, 2) },
      capabilities: [...this.capabilities],
      ...this.shown,
    });
  }

  registered(session: ScriptedSession, message: MessageOf<'RegisterTunnel'>): string {
    const { request_id, name, protocol, domain, ...request } = message;
    this.#tunnelCount += 1;
    const tunnelId = request.tunnel_id ?? `tun_${this.#tunnelCount}`;
    const port = request.remote_port ?? request.preferred_port ?? 20_000 + this.#tunnelCount;
    const label = request.subdomain ?? request.preferred_subdomain ?? `name-${this.#tunnelCount}`;
    const named =
      domain === undefined
        ? { label, public_url: `http://${label}.test:8000` }
        : { label: domain, public_url: `https://${domain}` };
    const ported = { label: String(port), public_url: `${protocol}://test:${port}`, assigned_port: port };
    const endpoints: Partial<Record<TunnelProtocol, { label: string; public_url: string }>> = {
      http: named,
      https: named,
      tls: { label: `${label}.test`, public_url: `tls://${label}.test:8443` },
      p2p: { label: request.p2p_name ?? '', public_url: `p2p://${request.p2p_name}` },
    };
    const endpoint = endpoints[protocol] ?? ported;
    const hash = this.policyHash(message);
    const guard = hash === undefined ? {} : { policy_hash: hash };
    session.send({ type: 'TunnelRegistered', request_id, tunnel_id: tunnelId, name, protocol, ...endpoint, ...guard });
    return tunnelId;
  }

  #acceptControl(socket: WebSocket): void {
    const session = new ScriptedSession(`ses_${this.sessions.length + 1}`, socket, this.capabilities, this.onStream);
    this.sessions.push(session);
    socket.on('error', () => {});
    socket.on('message', (data: Buffer) => {
      const decoded = decodeControl(data.toString('utf8'));
      if (!decoded.ok) throw decoded.fault;
      session.received.push(decoded.message);
      this.#answer(decoded.message, session);
    });
  }

  #answer(message: ControlMessage, session: ScriptedSession): void {
    const scripted = this.script[message.type] as ((given: ControlMessage, on: ScriptedSession) => boolean) | undefined;
    if (scripted?.(message, session) === true) return;
    if (message.type === 'Auth') this.welcome(session, false);
    if (message.type === 'RegisterTunnel') this.registered(session, message);
    if (message.type === 'RequestCarriers') {
      session.send({ type: 'CarrierTokens', tokens: this.tokensFor(session, message.count) });
    }
    if (message.type === 'UnregisterTunnel') {
      session.send({ type: 'TunnelUnregistered', request_id: message.request_id, tunnel_id: message.tunnel_id });
    }
  }

  #acceptCarrier(request: IncomingMessage, socket: Socket, head: Buffer): void {
    const token = request.headers.authorization?.replace('Bearer ', '') ?? '';
    const session = this.#tokens.get(token);
    this.#tokens.delete(token);
    if (session === undefined || !this.admitCarriers) {
      socket.end('HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n');
      return;
    }
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: tunnel-carrier/1\r\n\r\n');
    session.mux.addCarrier(createCarrier(socket, head), 0, carrierTagOf(sha256Hex(token)));
  }
}
