// The pages of udp and p2p tunnels: who talks, over which path and why, what was dropped, and a peer that is dismissed.
import type { EdgePeer, EdgePeers, TunnelLogEntry } from '@tunnel/contract';
import { eventually, startUdpEcho } from '@tunnel/testkit';
import type { Page, Route } from 'playwright-core';
import { expect } from 'vitest';
import { UdpVisitor } from '../system/udp-visitor.fixture.ts';
import { Account } from './account.fixture.ts';
import { findingsOf } from './axe-findings.fixture.ts';
import { it } from './browser-test.fixture.ts';
import { walkByTab } from './keyboard-walk.fixture.ts';

/** For everybody: axe, the keyboard, and no wider than the smallest phone. */
const expectForEverybody = async (page: Page): Promise<void> => {
  expect(await walkByTab(page)).toEqual({ missed: [], unseen: [] });
  expect(await findingsOf(page)).toEqual([]);
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360);
  await page.setViewportSize({ width: 1280, height: 800 });
};

it('a udp tunnel shows its flows, its path and its drops; they go with it', async ({ profile, harness, stack }) => {
  const account = await Account.signUp(stack, 'flows');
  const key = await account.newKey();
  const echo = harness.use(await startUdpEcho());
  const program = await harness.run(['udp', String(echo.port), '--json', '--server', stack.control], {
    env: { TUNNEL_API_KEY: key.token },
  });
  const ready = await program.ready();
  await profile.logIn(account.email);
  const page = await profile.tab(`/tunnels/${ready.tunnel_id}`);
  await page.getByRole('heading', { name: `Port ${ready.assigned_port}`, level: 1 }).waitFor();
  await page.getByText('No flows right now').waitFor();
  await page.getByText('No datagram was dropped').waitFor();

  const visitor = harness.use(await UdpVisitor.of(ready.assigned_port ?? 0));
  await visitor.ask('1234567890');
  const row = page.getByRole('row').filter({ hasText: visitor.name });
  await row.filter({ hasText: 'unconfirmed' }).waitFor();
  await visitor.ask('1234567890');
  await row.getByText('confirmed', { exact: true }).waitFor();
  // Over loopback UDP is never blocked.
  await page.getByText('Datagrams go over UDP between the client and the edge').waitFor();
  await expectForEverybody(page);

  await page.route('**/flows', async (route) => {
    const answer = await route.fetch();
    const flows = (await answer.json()) as { dropped: object };
    await route.fulfill({
      json: { ...flows, path: 'carrier', reason: 'udp-blocked', dropped: { ...flows.dropped, rate: 12 } },
    });
  });
  await page.getByText('No UDP gets through between the client and the edge').waitFor();
  await page
    .getByRole('listitem')
    .filter({ hasText: 'Too many new flows a second from one network' })
    .getByText('12')
    .waitFor();
  await page.unrouteAll({ behavior: 'wait' });

  program.signal('SIGTERM');
  expect(await program.exitCode()).toBe(0);
  await page.getByText('They are kept only while a tunnel lives').waitFor();
});

const peer = (peer_id: string, more: Partial<EdgePeer>): EdgePeer => ({
  ...{ peer_id, client_addr: '198.51.100.7:40001', service: 'tcp', path: 'relay', reason: 'random-ports' },
  ...{ rtt_ms: null, connected_since: new Date().toISOString(), relayed_bytes: 1_500_000, direct_bytes: 0, ...more },
});

/** A p2p tunnel of the account as the platform would show it; gives what was dismissed. */
const showPeers = async (page: Page, peers: EdgePeer[]): Promise<string[]> => {
  const dismissed: string[] = [];
  const entry: TunnelLogEntry = {
    ...{ id: 'tun_p2p', tunnel_id: 'tun_p2p', protocol: 'p2p', label: 'office-db', region_id: 'local' },
    ...{ registered_at: new Date().toISOString(), unregistered_at: null, request_count: 2, bytes_proxied: 1_500_000 },
  };
  const list = (): EdgePeers => ({ peers, total: peers.length });
  await page.route('**/usage/tunnels/tun_p2p', (route) => route.fulfill({ json: entry }));
  await page.route('**/usage/tunnels/tun_p2p/peers', (route) => route.fulfill({ json: list() }));
  await page.route('**/usage/tunnels/tun_p2p/peers/*', async (route: Route) => {
    const id = new URL(route.request().url()).pathname.split('/').at(-1) ?? '';
    dismissed.push(`${route.request().method()} ${id}`);
    peers.splice(
      peers.findIndex(({ peer_id }) => peer_id === id),
      1,
    );
    await route.fulfill({ status: 204 });
  });
  return dismissed;
};

it('a p2p tunnel shows each peer with its path and the reason, and one is dismissed when it is confirmed', async ({
  profile,
  stack,
}) => {
  const account = await Account.signUp(stack, 'peers');
  await profile.logIn(account.email);
  const page = await profile.tab('/tunnels');
  await page.getByText('No tunnels yet').waitFor();
  const direct = { path: 'direct', reason: '', rtt_ms: 12.4, direct_bytes: 7_000_000 } as const;
  const dismissed = await showPeers(page, [
    peer('peer_direct', { ...direct, client_addr: '203.0.113.9:40002' }),
    peer('peer_relay', {}),
  ]);
  await page.goto(profile.urlOf('/tunnels/tun_p2p'));
  await page.getByRole('heading', { name: 'office-db', level: 1 }).waitFor();
  const rowOf = (name: string) => page.getByRole('row').filter({ hasText: name });
  await rowOf('peer_direct').getByText('direct', { exact: true }).waitFor();
  expect(await rowOf('peer_direct').innerText()).toMatch(/12 ms[\s\S]*1\.5 MB[\s\S]*7\.0 MB/);
  await rowOf('peer_relay').getByText('relay', { exact: true }).waitFor();
  await rowOf('peer_relay').getByText('both networks use random ports').waitFor();
  expect(await page.getByText('Direct traffic is not billed').count()).toBeGreaterThan(0);
  await expectForEverybody(page);

  await page.getByRole('button', { name: 'Dismiss the peer at 198.51.100.7:40001' }).click();
  await page.getByRole('button', { name: 'Keep it' }).click();
  expect(dismissed).toEqual([]);
  await page.getByRole('button', { name: 'Dismiss the peer at 198.51.100.7:40001' }).press('Enter');
  expect(await findingsOf(page)).toEqual([]);
  await page.getByRole('button', { name: 'Dismiss peer' }).click();
  await rowOf('peer_relay').waitFor({ state: 'detached' });
  await eventually(() => expect(dismissed).toEqual(['DELETE peer_relay']));
  await rowOf('peer_direct').waitFor();
  await page.unrouteAll({ behavior: 'wait' });
});

it('the help for a new tunnel has every kind, each with commands that name the edge', async ({ profile, stack }) => {
  const account = await Account.signUp(stack, 'kinds');
  await profile.logIn(account.email);
  const page = await profile.tab('/tunnels');
  await page.getByRole('button', { name: 'New tunnel' }).click();
  const dialog = page.getByRole('dialog');
  for (const words of ['tunnel http 3000', 'tunnel tcp 5432', 'tunnel udp 27015', 'p2p publish office-db 5432']) {
    await dialog.getByText(`${words}`).waitFor();
  }
  await page.keyboard.press('Escape');
  await page.getByRole('radio', { name: 'p2p' }).click();
  await page.getByText('There never was a p2p tunnel.').waitFor();
  await page.getByText('p2p connect office-db --listen 15432').waitFor();
});
