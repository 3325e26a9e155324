// TLS handshakes from one network at an edge with a late event loop. Handshakes above the rate are reset, and none are reset once the
// loop is in time again.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { loadServerConfig } from '@tunnel/config/server';
import { createLogger, Secret, systemClock } from '@tunnel/runtime';
import {
  answerToHello,
  eventually,
  recordHello,
  type TemporaryDirectory,
  temporaryDirectory,
  testCertificate,
} from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createEdge } from '../edge.ts';
import type { Edge } from '../edge-interface.ts';

const HANDSHAKE = 22;

let directory: TemporaryDirectory;
let edge: Edge;
let hello: Buffer;

beforeEach(async () => {
  directory = await temporaryDirectory();
  const paths = { cert_path: join(directory.path, 'cert.pem'), key_path: join(directory.path, 'key.pem') };
  const { cert, key } = testCertificate();
  await writeFile(paths.cert_path, cert);
  await writeFile(paths.key_path, key);
  const server = { control_port: 0, api_port: 0, metrics_port: 0, http_port: 0, https_port: 0, domain: 'localhost' };
  const overrides = { server, tls: paths, limits: { handshakes_per_second: 1 } };
  const logger = createLogger({ level: 'silent', format: 'json' });
  edge = createEdge(loadServerConfig({ env: {}, overrides }), {
    clock: systemClock,
    logger,
    adminToken: new Secret('admin'),
  });
  await edge.start();
  hello = await recordHello('X25519');
});
afterEach(async () => {
  await edge.stop({ drainMs: 0 });
  await directory.close();
});

/** Blocks the event loop most of the time, as a flood of expensive handshakes does. Returns a function that stops the blocking. */
const keepLoopLate = (): (() => void) => {
  const timer = setInterval(() => {
    const until = performance.now() + 80;
    while (performance.now() < until);
  }, 5);
  return () => clearInterval(timer);
};

const roundOf = (port: number): Promise<(number | null)[]> =>
  Promise.all(Array.from({ length: 12 }, () => answerToHello(port, hello)));

it.each(['https', 'control'] as const)(
  'an edge resets handshakes above the rate at the %s port only while its event loop is late',
  async (name) => {
    const port = edge.addresses[name]?.port as number;
    const inTime = (await Promise.all([roundOf(port), roundOf(port)])).flat();
    expect(inTime.every((answer) => answer === HANDSHAKE)).toBe(true);
    const recover = keepLoopLate();
    try {
      await eventually(async () => expect(await roundOf(port)).toContain(null));
      const refused = await fetch(`http://127.0.0.1:${edge.addresses.metrics.port}/metrics`).then((answer) =>
        answer.text(),
      );
      expect(refused).toMatch(/tunnel_connections_refused_total\{reason="handshake-rate"\} [1-9]/);
    } finally {
      recover();
    }
    await eventually(async () => expect(await roundOf(port)).not.toContain(null));
  },
);
