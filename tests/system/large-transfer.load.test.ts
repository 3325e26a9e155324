// A transfer far larger than any buffer: byte-exact, and no process grows with it. (4 GiB is one of the long runs.)
import { createHash, type Hash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { deterministicBytes, deterministicChunks, eventually, startSinkServer, startTcpServer } from '@tunnel/testkit';
import { describe, expect } from 'vitest';
import { askHttp, openHttp, startWeb } from './http-tunnels.fixture.ts';
import { it } from './system-test.fixture.ts';
import { visit } from './visitor.fixture.ts';

const GIB = 1024 ** 3;
const RSS_MAX_KB = 200_000;
const TIMEOUT_MS = 120_000;

/** `bytes` deterministic bytes that are hashed as they are taken. */
const hashedSource = (bytes: number, hash: Hash): Readable => {
  const chunks = function* (): Generator<Buffer> {
    for (const chunk of deterministicChunks(bytes, 77)) {
      hash.update(chunk);
      yield chunk;
    }
  };
  return Readable.from(chunks(), { objectMode: false });
};

/** Peak resident memory so far; undefined where there is no /proc. */
const peakKilobytes = (pid: number): number | undefined => {
  const file = `/proc/${pid}/status`;
  if (!existsSync(file)) return undefined;
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(file, 'utf8'))?.[1]);
};

const expectSmall = (pids: readonly number[]): void => {
  for (const pid of pids) {
    const peak = peakKilobytes(pid);
    if (peak !== undefined) expect(peak, `pid ${pid}`).toBeLessThan(RSS_MAX_KB);
  }
};

describe.each([
  ['in clear', false, GIB / 4],
  ['over TLS', true, GIB / 4],
])('%s', (_, tls, bytes) => {
  const flags = tls ? ['--tls', '--insecure'] : [];

  it('a long download is byte-exact and keeps both processes under 200 MB', { timeout: TIMEOUT_MS }, async ({
    harness,
  }) => {
    const sent = createHash('sha256');
    const source = await startTcpServer((socket) => void hashedSource(bytes, sent).pipe(socket));
    harness.use(source);
    const stack = await harness.stack({ tls });
    const tunnel = await harness.tcp(stack, source.port, { flags });
    const visitor = await visit((await tunnel.ready()).assigned_port);
    const received = createHash('sha256');
    await pipeline(visitor, received);
    expect(visitor.bytesRead).toBe(bytes);
    expect(received.digest('hex')).toBe(sent.digest('hex'));
    expectSmall([stack.program.pid, tunnel.pid]);
  });

  it('a long upload is byte-exact and keeps both processes under 200 MB', { timeout: TIMEOUT_MS }, async ({
    harness,
  }) => {
    const sink = harness.use(await startSinkServer());
    const stack = await harness.stack({ tls });
    const tunnel = await harness.tcp(stack, sink.port, { flags });
    const visitor = await visit((await tunnel.ready()).assigned_port);
    const sent = createHash('sha256');
    await pipeline(hashedSource(bytes, sent), visitor);
    await eventually(() => expect(sink.connections[0]?.ended).toBe('finished'), { timeoutMs: 30_000 });
    expect(sink.connections[0]).toEqual({ bytes, hash: sent.digest('hex'), ended: 'finished' });
    expectSmall([stack.program.pid, tunnel.pid]);
  });
});

it('an HTTP upload of any size passes: there is no limit but the bound on memory', { timeout: TIMEOUT_MS }, async ({
  harness,
}) => {
  let bytes = 0;
  const web = harness.use(
    await startWeb((request, response) => {
      request.on('data', (piece: Buffer) => {
        bytes += piece.length;
      });
      request.on('end', () => response.end(String(bytes)));
    }),
  );
  const stack = await harness.stack();
  const { tunnel, endpoint } = await openHttp(harness, stack, web.port);
  const body = deterministicBytes(200_000_000, 3);
  expect((await askHttp(endpoint, { method: 'PUT', body })).text).toBe(String(body.length));
  expectSmall([stack.program.pid, tunnel.pid]);
});
