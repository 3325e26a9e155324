// A whole edge with policies: the policy of a client applies to visitors from the response to its registration on, and the operator’s
// rules come first.
import { writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { loadServerConfig } from '@tunnel/config/server';
import type { TunnelPolicy } from '@tunnel/contract';
import { createLogger, Secret, systemClock } from '@tunnel/runtime';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { RawClient } from './control/raw-client.fixture.ts';
import { createEdge } from './edge.ts';
import type { Edge } from './edge-interface.ts';

const logger = createLogger({ level: 'silent', format: 'json' });
const WEB = { protocol: 'http', subdomain: 'web' };
const GROUP = { ...WEB, group: 'pool', group_key_hash: '1'.repeat(64) };
const SILENT_SERVICE = { health_check: { type: 'tcp' } };

const deny = (status: number) => ({ login: null, rules: [{ name: 'door', deny: status }] });

let folder: TemporaryDirectory;
let edge: Edge;
beforeEach(async () => {
  folder = await temporaryDirectory();
});
afterEach(async () => {
  await edge.stop({ drainMs: 0 });
  await folder.close();
});

const startEdge = async (operatorRules?: string): Promise<void> => {
  const server = { control_port: 0, api_port: 0, metrics_port: 0, http_port: 0, domain: 'edge.test' };
  const file = join(folder.path, 'operator.yml');
  if (operatorRules !== undefined) writeFileSync(file, operatorRules);
  const policy = operatorRules === undefined ? {} : { policy: { file } };
  const config = loadServerConfig({ env: {}, overrides: { server, load_balancing: { enabled: true }, ...policy } });
  edge = createEdge(config, {
    clock: systemClock,
    logger,
    adminToken: new Secret('admin'),
    dataDir: folder.path,
  });
  await edge.start();
};

const enter = async (): Promise<RawClient> =>
  (await RawClient.enter(edge.addresses.control.port, 'admin', undefined, ['policy'])).client;

/** Status and error code of the edge’s response to a visitor. */
const visit = (path = '/', name = 'web'): Promise<readonly [number | undefined, unknown]> =>
  new Promise((resolve, reject) => {
    const { port } = edge.addresses.http;
    const headers = { host: `${name}.edge.test` };
    const sent = httpRequest({ host: '127.0.0.1', port, path, headers, agent: false }, (answer) => {
      answer.resume().on('end', () => resolve([answer.statusCode, answer.headers['x-tunnel-error']]));
    });
    sent.on('error', reject).end();
  });

const api = async (path: string): Promise<unknown> => {
  const url = `http://127.0.0.1:${edge.addresses.api.port}${path}`;
  return (await fetch(url, { headers: { authorization: 'Bearer admin' } })).json();
};

const metrics = async (): Promise<string> =>
  (await fetch(`http://127.0.0.1:${edge.addresses.metrics.port}/metrics`)).text();

it('a denied request is answered by the policy, counted by rule but not as a request, and captured', async () => {
  await startEdge();
  const client = await enter();
  const { tunnel_id } = await client.registered({ ...WEB, policy: deny(418) });
  expect(await visit()).toEqual([418, 'POLICY_DENIED']);
  expect(await visit('/b?c=1')).toEqual([418, 'POLICY_DENIED']);
  expect(await api(`/api/tunnels/${tunnel_id}`)).toMatchObject({
    request_count: 0,
    bytes_proxied: 0,
    policy: { rules: 1, actions: ['deny'], revision: 0 },
  });
  const { rules, operator_rules } = (await api(`/api/tunnels/${tunnel_id}/policy`)) as TunnelPolicy;
  expect([operator_rules, rules[0]]).toMatchObject([
    0,
    { index: 1, name: 'door', action: 'deny', matched: 2, answered: 2 },
  ]);
  expect(await metrics()).toContain('tunnel_policy_answers_total{action="deny",status="418"} 2');
  const { requests } = (await api(`/api/tunnels/${tunnel_id}/requests?answered=true`)) as { requests: object[] };
  expect(requests).toMatchObject([
    {
      path: '/b?c=1',
      status: 418,
      replayable: false,
      policy: { answered_by: { index: 1, name: 'door', action: 'deny' }, matched: [1], user: null },
    },
    { path: '/' },
  ]);
});

it('a policy registered again applies to the next request', async () => {
  await startEdge();
  const client = await enter();
  const { tunnel_id } = await client.registered({ ...WEB, policy: deny(401) });
  for (let status = 402; status < 412; status += 1) {
    await client.registered({ ...WEB, tunnel_id, policy: deny(status) });
    expect(await visit()).toEqual([status, 'POLICY_DENIED']);
  }
});

it('a group without a healthy member applies its policy first, in the highest revision', async () => {
  await startEdge();
  const first = await enter();
  const second = await enter();
  await first.registered({ ...GROUP, ...SILENT_SERVICE, policy: deny(403), policy_revision: 1 });
  expect(await visit()).toEqual([403, 'POLICY_DENIED']);
  await second.registered({ ...GROUP, ...SILENT_SERVICE, policy: deny(451), policy_revision: 2 });
  expect(await visit()).toEqual([451, 'POLICY_DENIED']);
  // Without a policy no request is denied, so the visitor learns that no member is healthy.
  await first.registered({ ...GROUP, ...SILENT_SERVICE, policy_revision: 3 });
  expect(await visit()).toEqual([502, 'GROUP_UNHEALTHY']);
});

it('the operator’s rules come before the rules of every tunnel, and a tunnel’s allow does not skip them', async () => {
  await startEdge('- match: { path: ["/private/**"] }\n  deny: 451\n');
  const client = await enter();
  const policy = { login: null, rules: [{ match: { path: ['/private/open'] }, allow: true }, { deny: 418 }] };
  const { tunnel_id } = await client.registered({ ...WEB, policy });
  await client.registered({ protocol: 'http', subdomain: 'plain' });
  expect(await visit('/private/open')).toEqual([451, 'POLICY_DENIED']);
  expect(await visit('/other')).toEqual([418, 'POLICY_DENIED']);
  expect(await visit('/private/x', 'plain')).toEqual([451, 'POLICY_DENIED']);
  const { rules, operator_rules } = (await api(`/api/tunnels/${tunnel_id}/policy`)) as TunnelPolicy;
  expect([operator_rules, rules.map(({ matched, answered }) => [matched, answered])]).toEqual([
    1,
    [
      [0, 0],
      [1, 1],
    ],
  ]);
});
