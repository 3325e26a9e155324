// The pages of udp and p2p tunnels: flows or peers, their path with its reason, dropped datagrams, and the disconnection of a peer.
import { type Client, connect } from '@tunnel/client';
import { startEchoServer, startUdpEcho } from '@tunnel/testkit';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { UdpVisitor } from '../system/udp-visitor.fixture.ts';
import { Account } from './account.fixture.ts';
import { findingsOf } from './axe-findings.fixture.ts';
import { it } from './browser-test.fixture.ts';
import { walkByTab } from './keyboard-walk.fixture.ts';

/** Checks accessibility: keyboard, axe, and no overflow on the smallest phone. */
const expectForEverybody = async (page: Page): Promise<void> => {
  expect(await walkByTab(page)).toEqual({ missed: [], unseen: [] });
  expect((await findingsOf(page)).join('\n')).toBe('');
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360);
  await page.setViewportSize({ width: 1280, height: 800 });
};

it('the page of a udp tunnel shows flows, path and drops, and no flows after the tunnel closes', async ({
  profile,
  harness,
  stack,
}) => {
  const account = await Account.signUp(stack, 'flows');
  const key = await account.newKey();
  const echo = harness.use(await startUdpEcho());
  const program = await harness.run(['udp', String(echo.port), '--json', '--server', stack.control], {
    env: { TUNNEL_API_KEY: key.token },
  });
  const ready = await program.ready();
  await profile.logIn(account.email);
  const page = await profile.tab(`/tunnels/${ready.tunnel_id}`);
  await page.getByRole('heading', { name: `localhost:${ready.assigned_port}`, level: 1 }).waitFor();
  await page.getByText('No flows').waitFor();
  await page.getByText('No datagrams were dropped').waitFor();

  const visitor = harness.use(await UdpVisitor.of(ready.assigned_port ?? 0));
  await visitor.ask('1234567890');
  const row = page.getByRole('row').filter({ hasText: visitor.name });
  await row.filter({ hasText: 'unconfirmed' }).waitFor();
  await visitor.ask('1234567890');
  await row.getByText('confirmed', { exact: true }).waitFor();
  // On the loopback interface UDP is never blocked.
  await page.getByText('Datagrams use encrypted UDP between the client and the edge').waitFor();
  await expectForEverybody(page);

  await page.route('**/flows', async (route) => {
    const answer = await route.fetch();
    const flows = (await answer.json()) as { dropped: object };
    await route.fulfill({
      json: { ...flows, path: 'carrier', reason: 'udp-blocked', dropped: { ...flows.dropped, rate: 12 } },
    });
  });
  await page.getByText('UDP is blocked between the client and the edge').waitFor();
  await page
    .getByRole('listitem')
    .filter({ hasText: 'Too many new flows per second from one network' })
    .getByText('12')
    .waitFor();
  await page.unrouteAll({ behavior: 'wait' });

  program.signal('SIGTERM');
  expect(await program.exitCode()).toBe(0);
  await page.getByText('Flows are shown while the tunnel is live').waitFor();
});

it('the page of a p2p tunnel shows each peer with its path and reason, and disconnects a peer after confirmation', async ({
  profile,
  harness,
  stack,
}) => {
  const account = await Account.signUp(stack, 'peers');
  const { token } = await account.newKey();
  const echo = harness.use(await startEchoServer());
  const connected = async (): Promise<Client> => harness.use(await connect({ server: stack.control, token }));
  const p2p = { p2pName: `office-${process.pid}`, secret: 'a secret of at least sixteen bytes' };
  const tunnel = await (await connected()).open({ protocol: 'p2p', ...p2p, localPort: echo.port });
  await profile.logIn(account.email);
  const page = await profile.tab(`/tunnels/${tunnel.tunnelId}`);
  await page.getByRole('heading', { name: p2p.p2pName, level: 1 }).waitFor();
  await page.getByText(`tunnel p2p connect ${p2p.p2pName}`).waitFor();

  const relayed = await (await connected()).connectPeer({ ...p2p, direct: false });
  const direct = await (await connected()).connectPeer(p2p);
  const rowOf = (text: string) => page.getByRole('row').filter({ hasText: text });
  await rowOf('direct paths are switched off').getByText('relay', { exact: true }).waitFor();
  await rowOf('between the two clients').getByText('direct', { exact: true }).waitFor();
  expect(await rowOf('between the two clients').innerText()).toMatch(/\d ms/);
  expect(await page.getByText('Direct traffic is free').count()).toBeGreaterThan(0);
  await expectForEverybody(page);

  const dismiss = rowOf('direct paths are switched off').getByRole('button', { name: /^Disconnect the peer at 127/ });
  await dismiss.click();
  await page.getByRole('button', { name: 'Cancel' }).click();
  expect(relayed.path).toBe('relay');
  await dismiss.press('Enter');
  await page.getByText("The peer can't reconnect for 60 seconds").waitFor();
  await page.getByRole('button', { name: 'Disconnect peer' }).click();
  await rowOf('direct paths are switched off').waitFor({ state: 'detached' });
  await rowOf('between the two clients').waitFor();
  expect(direct.path).toBe('direct');
});

it('the New tunnel dialog shows the commands of every protocol', async ({ profile, stack }) => {
  const account = await Account.signUp(stack, 'kinds');
  await profile.logIn(account.email);
  const page = await profile.tab('/tunnels');
  await page.getByRole('button', { name: 'New tunnel' }).click();
  const dialog = page.getByRole('dialog');
  for (const words of [
    'http 3000',
    'files ./public',
    'tcp 5432',
    'tls 8443',
    'udp 27015',
    'p2p publish office-db 5432',
  ]) {
    await dialog.getByText(`tunnel ${words}`).waitFor();
  }
  await page.keyboard.press('Escape');
  await page.getByRole('radio', { name: 'P2P' }).click();
  await page.getByText('No P2P tunnels yet.').waitFor();
  await page.getByText('p2p connect office-db --listen 15432').waitFor();
});
