import { readdirSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { eventually, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { makeTestIo } from '../../io/io.fixture.ts';
import { type ListenerOptions, listenPrivately, type PrivateListener } from './private-listener.ts';

let home: TemporaryDirectory;
const listeners: PrivateListener[] = [];
beforeEach(async () => {
  home = await temporaryDirectory();
});
afterEach(async () => {
  for (const listener of listeners.splice(0)) await listener.close();
  await home.close();
});

const listen = async (key = 'one', more: Partial<ListenerOptions> = {}): Promise<string> => {
  const deps = { key, respond: () => Promise.resolve(), onProblem: () => {}, ...more };
  const listener = await listenPrivately(deps, makeTestIo({ home: home.path }));
  listeners.push(listener);
  return String(listener.local.local_socket);
};

it('four runs of the same command at the same time each get their own socket', async () => {
  const paths = await Promise.all([listen(), listen(), listen(), listen()]);
  expect(new Set(paths).size).toBe(4);
  expect(readdirSync(join(home.path, '.tunnel', 'run'))).toHaveLength(4);
});

it('a command gets the same socket in the next run, and a different command gets a different socket', async () => {
  const first = await listen();
  expect(await listen('two')).not.toBe(first);
  await listeners.shift()?.close();
  expect(await listen()).toBe(first);
});

it('a request that arrives too slowly gets a 408, while a slow response is not cut off', async () => {
  const answers: (() => void)[] = [];
  const respond: ListenerOptions['respond'] = async (request, response) => {
    request.resume();
    if (request.method === 'GET') answers.push(() => response.end());
  };
  const path = await listen('one', { respond, requestMs: 500 });
  const open = (text: string): { heard: () => string; isClosed: () => boolean; end: () => void } => {
    const socket = connect(path, () => socket.write(text));
    let heard = '';
    let isClosed = false;
    socket.on('data', (bytes) => (heard += String(bytes)));
    socket.on('close', () => (isClosed = true));
    return { heard: () => heard, isClosed: () => isClosed, end: () => socket.destroy() };
  };
  const waiting = open('GET /mcp HTTP/1.1\r\nHost: a\r\n\r\n');
  await eventually(() => expect(answers).toHaveLength(1));
  const dripping = open('POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{');
  await eventually(() => expect(dripping.isClosed()).toBe(true));
  expect(dripping.heard()).toContain(' 408 ');
  answers[0]?.();
  await eventually(() => expect(waiting.heard()).toContain(' 200 '));
  waiting.end();
});
