// A receiver of alert webhooks that records alerts and connections.
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { eventually } from '@tunnel/testkit';
import type { Harness } from '../../system/harness.fixture.ts';
import { PATIENCE_MS } from './group-edge.fixture.ts';

export interface Alert {
  readonly method: string | undefined;
  readonly path: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: Readonly<Record<string, unknown>>;
}

export class WebhookReceiver {
  readonly alerts: Alert[] = [];
  /** Durations of finished connections on the harness's clock. */
  readonly lifetimesMs: number[] = [];
  /** Number of connections so far. */
  connections = 0;
  readonly #port: number;

  constructor(port: number) {
    this.#port = port;
  }

  static async start(
    harness: Harness,
    answer: (request: IncomingMessage, response: ServerResponse) => void = (_, response) =>
      void response.writeHead(204).end(),
  ): Promise<WebhookReceiver> {
    const server = createServer((request, response) => {
      const pieces: Buffer[] = [];
      request.on('data', (piece: Buffer) => pieces.push(piece));
      request.on('end', () => {
        const text = Buffer.concat(pieces).toString();
        const { method, url: path, headers } = request;
        receiver.alerts.push({ method, path, headers, text, body: JSON.parse(text) as Alert['body'] });
        answer(request, response);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const receiver = new WebhookReceiver((server.address() as AddressInfo).port);
    server.on('connection', (socket) => {
      receiver.connections += 1;
      const openedAt = harness.clock.monotonic();
      socket.on('error', () => {});
      socket.on('close', () => receiver.lifetimesMs.push(harness.clock.monotonic() - openedAt));
    });
    harness.use({
      close: async () => {
        server.closeAllConnections();
        server.close();
      },
    });
    return receiver;
  }

  url(path = '/hook'): string {
    return `http://127.0.0.1:${this.#port}${path}`;
  }

  /** Returns the alerts of a group. A receiver can get alerts of many groups. */
  of(groupName: string): Alert[] {
    return this.alerts.filter(({ body }) => body['group_name'] === groupName);
  }

  async until(groupName: string, count: number): Promise<Alert[]> {
    return eventually(
      () => {
        const found = this.of(groupName);
        if (found.length < count) throw new Error(`${found.length} of ${count} alerts of ${groupName}`);
        return found;
      },
      { timeoutMs: PATIENCE_MS },
    );
  }
}
