// Transfers 5 GB through an http tunnel in both directions: byte-exact, and without growing memory in the edge or the client.
import { createHash, type Hash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { deterministicBytes } from '@tunnel/testkit';
import { describe, expect } from 'vitest';
import { openHttp, type PublicEndpoint, startWeb } from '../system/http-tunnels.fixture.ts';
import { it } from '../system/system-test.fixture.ts';

const BYTES = 5_000_000_000;
const PIECE = deterministicBytes(1_000_000, 9);
const RSS_MAX_KB = 200_000;
/** Timeout of a transfer. Both ends compute hashes in the test process, which is slower than the tunnel. */
const TIMEOUT_MS = 10 * 60_000;

/** Hashes all bytes of a message without keeping them. */
const swallow = async (message: IncomingMessage): Promise<{ bytes: number; hash: string }> => {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const piece of message) {
    bytes += (piece as Buffer).length;
    hash.update(piece as Buffer);
  }
  return { bytes, hash: hash.digest('hex') };
};

const hashedSource = (hash: Hash): Readable => {
  const pieces = function* (): Generator<Buffer> {
    for (let sent = 0; sent < BYTES; sent += PIECE.length) {
      hash.update(PIECE);
      yield PIECE;
    }
  };
  return Readable.from(pieces(), { objectMode: false });
};

/** Returns the peak resident memory of a process so far. Returns undefined on systems without /proc. */
const peakKilobytes = (pid: number): number | undefined => {
  const file = `/proc/${pid}/status`;
  if (!existsSync(file)) return undefined;
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(file, 'utf8'))?.[1]);
};

const expectSmall = (what: string, pids: { readonly edge: number; readonly client: number }): void => {
  for (const [name, pid] of Object.entries(pids)) {
    const peak = peakKilobytes(pid);
    if (peak === undefined) continue;
    console.log(`${what}: peak of the ${name} ${Math.round(peak / 1000)} MB`);
    expect(peak, name).toBeLessThan(RSS_MAX_KB);
  }
};

const send = (endpoint: PublicEndpoint, method: string, headers: Record<string, string>) =>
  httpRequest({
    hostname: '127.0.0.1',
    port: endpoint.port,
    method,
    headers: { host: endpoint.host, ...headers },
    agent: false,
  });

describe.each([
  ['with a length', { 'content-length': String(BYTES) }],
  ['in chunks', { 'transfer-encoding': 'chunked' }],
])('a 5 GB transfer %s', (how, framing) => {
  it('downloads byte-exactly while edge and client stay under 200 MB of memory', { timeout: TIMEOUT_MS }, async ({
    harness,
  }) => {
    const sent = createHash('sha256');
    const web = harness.use(
      await startWeb(async (_, response) => {
        response.writeHead(200, framing);
        await pipeline(hashedSource(sent), response);
      }),
    );
    const stack = await harness.stack();
    const { tunnel, endpoint } = await openHttp(harness, stack, web.port);
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      send(endpoint, 'GET', {}).on('response', resolve).on('error', reject).end();
    });
    expect(await swallow(response)).toEqual({ bytes: BYTES, hash: sent.digest('hex') });
    expectSmall(`download ${how}`, { edge: stack.program.pid, client: tunnel.pid });
  });

  it('uploads byte-exactly while edge and client stay under 200 MB of memory', { timeout: TIMEOUT_MS }, async ({
    harness,
  }) => {
    const web = harness.use(
      await startWeb(async (request, response) => {
        response.end(JSON.stringify(await swallow(request)));
      }),
    );
    const stack = await harness.stack();
    const { tunnel, endpoint } = await openHttp(harness, stack, web.port);
    const sent = createHash('sha256');
    const upload = send(endpoint, 'PUT', framing);
    const answered = new Promise<IncomingMessage>((resolve, reject) => {
      upload.on('response', resolve).on('error', reject);
    });
    await pipeline(hashedSource(sent), upload);
    let answer = '';
    for await (const piece of await answered) answer += String(piece);
    expect(JSON.parse(answer)).toEqual({ bytes: BYTES, hash: sent.digest('hex') });
    expectSmall(`upload ${how}`, { edge: stack.program.pid, client: tunnel.pid });
  });
});
