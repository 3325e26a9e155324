// The share of each account in a port range, at a whole edge. Leased ports and reserved ports of an account count together.

import { loadServerConfig } from '@tunnel/config/server';
import { createLogger, Secret, sha256Hex, systemClock } from '@tunnel/runtime';
import { claimPortBlock, type PortBlock, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { RawClient } from '../control/raw-client.fixture.ts';
import { createEdge } from '../edge.ts';
import type { Edge } from '../edge-interface.ts';

const logger = createLogger({ level: 'silent', format: 'json' });
const SIZE = 20;
let folder: TemporaryDirectory;
let edge: Edge;
let block: PortBlock;
let from: number;
beforeEach(async () => {
  folder = await temporaryDirectory();
  block = await claimPortBlock();
  from = block.from;
});
const startEdge = async (reserved: readonly string[]): Promise<void> => {
  const server = { control_port: 0, api_port: 0, metrics_port: 0, http_port: 0, domain: 'edge.test' };
  const keys = [
    { account: 'greedy', sha256: sha256Hex('greedy'), reserved: [...reserved] },
    { account: 'modest', sha256: sha256Hex('modest') },
  ];
  const limits = { tcp_port_range: [from, from + SIZE - 1] as [number, number] };
  const config = loadServerConfig({ env: {}, overrides: { server, auth: { keys }, limits } });
  edge = createEdge(config, {
    clock: systemClock,
    logger,
    adminToken: new Secret('admin'),
    dataDir: folder.path,
  });
  await edge.start();
};
afterEach(async () => {
  await edge.stop({ drainMs: 0 });
  await block.close();
  await folder.close();
});

const tcp = (remote_port: number) => ({ protocol: 'tcp', name: `t${remote_port}`, remote_port });

it('an account that has reserved most of a range gets at most three quarters; another account gets the rest', async () => {
  await startEdge(Array.from({ length: 14 }, (_, index) => `tcp/${from + index}`));
  const { client: greedy } = await RawClient.enter(edge.addresses.control.port, 'greedy');
  expect((await greedy.registered(tcp(from + 14))).assigned_port).toBe(from + 14);
  expect(await greedy.refused(tcp(from + 15))).toMatchObject({
    code: 'TUNNEL_PORT_LIMIT',
    message:
      'cannot open another port: this account has 15 ports of [limits] tcp_port_range, and the remaining free ports are kept for other accounts',
  });
  // A reserved port already belongs to its account.
  expect((await greedy.registered(tcp(from))).assigned_port).toBe(from);
  const { client: modest } = await RawClient.enter(edge.addresses.control.port, 'modest');
  for (let port = from + 15; port < from + SIZE; port += 1) {
    expect((await modest.registered(tcp(port))).assigned_port).toBe(port);
  }
});

it('ports held for an account after a restart count for it, so that it gets no free ports in addition', async () => {
  await startEdge([]);
  const { client: before } = await RawClient.enter(edge.addresses.control.port, 'greedy');
  for (let port = from; port < from + 15; port += 1) await before.registered(tcp(port));
  await edge.stop({ drainMs: 0 });
  await startEdge([]);
  const { client: greedy } = await RawClient.enter(edge.addresses.control.port, 'greedy');
  expect(await greedy.refused({ protocol: 'tcp', name: 'one more' })).toMatchObject({ code: 'TUNNEL_PORT_LIMIT' });
  // A port held after the restart already belongs to its account.
  expect((await greedy.registered(tcp(from))).assigned_port).toBe(from);
  const { client: modest } = await RawClient.enter(edge.addresses.control.port, 'modest');
  for (let port = from + 15; port < from + SIZE; port += 1) {
    expect((await modest.registered(tcp(port))).assigned_port).toBe(port);
  }
});
