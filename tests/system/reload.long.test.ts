// Test of reloads of config.yml during a long download and under load: visitors do not notice the reloads.
import { createHash } from 'node:crypto';
import { renameSync, writeFileSync } from 'node:fs';
import { Agent, createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { deterministicChunks, eventually, hashOf, startTcpServer } from '@tunnel/testkit';
import { expect } from 'vitest';
import type { Harness } from './harness.fixture.ts';
import { it } from './system-test.fixture.ts';
import { visit } from './visitor.fixture.ts';

const BYTES = 512 * 1024 ** 2;
const SEED = 15;
const TIMEOUT_MS = 180_000;
const RELOADS = 10;

/** Starts a web service that responds with the given text. */
const startWeb = async (harness: Harness, says: string): Promise<number> => {
  const server = createServer((asked, answer) => asked.resume().on('end', () => answer.end(says)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  harness.use({
    close: async () => {
      server.closeAllConnections();
      server.close();
    },
  });
  return (server.address() as AddressInfo).port;
};

const askAt = (url: string, method: string, agent: Agent): Promise<string> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const asked = request({ host: '127.0.0.1', port, method, headers: { host: hostname }, agent }, (answer) => {
      let text = '';
      answer.on('data', (chunk: Buffer) => {
        text += chunk.toString();
      });
      answer.on('end', () =>
        answer.statusCode === 200 ? resolve(text) : reject(new Error(`${answer.statusCode} ${text}`)),
      );
    });
    asked.on('error', reject);
    asked.end();
  });

it('a 512 MiB download stays byte-exact while other tunnels are removed, changed and added in 20 reloads', {
  timeout: TIMEOUT_MS,
}, async ({ harness }) => {
  const stack = await harness.stack();
  const source = harness.use(
    await startTcpServer((socket) => {
      socket.on('error', () => {});
      Readable.from(deterministicChunks(BYTES, SEED), { objectMode: false }).pipe(socket);
    }),
  );
  const webs = [await startWeb(harness, 'zero'), await startWeb(harness, 'one')];
  const home = await harness.folder();
  const file = join(home, 'tunnel.yml');
  // Replaces the file in a single step, as editors do: a half-written file would be refused and reported.
  const write = (lines: readonly string[]): void => {
    const head = `server: ${stack.control}\nauth_token_file: ${stack.tokenFile}\ntunnels:\n`;
    writeFileSync(`${file}.new`, `${head}${lines.map((line) => `  ${line}\n`).join('')}`);
    renameSync(`${file}.new`, file);
  };
  const a = `a: { proto: tcp, local_port: ${source.port} }`;
  write([a, 'b: { proto: tcp, local_port: 1 }', `c: { proto: http, local_port: ${webs[0]} }`]);
  const program = await harness.run(['start', '--config', file, '--json', '--quiet', '--no-inspect'], { home });
  await program.ready(3);
  const ready = program.events('ready') as unknown as {
    name: string;
    tunnel_id: string;
    public_url: string;
    assigned_port: number;
  }[];
  const [readyA, readyC] = ['a', 'c'].map((name) => ready.find((event) => event.name === name));
  const url = readyC?.public_url ?? '';

  const visitor = await visit(readyA?.assigned_port ?? 0);
  const received = createHash('sha256');
  const download = pipeline(visitor, received);
  await eventually(() => expect(visitor.bytesRead).toBeGreaterThan(1024 ** 2));

  const agent = new Agent({ keepAlive: true, maxSockets: 8 });
  let isOver = false;
  let served = 0;
  const load = Array.from({ length: 4 }, async (_, at) => {
    while (!isOver) {
      await askAt(url, at % 2 === 0 ? 'GET' : 'POST', agent);
      served += 1;
    }
  });

  const ofRound = (at: number): string[] => [
    ...(at % 2 === 1 ? [] : ['b: { proto: tcp, local_port: 1 }']),
    `c: { proto: http, local_port: ${webs[at % 2]} }`,
    `d${at}: { proto: tcp, local_port: 1 }`,
    a,
  ];
  // Ten reloads, each requested as soon as the previous reload has finished.
  for (let at = 1; at <= RELOADS; at += 1) {
    write(ofRound(at));
    program.signal('SIGHUP');
    expect(await program.waitFor('reloaded', { nth: at })).toMatchObject({ changed: ['c'], unchanged: 1 });
  }
  // Ten reloads without waiting. The last file counts, no matter which reloads were carried out.
  for (let at = 1; at <= RELOADS; at += 1) {
    write(ofRound(RELOADS + at));
    program.signal('SIGHUP');
  }
  await eventually(() => expect(program.events('ready').at(-1)?.['name']).toBe(`d${2 * RELOADS}`));
  const rounds = program.events('reloaded').length;
  const answers = await Promise.all(Array.from({ length: 8 }, () => askAt(url, 'GET', agent)));
  expect(new Set(answers)).toEqual(new Set(['zero']));

  write([a, `c: { proto: http, local_port: ${webs[1]} }`]);
  program.signal('SIGHUP');
  expect(await program.waitFor('reloaded', { nth: rounds + 1 })).toMatchObject({ changed: ['c'], unchanged: 1 });
  expect(await askAt(url, 'POST', agent)).toBe('one');

  await download;
  isOver = true;
  await Promise.all(load);
  agent.destroy();
  expect(visitor.bytesRead).toBe(BYTES);
  expect(received.digest('hex')).toBe(hashOf(deterministicChunks(BYTES, SEED)));
  expect(served).toBeGreaterThan(100);
  expect(program.events('error')).toEqual([]);
  // Neither tunnel was opened twice.
  const names = program.events('ready').map(({ name }) => name);
  expect([names.filter((name) => name === 'a'), names.filter((name) => name === 'c')]).toEqual([['a'], ['c']]);
});
