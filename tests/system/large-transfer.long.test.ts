// Tests of transfers far larger than any buffer: every byte arrives, and no process grows with the transfer. A separate long run
// transfers 4 GiB.
import { createHash, type Hash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { deterministicBytes, deterministicChunks, eventually, startSinkServer, startTcpServer } from '@tunnel/testkit';
import { expect } from 'vitest';
import { type Harness } from './harness.fixture.ts';
import { askHttp, openHttp, startWeb } from './http-tunnels.fixture.ts';
import type { Stack } from './stack.fixture.ts';
import { it } from './system-test.fixture.ts';
import type { TunnelProgram } from './tunnel-program.fixture.ts';
import { visit } from './visitor.fixture.ts';

const BYTES = 256 * 1024 ** 2;
const RSS_MAX_KB = 200_000;
const TIMEOUT_MS = 240_000;

/** Returns a stream of `bytes` deterministic bytes, and hashes the bytes as they are read. */
const hashedSource = (bytes: number, hash: Hash): Readable => {
  const chunks = function* (): Generator<Buffer> {
    for (const chunk of deterministicChunks(bytes, 77)) {
      hash.update(chunk);
      yield chunk;
    }
  };
  return Readable.from(chunks(), { objectMode: false });
};

/** Returns the peak resident memory of a process in kB, or undefined on a system without /proc. */
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

const download = async (harness: Harness, stack: Stack, flags: readonly string[]): Promise<TunnelProgram> => {
  const sent = createHash('sha256');
  const source = harness.use(await startTcpServer((socket) => void hashedSource(BYTES, sent).pipe(socket)));
  const tunnel = await harness.tcp(stack, source.port, { flags });
  const visitor = await visit((await tunnel.ready()).assigned_port);
  const received = createHash('sha256');
  await pipeline(visitor, received);
  expect(visitor.bytesRead).toBe(BYTES);
  expect(received.digest('hex')).toBe(sent.digest('hex'));
  return tunnel;
};

const upload = async (harness: Harness, stack: Stack, flags: readonly string[]): Promise<TunnelProgram> => {
  const sink = harness.use(await startSinkServer());
  const tunnel = await harness.tcp(stack, sink.port, { flags });
  const visitor = await visit((await tunnel.ready()).assigned_port);
  const sent = createHash('sha256');
  await pipeline(hashedSource(BYTES, sent), visitor);
  await eventually(() => expect(sink.connections[0]?.ended).toBe('finished'), { timeoutMs: 30_000 });
  expect(sink.connections[0]).toEqual({ bytes: BYTES, hash: sent.digest('hex'), ended: 'finished' });
  return tunnel;
};

/** Uploads 200 MB over HTTP. Uploads have no size limit, but must not exceed the memory bound of the processes. */
const uploadOverHttp = async (harness: Harness, stack: Stack, flags: readonly string[]): Promise<TunnelProgram> => {
  let bytes = 0;
  const web = harness.use(
    await startWeb((request, response) => {
      request.on('data', (piece: Buffer) => {
        bytes += piece.length;
      });
      request.on('end', () => response.end(String(bytes)));
    }),
  );
  const { tunnel, endpoint } = await openHttp(harness, stack, web.port, flags);
  const body = deterministicBytes(200_000_000, 3);
  expect((await askHttp(endpoint, { method: 'PUT', body })).text).toBe(String(body.length));
  return tunnel;
};

it.for([
  ['without TLS', false, [download, upload, uploadOverHttp]],
  ['with TLS', true, [download, upload]],
] as const)(
  '%s, long transfers are byte-exact and keep all processes under 200 MB',
  {
    timeout: TIMEOUT_MS,
  },
  async ([, tls, transfers], { harness }) => {
    const stack = await harness.stack({ tls });
    const flags = tls ? ['--tls', '--insecure'] : [];
    const tunnels: TunnelProgram[] = [];
    for (const transfer of transfers) tunnels.push(await transfer(harness, stack, flags));
    expectSmall([stack.program.pid, ...tunnels.map(({ pid }) => pid)]);
  },
);
