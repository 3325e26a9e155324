// GET /api/connections: lists the open connections, for the operator only.

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { apiError, edgeConnections } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { API_CONNECTIONS_SHOWN } from './connection-routes.ts';
import { ADMIN_TOKEN, ALICE_KEY, PLATFORM_SECRET, type RestFixture, startRest } from './rest.fixture.ts';

let rest: RestFixture;
const sockets: Socket[] = [];
beforeEach(async () => {
  rest = await startRest({ gate: { visitors: 5000 } });
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await rest.stop();
});

const list = async () => {
  const response = await rest.request('/api/connections', { token: ADMIN_TOKEN });
  expect(response.status).toBe(200);
  return edgeConnections.strict().parse(await response.json());
};

it('GET /api/connections lists each connection with kind, phase, peer and the event awaited, oldest first', async () => {
  const silent = connect(rest.port, '127.0.0.1');
  sockets.push(silent);
  await once(silent, 'connect');
  await eventually(() => expect(rest.gate.admission.used.api).toBe(1));
  const { total, shares, connections, truncated } = await list();
  expect([total, truncated, shares.api]).toEqual([2, false, { open: 2, limit: 1000 }]);
  expect(connections.map(({ kind, phase, waits_for }) => [kind, phase, waits_for])).toEqual([
    ['rest', 'accepted', 'a request'],
    ['rest', 'answering', 'us'],
  ]);
  const { port } = silent.address() as { port: number };
  expect(connections[0]).toMatchObject({ peer: `127.0.0.1:${port}`, network: '127.0.0.1', account: null });
});

it('GET /api/connections names the tunnel of a visitor and the account of a client, where known', async () => {
  const visitor = rest.gate.admission.enter('http', '192.0.2.1', 0);
  const client = rest.gate.admission.enter('control', '192.0.2.2', 0);
  if (visitor.kind !== 'admitted' || client.kind !== 'admitted') throw new Error('there is room');
  visitor.ticket.held = {
    isIdle: false,
    activeAtMs: 0,
    describe: () => ({ phase: 'answering', waitsFor: 'the service', tunnelId: 'tun_alice' }),
    close: () => {},
  };
  rest.gate.admission.identify(client.ticket, 'account alice', 'session');
  const [first, second] = (await list()).connections;
  expect(first).toMatchObject({ kind: 'http', phase: 'answering', waits_for: 'the service', tunnel_id: 'tun_alice' });
  expect(second).toMatchObject({ kind: 'control', account: 'account alice', tunnel_id: null });
});

it('GET /api/connections returns a bounded list and the total number of connections', async () => {
  for (let n = 0; n < API_CONNECTIONS_SHOWN + 5; n += 1) rest.gate.admission.enter('tcp', `n${n}`, n);
  const { total, connections, truncated } = await list();
  expect([total, connections.length, truncated]).toEqual([API_CONNECTIONS_SHOWN + 6, API_CONNECTIONS_SHOWN, true]);
  expect(connections[0]?.network).toBe('n0');
});

it.each([
  ['no key', undefined, 401, 'AUTH_TOKEN_MISSING'],
  ['a key of an account', ALICE_KEY, 403, 'API_OPERATOR_ONLY'],
  ['the platform for an account', PLATFORM_SECRET, 403, 'API_OPERATOR_ONLY'],
])('GET /api/connections is rejected for %s', async (_who, token, status, code) => {
  const headers = { 'x-tunnel-account': 'alice' };
  const response = await rest.request('/api/connections', { headers, ...(token === undefined ? {} : { token }) });
  expect([response.status, apiError.parse(await response.json()).code]).toEqual([status, code]);
});
