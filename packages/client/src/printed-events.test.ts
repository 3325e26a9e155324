// The output of `console.log(event)` in a program with the client library.
import { inspect } from 'node:util';
import { eventually } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Client, connect } from './client.ts';
import { ScriptedEdge } from './scripted-edge.fixture.ts';
import type { StatusEvent } from './status.ts';

let edge: ScriptedEdge;
let client: Client;
let events: StatusEvent[];

beforeEach(async () => {
  edge = await new ScriptedEdge().listen();
  events = [];
  client = await connect({ server: edge.address, token: 't', onStatus: (event) => events.push(event) });
});
afterEach(async () => {
  await client.close();
  await edge.close();
});

const event = (type: StatusEvent['type']): Promise<StatusEvent> =>
  eventually(() => {
    const found = events.find((one) => one.type === type);
    if (found === undefined) throw new Error(`no ${type} yet`);
    return found;
  });

const INSIDE = /traffic|pace|backoff|unreported|lastLocalNotice|Promise|internal|from the wire/i;

it('a printed tunnel-opened event shows name, address and state, but no internals or secrets', async () => {
  const tunnel = await client.open({ protocol: 'http', name: 'web', localPort: 3000, group: 'g', groupKey: 'SECRET' });
  const opened = await event('tunnel-opened');
  const text = inspect(opened);
  expect(text).not.toMatch(INSIDE);
  expect(text).not.toContain('SECRET');
  expect(JSON.parse(JSON.stringify(opened))).toEqual({
    type: 'tunnel-opened',
    tunnel: {
      name: 'web',
      protocol: 'http',
      state: 'open',
      local: '127.0.0.1:3000',
      group: 'g',
      health: 'none',
      publicUrl: tunnel.publicUrl,
      tunnelId: tunnel.tunnelId,
      label: tunnel.label,
      assignedPort: tunnel.assignedPort,
      warnings: [],
      counts: { ...tunnel.counts },
    },
  });
  expect(text).toContain(`publicUrl: '${tunnel.publicUrl}'`);
});

it('a printed tunnel-error event shows the error and its hint', async () => {
  edge.script.RegisterTunnel = ({ request_id }, session) => {
    const refusal = {
      code: 'TUNNEL_SUBDOMAIN_IN_USE',
      message: "subdomain 'shop' is already in use",
      retryable: false,
      held_by: { name: 'web', client_name: 'laptop' },
    };
    session.send({ type: 'TunnelError', request_id, ...refusal });
    return true;
  };
  await expect(client.open({ protocol: 'http', localPort: 3000, subdomain: 'shop' })).rejects.toThrow('in use');
  const told = await event('tunnel-error');
  expect(told).toMatchObject({ fault: { values: { held_by: 'web', held_by_client: 'laptop' } } });
  const text = inspect(told);
  expect(text).toContain("Fault [TUNNEL_SUBDOMAIN_IN_USE]: subdomain 'shop' is already in use");
  expect(text).toContain('Choose another subdomain, or let the edge assign a name.');
  expect(text).not.toMatch(INSIDE);
});
