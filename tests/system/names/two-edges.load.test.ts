// Tests of a platform with two remote edges: a name belongs to the same account on both edges, whichever account asked first, even while
// the platform is down or was killed midway.
import { eventually } from '@tunnel/testkit';
import { afterAll, beforeAll, expect } from 'vitest';
import { Harness, it } from '../in-process.fixture.ts';
import { MANY_LOGINS, startEdgeOf } from '../platform-test.fixture.ts';
import type { Stack } from '../stack.fixture.ts';
import { fateOfVisit, freshName, inUse, keyHash, ROOMY_PLAN, reserved, SOON, Tenant } from './names.fixture.ts';

const ROUNDS = 20;
const PATIENCE_MS = 240_000;

const shared = new Harness();
let platform: Stack;
let west: Stack;
let east: Stack;
let ann: Tenant;
let ben: Tenant;
beforeAll(async () => {
  platform = await shared.stack({
    command: 'platform',
    programs: true,
    fixedPorts: true,
    tables: `${MANY_LOGINS}\n${ROOMY_PLAN}`,
  });
  [west, east] = await Promise.all([startEdgeOf(shared, platform, 'west'), startEdgeOf(shared, platform, 'east')]);
  [ann, ben] = await Promise.all([Tenant.signUp(platform, 'ann'), Tenant.signUp(platform, 'ben')]);
}, PATIENCE_MS);
afterAll(() => shared.close());

it('when two accounts race for a name, a single account wins and owns the name on both edges', async ({ harness }) => {
  const clients = await Promise.all([
    ann.enter(harness, west),
    ben.enter(harness, east),
    ann.enter(harness, east),
    ben.enter(harness, west),
  ]);
  const owners = new Set<string>();
  for (let round = 0; round < ROUNDS; round += 1) {
    const name = freshName('race');
    const said = await Promise.all(clients.map((client) => client.ask({ subdomain: name })));
    const [annsWest, bensEast, annsEast, bensWest] = said.map((one) => one === `ok ${name}`);
    const isAnns = annsWest === true || annsEast === true;
    const isBens = bensEast === true || bensWest === true;
    expect([isAnns, isBens].filter(Boolean)).toHaveLength(1);
    expect(said.filter((one) => one !== `ok ${name}`)).toEqual(
      said.filter((one) => one !== `ok ${name}`).map(() => inUse(name)),
    );
    owners.add(isAnns ? 'ann' : 'ben');
    const [winner, loser] = isAnns ? [ann, ben] : [ben, ann];
    expect(await winner.reservation(name)).toMatchObject({ state: 'held' });
    expect(await loser.reservation(name)).toBeUndefined();
    for (const edge of [west, east]) expect(await loser.ask(harness, edge, { subdomain: name })).toBe(inUse(name));
  }
  for (const client of clients) await client.leave();
}, 120_000);

it('when two accounts race to reserve a port, a single account wins and only the winner can use the port', async ({
  harness,
}) => {
  for (let round = 0; round < 10; round += 1) {
    const port = west.tcpPorts.to - round;
    const wanted = { kind: 'tcp', label: String(port), region_id: 'west' };
    const answers = await Promise.all([ann.reserve(wanted), ben.reserve(wanted), ann.reserve(wanted)]);
    const isAnns = answers[0]?.status === 201 || answers[2]?.status === 201;
    expect(answers.map(({ status }) => status).sort((a, b) => a - b)).toEqual(
      isAnns ? [200, 201, 409] : [201, 409, 409],
    );
    const [winner, loser] = isAnns ? [ann, ben] : [ben, ann];
    const ask = { protocol: 'tcp', remote_port: port };
    expect(await loser.ask(harness, west, ask)).toBe(`TUNNEL_PORT_IN_USE: port ${port} is already in use`);
    expect(await winner.ask(harness, west, ask)).toBe(`ok ${port}`);
  }
  // Ports belong to a region. With two regions, a reservation must name the region.
  expect((await ann.reserve({ kind: 'tcp' })).status).toBe(400);
  expect((await ann.reserve({ kind: 'tcp', region_id: 'nowhere' })).status).toBe(400);
}, 120_000);

it('a group of two accounts restarts in either order, on either edge', async ({ harness }) => {
  const name = freshName('pool');
  const member = { group: name, group_key_hash: keyHash('shared by both'), subdomain: name };
  for (const [first, second, edge] of [
    [ann, ben, west],
    [ben, ann, west],
    [ben, ann, east],
    [ann, ben, east],
  ] as const) {
    const one = await first.enter(harness, edge);
    const two = await second.enter(harness, edge);
    expect(await one.ask(member)).toBe(`ok ${name}`);
    expect(await two.ask(member)).toBe(`ok ${name}`);
    await one.leave();
    expect(await two.ask({ subdomain: freshName() })).toMatch(/^ok /);
    await two.leave();
  }
  expect(await ann.reservation(name)).toMatchObject({ state: 'held' });
  expect(await ben.reservation(name)).toBeUndefined();
}, 60_000);

