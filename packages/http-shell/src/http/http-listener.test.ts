import { connect } from 'node:net';
import { Admission } from '@tunnel/rules/admission';
import { createLogger, systemClock } from '@tunnel/runtime';
import { eventually } from '@tunnel/testkit';
import { afterEach, expect, it } from 'vitest';
import { ConnectionGate } from '../gate/connection-gate.ts';
import { HttpListener, refusedAsJson } from './http-listener.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const PIPELINED = 30;

/** Starts a listener that answers no request until the test says so. */
const start = async () => {
  const answers: (() => void)[] = [];
  let over = 0;
  const listener = new HttpListener({
    on: { host: '127.0.0.1', port: 0, key: 'port' },
    gate: new ConnectionGate({
      admission: new Admission({ limits: { visitors: 0, control: 0, api: 100 }, perNetwork: 100 }),
      trustedProxies: [],
      clock: systemClock,
      logger: createLogger({ level: 'silent', format: 'json' }),
    }),
    kind: 'rest',
    onRequest: ({ url }, response) => {
      answers.push(() => response.end(url));
      response.once('close', () => {
        over += 1;
      });
    },
    bounds: { headTimeoutMs: 60_000, requestTimeoutMs: 60_000 },
    refused: refusedAsJson(() => 'req_1'),
  });
  await listener.start();
  cleanups.push(() => listener.stop());
  const socket = connect(listener.address.port, '127.0.0.1');
  cleanups.push(() => socket.destroy());
  let said = '';
  socket.on('data', (chunk: Buffer) => {
    said += chunk.toString();
  });
  socket.write(Array.from({ length: PIPELINED }, (_, n) => `GET /${n} HTTP/1.1\r\nHost: here\r\n\r\n`).join(''));
  await eventually(() => expect(answers).toHaveLength(PIPELINED));
  return { socket, answers, over: () => over, bodies: () => [...said.matchAll(/\r\n\r\n\/(\d+)/g)].map(([, n]) => n) };
};

it('all pipelined requests are notified when their connection is lost', async () => {
  const { socket, answers, over } = await start();
  answers[0]?.();
  await eventually(() => expect(over()).toBe(1));
  socket.destroy();
  await eventually(() => expect(over()).toBe(PIPELINED));
  // Late answers have no effect.
  for (const answer of answers) answer();
  expect(over()).toBe(PIPELINED);
});

it('pipelined requests are answered in order, and each ends exactly once', async () => {
  const { socket, answers, over, bodies } = await start();
  for (const answer of answers.toReversed()) answer();
  const inOrder = Array.from({ length: PIPELINED }, (_, n) => String(n));
  await eventually(() => expect([over(), bodies()]).toEqual([PIPELINED, inOrder]));
  socket.destroy();
  await eventually(() => expect(socket.closed).toBe(true));
  expect(over()).toBe(PIPELINED);
});
