// What tests of http tunnels have beside a harness: a local web service, `tunnel http` in front of it, and its visitors.
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

/** Every WebSocket of the service gets back what it says. */
export const echoSockets = ({ server }: WebService): WebSocketServer => {
  const sockets = new WebSocketServer({ server, maxPayload: 64_000_000 });
  sockets.on('connection', (socket) => {
    socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }));
  });
  return sockets;
};

/** Where a tunnel is reached: systems do not resolve `*.localhost`, so its name goes in the Host alone. */
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
  /** Another copy of the program; it is an executable. */
  readonly bin?: string;
  readonly programs?: boolean;
  readonly home?: string;
  readonly server?: string;
}

/** `tunnel http PORT --json` at this stack, with its admin token. */
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

/** A whole request and its whole answer. */
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

/** Status, code and words of one of the edge's own answers. */
export const problemOf = (answer: Answer): { status: number; code: unknown; error: string; next: string } => {
  const { error, next } = JSON.parse(answer.text) as { error: string; next: string };
  return { status: answer.status, code: answer.headers['x-tunnel-error'], error, next };
};

export const wholeBody = async (message: IncomingMessage): Promise<Buffer> => {
  const pieces: Buffer[] = [];
  for await (const piece of message) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
};

/** A connection that has sent this text; `{host}` in it is the tunnel's. */
export const sendRaw = async (endpoint: PublicEndpoint, text: string): Promise<Socket> => {
  const socket = await visit(endpoint.port);
  socket.write(text.replaceAll('{host}', endpoint.host));
  return socket;
};

/** What has come on a connection up to the first match; the rest stays out of sight. */
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

/** Resident memory now; 0 where there is no /proc. */
export const residentMb = (pid: number): number => {
  const file = `/proc/${pid}/status`;
  if (!existsSync(file)) return 0;
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(file, 'utf8'))?.[1]) / 1000;
};
