import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { makeTestIo } from '../io.fixture.ts';
import { listenPrivately, type PrivateListener } from './private-listener.ts';

let home: TemporaryDirectory;
const listeners: PrivateListener[] = [];
beforeEach(async () => {
  home = await temporaryDirectory();
});
afterEach(async () => {
  for (const listener of listeners.splice(0)) await listener.close();
  await home.close();
});

const listen = async (key = 'one'): Promise<string> => {
  const deps = { key, respond: () => Promise.resolve(), onProblem: () => {} };
  const listener = await listenPrivately(deps, makeTestIo({ home: home.path }));
  listeners.push(listener);
  return String(listener.local.localSocket);
};

it('runs of one command that start at the same time have a socket each', async () => {
  const paths = await Promise.all([listen(), listen(), listen(), listen()]);
  expect(new Set(paths).size).toBe(4);
  expect(readdirSync(join(home.path, '.tunnel', 'run'))).toHaveLength(4);
});

it('a command that comes back has the socket of before, another one its own', async () => {
  const first = await listen();
  expect(await listen('two')).not.toBe(first);
  await listeners.shift()?.close();
  expect(await listen()).toBe(first);
});
