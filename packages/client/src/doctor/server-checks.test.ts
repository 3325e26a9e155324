// Doctor steps on the way to the edge that a complete run rarely reaches: name lookups, servers without a date, and steps after a failed
// step.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { checkOptions } from '../options.ts';
import { ServerChecks, toProblem } from './server-checks.ts';

const cleanups: (() => unknown)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

const never = new AbortController().signal;
const wayTo = (server: string, more: object = {}): ServerChecks =>
  new ServerChecks(checkOptions({ server, token: 'tnl_key', ...more }), true);

/** Starts a web server with `date` as its Date header, or without a Date header if null. */
const startClock = async (date: string | null): Promise<string> => {
  const server = createServer((_, response) => {
    response.sendDate = false;
    if (date !== null) response.setHeader('date', date);
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(
    () => server.closeAllConnections(),
    () => server.close(),
  );
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
};

it('a host name is looked up locally unless a proxy resolves it; an IP address needs no lookup', async () => {
  expect(await wayTo('127.0.0.1:1').lookUp(never)).toEqual({ state: 'address' });
  const found = await wayTo('localhost:1').lookUp(never);
  expect(found).toMatchObject({ state: 'resolved', host: 'localhost' });
  expect(found).toHaveProperty(['addresses', 0]);
  const proxied = (proxy: string) => wayTo('localhost:1', { proxy }).lookUp(never);
  expect(await proxied('http://127.0.0.1:9')).toEqual({ state: 'by-proxy' });
  expect(await proxied('socks5h://127.0.0.1:9')).toEqual({ state: 'by-proxy' });
  expect(await proxied('socks5://127.0.0.1:9')).toMatchObject({ state: 'resolved' });
  const given = await wayTo('localhost:1').lookUp(AbortSignal.abort(new Error('stopped by hand')));
  expect(given).toEqual({ state: 'failed', host: 'localhost', reason: 'stopped by hand' });
});

it('a server with a missing or unreadable date is not compared with the clock', async () => {
  const silent = await startClock(null);
  const odd = await startClock('yesterday');
  expect(await wayTo(silent).askTime(never)).toEqual({ aheadMs: null });
  expect(await wayTo(odd).askTime(never)).toEqual({ aheadMs: null });
  const exact = await startClock(new Date().toUTCString());
  const { aheadMs } = await wayTo(exact).askTime(never);
  expect(Math.abs(aheadMs ?? Number.NaN)).toBeLessThan(30_000);
});

it('later steps report only what was measured when an earlier step failed', async () => {
  const way = wayTo('127.0.0.1:1');
  await expect(way.authenticate(never)).rejects.toMatchObject({ code: 'CLIENT_CLOSED' });
  await expect(way.openCarriers(never)).rejects.toMatchObject({ code: 'CLIENT_CLOSED' });
  expect(await way.ping(never)).toEqual({ control: [], carrier: [] });
  expect(await way.askUdp(never)).toMatchObject({ state: 'not-offered' });
  expect(way.nat).toBeNull();
  way.close();
});

it('an unexpected error is shown with its own message', () => {
  expect(toProblem(new Error('the cable bit'))).toEqual({ message: 'the cable bit', hint: 'Run the doctor again.' });
});
