// Uses the HTTP server of Node.js as a second reader, and records its result for the bytes of a connection.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';

export interface NodeReading {
  /** Contents of complete requests in order, one character per byte. */
  readonly contents: string[];
  /** The parser's error code if it rejected the bytes. A message that ends in the middle is not a rejection. */
  refusal: string | null;
  isCutOff: boolean;
}

export class NodeReader {
  readonly #server: Server;
  readonly #readings = new Map<number, NodeReading>();

  constructor() {
    this.#server = createServer({ insecureHTTPParser: false, maxHeaderSize: 64 * 1024, keepAliveTimeout: 10_000 });
    this.#server.on('request', (request, response) => this.#onRequest(request, response));
    // Expectations are passed to the handler like in the product, because Node.js would otherwise respond with 417.
    this.#server.on('checkExpectation', (request, response) => this.#onRequest(request, response));
    this.#server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
      const reading = this.#readings.get(socket.remotePort ?? 0);
      if (reading !== undefined && error.code === 'HPE_INVALID_EOF_STATE') reading.isCutOff = true;
      else if (reading !== undefined && error.code?.startsWith('HPE_')) reading.refusal ??= error.code;
      socket.destroy();
    });
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Sends the bytes and a FIN, and waits until the server has closed the connection. */
  async read(bytes: Uint8Array): Promise<NodeReading> {
    const reading: NodeReading = { contents: [], refusal: null, isCutOff: false };
    const socket = connect({ port: (this.#server.address() as AddressInfo).port, host: '127.0.0.1' });
    await new Promise<void>((resolve) => {
      socket.on('connect', () => {
        this.#readings.set(socket.localPort ?? 0, reading);
        socket.end(bytes);
      });
      socket.on('error', () => {});
      socket.on('close', () => resolve());
      socket.resume();
    });
    return reading;
  }

  #onRequest(request: IncomingMessage, response: ServerResponse): void {
    const reading = this.#readings.get(request.socket.remotePort ?? 0);
    let content = '';
    request.setEncoding('latin1');
    request.on('data', (piece: string) => (content += piece));
    request.on('end', () => {
      if (request.complete) reading?.contents.push(content);
      response.end();
    });
    request.on('error', () => {});
  }
}
