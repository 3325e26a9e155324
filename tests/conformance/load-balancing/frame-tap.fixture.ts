// A proxy between a real client and the edge that records the client's control frames and passes carriers through unchanged.
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type RawData, WebSocket, WebSocketServer } from 'ws';
import type { Harness } from '../../system/harness.fixture.ts';
import type { GroupEdge } from './group-edge.fixture.ts';

type Frame = { readonly type: string } & Record<string, unknown>;

/** Decodes a message. The `ws` package delivers whole messages as a single buffer. */
const textOf = (data: RawData): string => (data as Buffer).toString('utf8');

export class FrameTap {
  /** Frames sent by the clients, in order. */
  readonly sent: Frame[] = [];
  /** The exact text of the clients' frames. */
  readonly texts: string[] = [];
  readonly server: string;
  readonly #edge: GroupEdge;
  readonly #sockets = new WebSocketServer({ noServer: true });

  constructor(edge: GroupEdge, port: number) {
    this.#edge = edge;
    this.server = `127.0.0.1:${port}`;
  }

  static async start(harness: Harness, edge: GroupEdge): Promise<FrameTap> {
    const http = createServer();
    const open = new Set<Duplex>();
    await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
    const tap = new FrameTap(edge, (http.address() as AddressInfo).port);
    http.on('upgrade', (request, socket, head) => {
      open.add(socket);
      socket.on('close', () => open.delete(socket));
      if (request.url === '/_control') tap.#listen(request, socket as Socket, head);
      else tap.#pass(request, socket as Socket, head);
    });
    harness.use({
      close: async () => {
        for (const socket of open) socket.destroy();
        http.close();
      },
    });
    return tap;
  }

  of(type: string): Frame[] {
    return this.sent.filter((frame) => frame.type === type);
  }

  #listen(request: IncomingMessage, socket: Socket, head: Buffer): void {
    const edge = new WebSocket(`ws://${this.#edge.server}/_control`);
    this.#sockets.handleUpgrade(request, socket, head, (client) => {
      const early: string[] = [];
      client.on('message', (data) => {
        const text = textOf(data);
        this.texts.push(text);
        this.sent.push(JSON.parse(text) as Frame);
        if (edge.readyState === WebSocket.OPEN) edge.send(text);
        else early.push(text);
      });
      edge.on('open', () => early.forEach((text) => edge.send(text)));
      edge.on('message', (data) => client.send(textOf(data)));
      client.on('close', () => edge.terminate());
      edge.on('close', (code, reason) => (code === 1006 ? client.terminate() : client.close(code, reason)));
      for (const one of [client, edge]) one.on('error', () => {});
    });
  }

  #pass({ method, url, rawHeaders }: IncomingMessage, socket: Socket, head: Buffer): void {
    const edge = connect(Number(this.#edge.server.split(':').at(-1)), '127.0.0.1');
    const lines = rawHeaders.flatMap((name, at) => (at % 2 === 0 ? [`${name}: ${rawHeaders[at + 1]}`] : []));
    edge.write(`${[`${method} ${url} HTTP/1.1`, ...lines].join('\r\n')}\r\n\r\n`);
    edge.write(head);
    socket.pipe(edge).pipe(socket);
    for (const [one, other] of [
      [socket, edge],
      [edge, socket],
    ] as const) {
      one.on('error', () => {});
      one.on('close', () => other.destroy());
    }
  }
}