it('a reserved name is known to both edges, and forgotten by both after its release', async () => {
  const name = freshName();
  const { id } = await reserved(ann, { kind: 'subdomain', label: name });
  for (const edge of [west, east])
    await eventually(async () => expect(await fateOfVisit(edge, name)).toBe('502 TUNNEL_AWAY'), SOON);
  expect((await ann.release(id)).status).toBe(204);
  for (const edge of [west, east])
    await eventually(async () => expect(await fateOfVisit(edge, name)).toBe('404 TUNNEL_NOT_FOUND'), SOON);
});

it(
  'while the platform is down, accounts can reopen their own names and get random names, but no new chosen names',
  async ({ harness }) => {
    const used = freshName('used');
    const kept = freshName('kept');
    const unknown = freshName('unknown');
    await reserved(ann, { kind: 'subdomain', label: kept });
    await eventually(async () => expect(await fateOfVisit(east, kept)).toBe('502 TUNNEL_AWAY'), SOON);
    // The two edges learn the keys of the two accounts before the platform stops.
    expect(await ann.ask(harness, west, { subdomain: used })).toBe(`ok ${used}`);
    expect(await ben.ask(harness, west, {})).toMatch(/^ok /);
    expect(await ann.ask(harness, east, {})).toMatch(/^ok /);
    expect(await ben.ask(harness, east, {})).toMatch(/^ok /);
    await platform.stop();
    const away = 'NAMES_AWAY: names cannot be checked right now';
    const refused = new RegExp(`^(?:${away}|TUNNEL_SUBDOMAIN_IN_USE: .*)$`);

    expect(await ann.ask(harness, west, { subdomain: used })).toBe(`ok ${used}`);
    expect(await ann.ask(harness, west, { subdomain: `a.${used}` })).toBe(`ok a.${used}`);
    for (const subdomain of [used, `a.${used}`, `*.${used}`, kept, `a.${kept}`, `*.${kept}`]) {
      expect(await ben.ask(harness, west, { subdomain })).toMatch(refused);
      const group = { subdomain, group: 'g', group_key_hash: keyHash('g') };
      expect(await ben.ask(harness, west, group)).toMatch(new RegExp(`^(?:${away}|GROUP_KEY_MISMATCH: .*)$`));
    }
    for (const edge of [west, east]) {
      expect(await ann.ask(harness, edge, { subdomain: kept })).toBe(`ok ${kept}`);
      expect(await fateOfVisit(edge, kept)).toBe('502 TUNNEL_AWAY');
      expect(await ben.ask(harness, edge, { subdomain: unknown })).toBe(away);
      expect(await ben.ask(harness, edge, {})).toMatch(/^ok /);
    }
    // The name is known even after a kill of the edge, because the edge stores it in its data directory.
    await west.kill();
    await west.start();
    await eventually(async () => expect(await fateOfVisit(west, kept)).toBe('502 TUNNEL_AWAY'), SOON);

    await platform.start();
    await eventually(
      async () => expect(await ben.ask(harness, west, { subdomain: unknown })).toBe(`ok ${unknown}`),
      SOON,
    );
    expect(await ann.ask(harness, east, { subdomain: unknown })).toBe(inUse(unknown));
    expect(await ben.ask(harness, east, { subdomain: used })).toBe(inUse(used));
  },
  PATIENCE_MS,
);

it(
  'a platform killed during many claims leaves no name with two owners',
  async ({ harness }) => {
    const names = Array.from({ length: 60 }, () => freshName('killed'));
    const clients = await Promise.all([ann.enter(harness, west), ben.enter(harness, east)]);
    const asked = clients.map((client) => Promise.all(names.map((subdomain) => client.ask({ subdomain }))));
    await eventually(async () => expect((await ann.reservations()).length).toBeGreaterThan(5), SOON).catch(() => {});
    await platform.kill();
    const [anns = [], bens = []] = await Promise.all(asked);
    await platform.start();
    await eventually(async () => expect(await ann.reservations()).toBeDefined(), SOON);
    for (const [at, name] of names.entries()) {
      const owners = [anns[at], bens[at]].filter((said) => said === `ok ${name}`);
      expect(owners.length).toBeLessThanOrEqual(1);
      const rows = await Promise.all([ann.reservation(name), ben.reservation(name)]);
      expect(rows.filter((row) => row !== undefined).length).toBeLessThanOrEqual(1);
      // An account that got the name from the edge also owns the name at the platform.
      if (anns[at] === `ok ${name}`) expect(rows[0]).toBeDefined();
      if (bens[at] === `ok ${name}`) expect(rows[1]).toBeDefined();
    }
    for (const client of clients) await client.cut();
  },
  PATIENCE_MS,
);
