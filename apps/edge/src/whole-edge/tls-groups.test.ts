// The groups for key agreement accepted by the TLS ports of an edge, and the cost of refusing further groups.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { loadServerConfig } from '@tunnel/config/server';
import { createLogger, Secret, systemClock } from '@tunnel/runtime';
import {
  answerToHello,
  recordHello,
  type TemporaryDirectory,
  temporaryDirectory,
  testCertificate,
} from '@tunnel/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createEdge } from '../edge.ts';
import type { Edge } from '../edge-interface.ts';

const ALERT = 21;
const HANDSHAKE = 22;
const PORTS = ['https', 'control', 'api'] as const;

let directory: TemporaryDirectory;
let edge: Edge;

beforeAll(async () => {
  directory = await temporaryDirectory();
  const paths = { cert_path: join(directory.path, 'cert.pem'), key_path: join(directory.path, 'key.pem') };
  const { cert, key } = testCertificate();
  await writeFile(paths.cert_path, cert);
  await writeFile(paths.key_path, key);
  const ports = { control_port: 0, api_port: 0, metrics_port: 0, http_port: 0, https_port: 0 };
  // The REST port speaks TLS only if reachable from other machines.
  const server = { ...ports, domain: 'localhost', api_host: '0.0.0.0' };
  const config = loadServerConfig({ env: {}, overrides: { server, tls: paths } });
  const logger = createLogger({ level: 'silent', format: 'json' });
  edge = createEdge(config, { clock: systemClock, logger, adminToken: new Secret('admin') });
  await edge.start();
});
afterAll(async () => {
  await edge.stop({ drainMs: 0 });
  await directory.close();
});

const portOf = (name: (typeof PORTS)[number]): number => edge.addresses[name]?.port as number;

it.each(['ffdhe8192', 'ffdhe2048', 'P-521', 'X448'])(
  'every TLS port refuses the key agreement %s at almost no cost',
  async (group) => {
    const hello = await recordHello(group);
    const before = process.cpuUsage();
    for (const name of PORTS) {
      for (let round = 0; round < 5; round += 1) {
        expect(await answerToHello(portOf(name), hello), name).toBe(ALERT);
      }
    }
    const { user, system } = process.cpuUsage(before);
    // A key agreement over ffdhe8192 takes 151 ms, so that fifteen take more than two seconds.
    expect((user + system) / 1000).toBeLessThan(1000);
  },
);

it.each(['X25519', 'P-256', 'P-384'])('every TLS port accepts the key agreement %s', async (group) => {
  const hello = await recordHello(group);
  for (const name of PORTS) expect(await answerToHello(portOf(name), hello), name).toBe(HANDSHAKE);
});
