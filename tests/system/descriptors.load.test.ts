// Tests of a stack with few file descriptors and very many connections: every part of the stack keeps a share, so that a flood of the
// visitor ports does not disable the API, for example.

import { createHash } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { connect, type Socket } from 'node:net';
import { eventually } from '@tunnel/testkit';
import { describe, expect } from 'vitest';
import { WebSocket } from 'ws';
import { type Harness } from './harness.fixture.ts';
import { openHttp, type PublicEndpoint, startWeb } from './http-tunnels.fixture.ts';
import type { Stack } from './stack.fixture.ts';
import { it } from './system-test.fixture.ts';

const DESCRIPTORS = 1200;
const FLOOD = 3000;
const DIALS_AT_ONCE = 100;
const PROBE_TIMEOUT_MS = 10_000;

const portOf = (url: string): number => Number(new URL(url).port);

/** Requests a path over a new connection. Resolves with the status, or with the error message. */
const statusOf = (port: number, path: string, host = `127.0.0.1:${port}`): Promise<number | string> =>
  new Promise((resolve) => {
    const request = httpRequest({ host: '127.0.0.1', port, path, agent: false, headers: { host } }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    request.setTimeout(PROBE_TIMEOUT_MS, () => request.destroy(new Error('no answer')));
    request.on('error', (error) => resolve(error.message));
    request.end();
  });

interface Flood {
  readonly opened: number;
  close(): void;
}

/** Opens silent connections from the given addresses in turn. Refused connections are not retried. */
const flood = async (port: number, addresses: readonly string[]): Promise<Flood> => {
  const sockets: Socket[] = [];
  let dialled = 0;
  const dial = (): Promise<void> =>
    new Promise((resolve) => {
      const localAddress = addresses[dialled % addresses.length] as string;
      dialled += 1;
      const socket = connect({ host: '127.0.0.1', port, localAddress });
      sockets.push(socket);
      socket.on('error', () => resolve());
      socket.on('connect', () => resolve());
      socket.resume();
    });
  const dialler = async (): Promise<void> => {
    while (dialled < FLOOD) await dial();
  };
  await Promise.all(Array.from({ length: DIALS_AT_ONCE }, dialler));
  return { opened: dialled, close: () => sockets.forEach((socket) => socket.destroy()) };
};

const startLimited = async (harness: Harness): Promise<{ stack: Stack; endpoint: PublicEndpoint }> => {
  const web = harness.use(await startWeb((_, response) => void response.end('here')));
  const stack = await harness.stack({ command: 'stack', descriptors: DESCRIPTORS });
  const { endpoint } = await openHttp(harness, stack, web.port);
  return { stack, endpoint };
};

/**
 * Regular requests sent during a flood, with the expected status. The control port returns 426 to clients that do not speak its protocol.
 */
const probesOf = ({ run, controlPort }: Stack, { port, host }: PublicEndpoint) => ({
  control: { expected: 426, ask: () => statusOf(controlPort, '/_control') },
  rest: { expected: 200, ask: () => statusOf(portOf(run.api_url), '/api/status') },
  metrics: { expected: 200, ask: () => statusOf(portOf(run.metrics_url), '/metrics') },
  platform: { expected: 200, ask: () => statusOf(portOf(run.platform_url), '/health') },
  visitor: { expected: 200, ask: () => statusOf(port, '/', host) },
});

const linesWith = (stack: Stack, pattern: RegExp): number =>
  stack.program.stderr.filter((line) => pattern.test(line)).length;

const seriesOf = async ({ run }: Stack, name: string): Promise<Map<string, number>> => {
  const text = await (await fetch(run.metrics_url, { headers: { connection: 'close' } })).text();
  const rows = [...text.matchAll(new RegExp(`^${name}\\{(?:reason|share)="([^"]+)"\\} (\\S+)$`, 'gm'))];
  return new Map(rows.map(([, label = '', value]) => [label, Number(value)]));
};

const sumOf = (counts: ReadonlyMap<string, number>): number => [...counts.values()].reduce((sum, one) => sum + one, 0);

/** Tries to open a session. Resolves with `AuthOk`, the code of a refusal, or the error of the connection. */
const tryKey = (port: number, token: string, localAddress: string): Promise<{ ws: WebSocket; end: string }> =>
  new Promise((resolve) => {
    const ws = new WebSocket(`ws://127.0.0.1:${port}/_control`, { localAddress });
    const over = (end: string): void => resolve({ ws, end });
    ws.on('open', () => ws.send(JSON.stringify({ type: 'Auth', versions: [1], token, agent: 'test' })));
    ws.on('message', (data) => {
      const { type, code = '' } = JSON.parse((data as Buffer).toString()) as { type: string; code?: string };
      over(type === 'AuthOk' ? type : code);
    });
    ws.on('error', (error) => over(error.message));
    ws.on('close', () => over('closed'));
  });

const ONE = ['127.0.0.2'];
const HUNDRED = Array.from({ length: 100 }, (_, n) => `127.0.1.${n + 1}`);

// Only Linux routes the whole of 127.0.0.0/8 without configuration.
describe.runIf(process.platform === 'linux')(
  `a flood of ${FLOOD} connections to a stack with ${DESCRIPTORS} descriptors`,
  () => {
    it('to any port, from a single address or 100 addresses, leaves all ports responsive', async ({ harness }) => {
      const { stack, endpoint } = await startLimited(harness);
      await stack.program.waitForLine(/connection limits.*1200|1200.*connection limits/);
      const probes = probesOf(stack, endpoint);
      const floods = [
        ['visitor', endpoint.port, HUNDRED],
        ['visitor', endpoint.port, ONE],
        ['control', stack.controlPort, HUNDRED],
        ['rest', portOf(stack.run.api_url), ONE],
      ] as const;
      for (const [flooded, port, addresses] of floods) {
        const startedMs = performance.now();
        const before = sumOf(await seriesOf(stack, 'tunnel_connections_refused_total'));
        let isOver = false;
        const failures: string[] = [];
        const probing = Object.entries(probes).map(async ([name, { expected, ask }]) => {
          let asked = 0;
          while (!isOver || asked < 3) {
            asked += 1;
            let status = await ask();
            // A flooded port evicts the oldest connections of strangers. On a busy machine the probe can be evicted, too; the probe then
            // tries again.
            if (status !== expected && name === flooded) status = await ask();
            if (status !== expected) failures.push(`${name} while ${flooded} is flooded: ${status}`);
          }
        });
        const { opened, close } = await flood(port, addresses);
        isOver = true;
        await Promise.all(probing);
        expect(failures.join('\n')).toBe('');
        // Refused and evicted connections are counted, and the rest stay open. The latest connections may still wait to be accepted.
        const limit = Math.max(...(await seriesOf(stack, 'tunnel_connections_limit')).values());
        await eventually(async () => {
          const refused = sumOf(await seriesOf(stack, 'tunnel_connections_refused_total')) - before;
          expect(refused).toBeGreaterThanOrEqual(opened - limit);
        });
        const seconds = Math.ceil((performance.now() - startedMs) / 1000) + 1;
        expect(linesWith(stack, /rejected: |make room/)).toBeLessThanOrEqual(3 * seconds * floods.length);
        close();
        await eventually(async () => {
          const open = await seriesOf(stack, 'tunnel_connections_open');
          expect([open.get('visitors'), Number(open.get('control')) < 10, Number(open.get('api')) < 10]).toEqual([
            0,
            true,
            true,
          ]);
        });
      }
    });

    it('of session attempts with a single key keeps only its share, and another account can always connect', async ({
      harness,
    }) => {
      const sha256 = createHash('sha256').update('key-of-alice').digest('hex');
      const tables = `[[auth.keys]]\naccount = "alice"\nsha256 = "${sha256}"`;
      const stack = await harness.stack({ descriptors: DESCRIPTORS, tables });
      const ends = new Map<string, number>();
      const open: WebSocket[] = [];
      let tries = 0;
      const flooder = async (): Promise<void> => {
        while (tries < FLOOD) {
          tries += 1;
          const { ws, end } = await tryKey(stack.controlPort, 'key-of-alice', '127.0.0.2');
          ends.set(end, (ends.get(end) ?? 0) + 1);
          if (end === 'AuthOk') open.push(ws);
          else ws.terminate();
        }
      };
      const flooding = Promise.all(Array.from({ length: 20 }, flooder));
      await eventually(() => expect(ends.get('SESSION_LIMIT')).toBeGreaterThan(0));
      // The client opens the control connection and the carriers during the flood.
      await (await harness.tcp(stack, 9)).ready();
      await flooding;
      // On a busy machine the flood outlives silent sessions. Each session that ended has made room for the next.
      await eventually(() =>
        expect(open.filter((ws) => ws.readyState === WebSocket.OPEN).length).toBeLessThanOrEqual(12),
      );
      expect(ends.get('SESSION_LIMIT')).toBeGreaterThan(FLOOD / 2);
      expect((await seriesOf(stack, 'tunnel_connections_refused_total')).get('account-limit')).toBe(
        ends.get('SESSION_LIMIT'),
      );
      for (const ws of open) ws.terminate();
    });
  },
);
