// Helpers for tests of HTTP tunnels: a local web service, `tunnel http` in front of the service, and visitors.
import { existsSync, readFileSync } from 'node:fs';
import {
  type Agent,
  createServer,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { WebSocketServer } from 'ws';
import type { Harness } from './harness.fixture.ts';
import type { Stack } from './stack.fixture.ts';
import type { ReadyEvent, TunnelProgram } from './tunnel-program.fixture.ts';
import { visit } from './visitor.fixture.ts';

export interface WebService {
  readonly port: number;
  readonly server: Server;
  close(): Promise<void>;
}

export type Answering = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>;

export const startWeb = async (answer: Answering, port = 0): Promise<WebService> => {
  const server = createServer({ noDelay: true }, (request, response) => void answer(request, response));
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    server,
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
};

/** Adds a WebSocket server to the service, which echoes every message. */
export const echoSockets = ({ server }: WebService): WebSocketServer => {
  const sockets = new WebSocketServer({ server, maxPayload: 64_000_000 });
  sockets.on('connection', (socket) => {
    socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }));
  });
  return sockets;
};

/** Address of a tunnel for visitors. Systems do not resolve `*.localhost`, so the name is sent only in the Host header. */
export interface PublicEndpoint {
  readonly host: string;
  readonly port: number;
}

export const endpointOf = (publicUrl: string): PublicEndpoint => {
  const { host, port } = new URL(publicUrl);
  return { host, port: Number(port) };
};

export interface OpenTunnel {
  readonly tunnel: TunnelProgram;
  readonly ready: ReadyEvent;
  readonly endpoint: PublicEndpoint;
}

interface HttpRun {
  /** Path of a copy of the program, which runs as an executable. */
  readonly bin?: string;
  readonly programs?: boolean;
  readonly home?: string;
  readonly server?: string;
}

/** Runs `tunnel http PORT --json` at the given stack, with its admin token. */
export const runHttp = async (
  harness: Harness,
  stack: Stack,
  localPort: number,
  flags: readonly string[] = [],
  { server = stack.control, ...more }: HttpRun = {},
): Promise<TunnelProgram> => {
  const args = ['http', String(localPort), '--json', '--server', server, '--token-file', stack.tokenFile, ...flags];
  return harness.run(args, more);
};

export const openHttp = async (...args: Parameters<typeof runHttp>): Promise<OpenTunnel> => {
  const tunnel = await runHttp(...args);
  const ready = await tunnel.ready();
  return { tunnel, ready, endpoint: endpointOf(ready.public_url) };
};

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly trailers: NodeJS.Dict<string>;
  readonly body: Buffer;
  readonly text: string;
}

export interface Question {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | Buffer;
  readonly agent?: Agent;
}

/** Sends a complete request, and returns the complete response. */
export const askHttp = (endpoint: PublicEndpoint, question: Question = {}): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const { body, agent, headers = {}, ...rest } = question;
    const sent = httpRequest({
      ...rest,
      hostname: '127.0.0.1',
      port: endpoint.port,
      headers: { host: endpoint.host, ...headers },
      agent: agent ?? false,
    });
    sent.on('response', (response) => void wholeAnswer(response).then(resolve, reject));
    sent.on('error', reject);
    sent.end(body);
  });

export const wholeAnswer = async (response: IncomingMessage): Promise<Answer> => {
  const body = await wholeBody(response);
  const { statusCode: status = 0, headers, trailers } = response;
  return { status, headers, trailers, body, text: body.toString() };
};

/** Returns status, code, message and advice of an error response of the edge. */
export const problemOf = (answer: Answer): { status: number; code: unknown; error: string; next: string } => {
  const { error, next } = JSON.parse(answer.text) as { error: string; next: string };
  return { status: answer.status, code: answer.headers['x-tunnel-error'], error, next };
};

export const wholeBody = async (message: IncomingMessage): Promise<Buffer> => {
  const pieces: Buffer[] = [];
  for await (const piece of message) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
};

/** Opens a connection and sends the text, in which `{host}` stands for the host of the tunnel. */
export const sendRaw = async (endpoint: PublicEndpoint, text: string): Promise<Socket> => {
  const socket = await visit(endpoint.port);
  socket.write(text.replaceAll('{host}', endpoint.host));
  return socket;
};

/** Reads from a connection until the received text matches, and returns the text. Data that arrives later is not included. */
export const readUntil = (socket: Socket, pattern: RegExp): Promise<string> =>
  new Promise((resolve, reject) => {
    let heard = '';
    const onData = (piece: Buffer): void => {
      heard += piece.toString('latin1');
      if (!pattern.test(heard)) return;
      socket.off('data', onData);
      socket.off('close', onClose);
      resolve(heard);
    };
    const onClose = (): void => reject(new Error(`closed before ${pattern} after: ${heard}`));
    socket.on('data', onData);
    socket.on('close', onClose);
    socket.resume();
  });

/** Returns the current resident memory of a process in MB, or 0 on a system without /proc. */
export const residentMb = (pid: number): number => {
  const file = `/proc/${pid}/status`;
  if (!existsSync(file)) return 0;
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(file, 'utf8'))?.[1]) / 1000;
};
