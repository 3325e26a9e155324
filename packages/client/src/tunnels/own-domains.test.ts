// Tunnels under a custom domain: the registration, also after a reconnect, and an edge without support for custom domains.
import { CAPABILITIES } from '@tunnel/protocol';
import { eventually } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Client, connect } from '../client.ts';
import { ScriptedEdge } from '../scripted-edge.fixture.ts';
import { asciiDomain } from './kinds/own-domain.ts';

let edge: ScriptedEdge;
const clients: Client[] = [];

beforeEach(async () => {
  edge = await new ScriptedEdge().listen();
});
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close()));
  await edge.close();
});

/** Connects a client to the scripted edge. A random value below the real range makes every retry immediate. */
const dial = async (): Promise<Client> => {
  const client = await connect({ server: edge.address, token: 'tnl_test', random: () => -1 });
  clients.push(client);
  return client;
};

const SHOP = { protocol: 'http', localPort: 3000, domain: 'shop.example.com' } as const;

it('an http tunnel registers its own domain, and again after a reconnect', async () => {
  const tunnel = await (await dial()).open(SHOP);
  expect(tunnel).toMatchObject({ publicUrl: 'https://shop.example.com', label: 'shop.example.com' });
  edge.session.cut();
  await eventually(() => expect(edge.sessions).toHaveLength(2));
  await eventually(() => expect(edge.session.all('RegisterTunnel')).toHaveLength(1));
  const [again] = edge.session.all('RegisterTunnel');
  expect(again).toMatchObject({ domain: 'shop.example.com' });
  expect(again).not.toHaveProperty('preferred_subdomain');
  expect(again).not.toHaveProperty('subdomain');
});

it.each([
  ['Shop.Example.COM.', 'shop.example.com'],
  ['*.Shop.example.com', '*.shop.example.com'],
  ['bücher.example', 'xn--bcher-kva.example'],
  ['*.BÜCHER.example.', '*.xn--bcher-kva.example'],
  ['no host name', 'no host name'],
  ['ü ü', 'ü ü'],
  ['', ''],
])('the domain %j is sent as %j', (typed, name) => {
  expect(asciiDomain(typed)).toBe(name);
});

it('an edge without custom domains gets no request, because it would assign another name', async () => {
  edge.capabilities = CAPABILITIES.filter((name) => name !== 'tls');
  const client = await dial();
  await expect(client.open(SHOP)).rejects.toMatchObject({
    code: 'CLIENT_EDGE_TOO_OLD',
    message: 'the edge does not support own-domain tunnels',
  });
  expect(edge.session.all('RegisterTunnel')).toEqual([]);
});
