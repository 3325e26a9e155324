// Tests of `tunnel reserve`, `reservations` and `release` as used by two people side by side. Commands and stack run inside the test
// process.
import type { Reservation } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import { Computer } from './computer.fixture.ts';
import { type Answering, askHttp, endpointOf, startWeb } from './http-tunnels.fixture.ts';
import { it, startEdgeOf } from './platform-test.fixture.ts';

const SOON = { timeoutMs: 20_000 };

const hello: Answering = (_, response) => {
  response.end('hello');
};

const listOf = (computer: Computer): Promise<Reservation[]> => computer.json(['reservations']);

it('a reserved name is refused to other accounts, can be used and listed by its owner, and is released only on confirmation', async ({
  harness,
  stack,
}) => {
  const ann = await Computer.of(harness, stack, 'ann');
  const bob = await Computer.of(harness, stack, 'bob');
  expect((await ann.tunnel(['reservations'])).out).toBe('no reservations\n  Reserve a name: tunnel reserve shop\n');
  const made = await ann.tunnel(['reserve', 'Card']);
  expect([made.code, made.out]).toEqual([
    0,
    expect.stringMatching(/^Reserved http:\/\/card\.localhost:\d+\n {2}Use it: tunnel http 3000 --subdomain card\n$/),
  ]);
  const [reserved] = await listOf(ann);
  expect(reserved).toMatchObject({ kind: 'subdomain', label: 'card', state: 'reserved', active_tunnels: 0 });
  // A repeated reservation returns the same reservation, and --json prints the response of the platform.
  expect(JSON.parse((await ann.tunnel(['reserve', 'card', '--json'])).out)).toEqual(reserved);
  expect(await ann.person.get('/reservations')).toEqual([reserved]);

  const refused = await bob.tunnel(['reserve', 'card']);
  expect([refused.code, refused.err]).toEqual([
    2,
    "tunnel: subdomain 'card' is already in use. Choose another name.\n",
  ]);
  const web = harness.use(await startWeb(hello));
  const taken = await harness.run(['http', String(web.port), '--subdomain', 'card', '--json'], { home: bob.home });
  expect(await taken.exitCode()).toBe(4);

  const tunnel = await harness.run(['http', String(web.port), '--subdomain', 'card', '--json'], { home: ann.home });
  const endpoint = endpointOf((await tunnel.ready()).public_url);
  expect((await askHttp(endpoint)).text).toBe('hello');
  expect((await ann.tunnel(['reservations'])).out).toMatch(
    /^card {2}reserved {2}\S+ {2}in use by 1 tunnel\n1 of 3 reserved\n$/,
  );
  tunnel.signal('SIGTERM');
  expect(await tunnel.exitCode()).toBe(0);
  await eventually(async () => {
    expect((await listOf(ann))[0]).toMatchObject({ state: 'reserved', active_tunnels: 0, expires_at: null });
    expect((await askHttp(endpoint)).status).toBe(502);
  }, SOON);

  const asked = await ann.tunnel(['release', 'card']);
  expect([asked.code, asked.err]).toEqual([2, 'tunnel: this command needs a terminal. Add --yes to confirm.\n']);
  expect(await bob.tunnel(['release', 'card', '--yes'])).toMatchObject({
    code: 2,
    err: "tunnel: you have no reservation 'card'. List your reservations: `tunnel reservations`.\n",
  });
  expect((await ann.tunnel(['release', 'card', '--yes'])).out).toMatch(
    /^Released card\. You can take it back until 20\S+ \S+: tunnel reserve card\n$/,
  );
  expect(await listOf(ann)).toMatchObject([{ state: 'released', expires_at: expect.any(String) }]);
  expect((await bob.tunnel(['reserve', 'card'])).code).toBe(2);
  expect((await ann.tunnel(['reserve', 'card'])).code).toBe(0);
});

it('a port can be chosen by the platform or the user; invalid reservations and reservations over the plan limit are refused', async ({
  harness,
  stack,
}) => {
  const ann = await Computer.of(harness, stack, 'ports');
  const any = JSON.parse((await ann.tunnel(['reserve', '--udp', '--json'])).out) as Reservation;
  expect(any).toMatchObject({ kind: 'udp', region_id: 'local', state: 'reserved' });
  const again = await ann.tunnel(['reserve', '--tcp', any.label, '--region', 'local']);
  expect(again).toMatchObject({ code: 0, out: expect.stringContaining(`--remote-port ${any.label}`), err: '' });
  for (const [args, words] of [
    [['www'], "subdomain 'www' is not valid: it is reserved"],
    [['--tcp', '1'], 'port 1 is not allowed: use '],
    [['--tcp', '--region', 'moon'], 'unknown region "moon" (available: local)'],
    [['a.card-of-ports'], "'a.card-of-ports' needs no reservation"],
  ] as const) {
    expect(await ann.tunnel(['reserve', ...args])).toMatchObject({ code: 2, err: expect.stringContaining(words) });
  }
  expect((await ann.tunnel(['reserve', `one-of-${process.pid}`])).code).toBe(0);
  expect(await ann.tunnel(['reserve', `more-of-${process.pid}`])).toMatchObject({
    code: 2,
    err: expect.stringMatching(/^tunnel: reservation limit of 3 reached\n {2}Release an unused name or port/),
  });
  expect((await ann.tunnel(['release', `udp/${any.label}`, '--yes'])).code).toBe(0);
  expect((await ann.tunnel(['reserve', `more-of-${process.pid}`])).code).toBe(0);

  expect((await ann.tunnel(['logout'])).code).toBe(0);
  expect(await ann.tunnel(['reserve', 'card'])).toMatchObject({ code: 3 });
});

// Must stay the last test of the file, because it adds a second region to the shared stack.
it('a reserved port belongs to a single region, which must be named if there are several; a reserved name belongs to all regions', async ({
  harness,
  stack,
}) => {
  await startEdgeOf(harness, stack, 'fra');
  const ann = await Computer.of(harness, stack, 'regions');
  await eventually(
    async () =>
      expect(await ann.tunnel(['reserve', '--tcp'])).toMatchObject({
        code: 2,
        err: expect.stringMatching(
          /^tunnel: --region is required because there are several regions \(.*fra.*\)\n {2}See /,
        ),
      }),
    SOON,
  );
  const port = JSON.parse((await ann.tunnel(['reserve', '--tcp', '--region', 'fra', '--json'])).out) as Reservation;
  expect(port).toMatchObject({ kind: 'tcp', region_id: 'fra', state: 'reserved' });
  expect(await ann.tunnel(['release', `tcp/${port.label}`, '--region', 'local', '--yes'])).toMatchObject({
    code: 2,
    err: `tunnel: you do not have tcp/${port.label} in the region 'local'. Use --region fra.\n`,
  });
  expect((await ann.tunnel(['release', `tcp/${port.label}`, '--yes'])).code).toBe(0);
  expect((await ann.tunnel(['reserve', `everywhere-${process.pid}`])).code).toBe(0);
  expect((await listOf(ann)).find(({ kind }) => kind === 'subdomain')).toMatchObject({ region_id: null });
});
