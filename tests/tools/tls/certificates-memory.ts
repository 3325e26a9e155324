// How much memory 10,000 certificates take at an edge, how long the snapshot takes, and the longest turn of the event loop meanwhile.
//   npx esbuild tests/tools/tls/certificates-memory.ts --bundle --platform=node --format=esm --conditions=source --outfile=/tmp/memory.mjs
//   node --expose-gc /tmp/memory.mjs [count]
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { loadServerConfig } from '@tunnel/config/server';
import { createLogger, Secret, systemClock } from '@tunnel/runtime';
import { PlatformCertificates } from '../../../apps/edge/src/backend/certificates/platform-certificates.ts';
import { EdgeTls } from '../../../apps/edge/src/edge-tls.ts';

const COUNT = Number(process.argv[2] ?? 10_000);
const pem = execFileSync('openssl', [
  ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '90'],
  ...['-subj', '/CN=shop.example.com', '-keyout', '-', '-out', '-'],
]).toString();
const key = /-----BEGIN PRIVATE KEY-----[^]+-----END PRIVATE KEY-----\n/.exec(pem)?.[0] ?? '';
const cert = /-----BEGIN CERTIFICATE-----[^]+-----END CERTIFICATE-----\n/.exec(pem)?.[0] ?? '';
/** As authorities send it: the leaf and one above it. */
const CHAIN = `${cert}${cert}${cert}`;

const rssMb = (): number => {
  globalThis.gc?.();
  globalThis.gc?.();
  return process.memoryUsage().rss / 1e6;
};

const lines = function* (): Generator<string> {
  yield '{"at":1}\n';
  for (let at = 0; at < COUNT; at += 1) {
    const row = {
      ...{ id: `crt_${at}`, names: [`shop${at}.example.com`], is_operators: false, state: 'valid', issuer: 'Test CA' },
      ...{ not_before: 1, not_after: 2, renew_at: 3, last_error: null, pair: { chain: CHAIN, key } },
    };
    yield `${JSON.stringify(row)}\n`;
  }
  yield '{"end":true}\n';
};

const encoder = new TextEncoder();
const body = (): ReadableStream<Uint8Array> => {
  const rows = lines();
  return new ReadableStream({
    pull: (controller) => {
      const { value, done } = rows.next();
      if (done) controller.close();
      else controller.enqueue(encoder.encode(value));
    },
  });
};

const folder = mkdtempSync(join(tmpdir(), 'certificates-'));
const logger = createLogger({ level: 'warn', format: 'json' });
const config = loadServerConfig({
  env: {},
  overrides: { server: { domain: 'tunnels.test' }, acme: { enabled: true } },
});
const tls = new EdgeTls(config, { clock: systemClock, logger }, () => {});
await tls.start();

const take = async (isAway: boolean): Promise<void> => {
  const link = {
    certificates: async () => body(),
    certificate: async () => null,
    challenge: async () => ({ challenge: null }),
  };
  const copies = { folder, credential: new Secret('credential') };
  const edge = new PlatformCertificates({ clock: systemClock, logger, link, copies });
  edge.follow(tls);
  const before = rssMb();
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const beganMs = performance.now();
  const usedBefore = process.cpuUsage();
  await edge.start();
  if (!isAway) edge.platformHeard(false);
  while (tls.certificates.size < COUNT || (await edge.list()).length < COUNT)
    await new Promise((resolve) => setTimeout(resolve, 20));
  const tookMs = Math.round(performance.now() - beganMs);
  delay.disable();
  const used = process.cpuUsage(usedBefore);
  const cpuMs = Math.round((used.user + used.system) / 1000);
  const longestMs = Math.round(delay.max / 1e6);
  const grownMb = Math.round(rssMb() - before);
  say({ from: isAway ? 'copies' : 'snapshot', certificates: COUNT, tookMs, cpuMs, longestMs, grownMb });
  const copiedFrom = performance.now();
  await edge.stop();
  say({ stopMs: Math.round(performance.now() - copiedFrom) });
};

const say = (figures: object): void => void process.stdout.write(`${JSON.stringify(figures)}\n`);

await take(false);
tls.stop();
rmSync(folder, { recursive: true });
