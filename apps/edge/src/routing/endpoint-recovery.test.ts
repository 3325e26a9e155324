import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LeasedEndpoint, Owner } from '@tunnel/rules/tunnels';
import { createLogger } from '@tunnel/runtime';
import { eventually, FakeClock, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { quietJoins } from '../ingress/p2p/peer-joins.fixture.ts';
import { ENDPOINTS_FILE_ALIVE_MS, EndpointRecovery, RETURN_WINDOW_MS } from './endpoint-recovery.ts';
import { EndpointRegistry, NameRegistry } from './endpoints.ts';
import type { WantedGroup, WantedLease } from './registration.rules.ts';

const ALICE: Owner = { kind: 'account', accountId: 'alice' };
const BOB: Owner = { kind: 'account', accountId: 'bob' };
const SECRET = 'a'.repeat(64);
const KEY = 'b'.repeat(64);
const SHOP: LeasedEndpoint = { kind: 'name', name: 'shop' };
const PORT: LeasedEndpoint = { kind: 'port', transport: 'tcp', port: 7 };
const exactly = (endpoint: LeasedEndpoint): WantedLease =>
  endpoint.kind === 'port'
    ? { kind: 'port', transport: 'tcp', wanted: { kind: 'exact', port: endpoint.port } }
    : { kind: 'name', wanted: { kind: 'exact', name: endpoint.name } };

const LISTENERS = { listen: async () => 'listening' as const, close: async () => {} };

let folder: TemporaryDirectory;
let clock: FakeClock;
let path: string;
let lines: string[];
let runs: EndpointRecovery[];
beforeEach(async () => {
  folder = await temporaryDirectory();
  clock = new FakeClock();
  path = join(folder.path, 'edge-endpoints.jsonl');
  lines = [];
  runs = [];
});
afterEach(async () => {
  // A run that still writes after its folder is deleted would log an error during the next test.
  for (const run of runs) await run.stop();
  await folder.close();
});

/** Starts a run of an edge. A run that is not stopped counts as crashed. */
const startRun = async () => {
  const endpoints = new EndpointRegistry({
    listeners: { tcp: LISTENERS, udp: LISTENERS },
    portRanges: { tcp: { from: 1, to: 9 }, udp: { from: 1, to: 9 } },
    accountShare: 1,
    names: new NameRegistry({ clock, random: () => 0.5 }),
    peerNames: quietJoins(clock),
    clock,
    random: () => 0,
  });
  const said = lines;
  const keepLine = (fields: object, message: string): void => void said.push(`${message} ${JSON.stringify(fields)}`);
  const logger = Object.assign(createLogger({ level: 'silent', format: 'json' }), { error: keepLine });
  const recovery = new EndpointRecovery({ dataDir: folder.path, endpoints, clock, logger });
  runs.push(recovery);
  await recovery.start();
  const open = async (tunnelId: string, wanted: WantedLease, owner: Owner, secretHash: string): Promise<string> => {
    recovery.claim(tunnelId, wanted, owner, secretHash);
    return endpoints.open(tunnelId, wanted, { owner, groupKeyHash: null }).then(
      (endpoint) => {
        recovery.opened({ tunnelId, owner, endpoint, group: null }, secretHash);
        return 'opened';
      },
      (error: { code: string }) => error.code,
    );
  };
  return { endpoints, recovery, open };
};

const untilWritten = (text: string): Promise<void> =>
  eventually(() => expect(readFileSync(path, 'utf8').trim().split('\n').at(-1)).toContain(text));

describe('after a crash of the edge', () => {
  it('a name and a port are held for their client for 30 s, and refused to other clients', async () => {
    const before = await startRun();
    expect(await before.open('t1', exactly(SHOP), ALICE, SECRET)).toBe('opened');
    expect(await before.open('t2', exactly(PORT), ALICE, SECRET)).toBe('opened');
    await untilWritten('t2');
    const { open, recovery, endpoints } = await startRun();
    expect(endpoints.names.isHeld({ kind: 'name', name: 'shop' })).toBe(true);
    expect(recovery.isClaimant(ALICE, SECRET)).toBe(true);
    expect(await open('x1', exactly(SHOP), BOB, SECRET)).toBe('TUNNEL_SUBDOMAIN_IN_USE');
    expect(await open('x2', exactly(PORT), ALICE, KEY)).toBe('TUNNEL_PORT_IN_USE');
    expect(await open('t3', exactly(SHOP), ALICE, SECRET)).toBe('opened');
    expect(await open('t4', exactly(PORT), ALICE, SECRET)).toBe('opened');
  });

  it('a custom domain is held for its client, and stays marked as passing TLS through', async () => {
    const domain: WantedLease = { kind: 'domain', wanted: { kind: 'exact', name: 'shop.example.org' } };
    const before = await startRun();
    const endpoint = { kind: 'domain', name: 'shop.example.org', passesTls: true } as const;
    before.recovery.opened({ tunnelId: 't1', owner: ALICE, endpoint, group: null }, SECRET);
    await untilWritten('t1');
    const { open, endpoints } = await startRun();
    expect([endpoints.names.isHeld(endpoint), endpoints.names.isHeldForTls(endpoint)]).toEqual([true, true]);
    expect(await open('x1', domain, BOB, SECRET)).toBe('TUNNEL_DOMAIN_IN_USE');
    expect(await open('t2', domain, ALICE, SECRET)).toBe('opened');
    expect(endpoints.names.isHeldForTls(endpoint)).toBe(false);
  });

  it('a p2p name is held for its publisher for 30 s, even against another program with the p2p secret', async () => {
    const offer = { name: 'office-db', secretHash: KEY, service: 'tcp', allow: 'account' } as const;
    const officeDb: WantedLease = { kind: 'peer-name', wanted: { kind: 'exact', name: 'office-db' }, offer };
    const before = await startRun();
    expect(await before.open('t1', officeDb, ALICE, SECRET)).toBe('opened');
    await untilWritten('t1');
    const { open } = await startRun();
    expect(await open('x1', officeDb, ALICE, KEY)).toBe('TUNNEL_P2P_NAME_IN_USE');
    expect(await open('t2', officeDb, ALICE, SECRET)).toBe('opened');
    const third = await startRun();
    await clock.advance(RETURN_WINDOW_MS);
    expect(await third.open('x2', officeDb, BOB, KEY)).toBe('opened');
  });

  it('a client with the group key restarts the group on its old port, even without asking for the port', async () => {
    const before = await startRun();
    const group = { name: 'pool', keyHash: KEY, endpoint: PORT } as never;
    const endpoint = { kind: 'member', groupId: 'g1' } as const;
    before.recovery.opened({ tunnelId: 't1', owner: ALICE, endpoint, group }, SECRET);
    await untilWritten('t1');
    const { recovery, endpoints, open } = await startRun();
    expect(await open('x', exactly(PORT), ALICE, SECRET)).toBe('TUNNEL_PORT_IN_USE');
    const anyPort = { kind: 'port', transport: 'tcp', wanted: { kind: 'any' } } as const;
    const wanted: WantedGroup = { protocol: 'tcp', name: 'pool', keyHash: KEY, endpoint: anyPort };
    expect(recovery.claimForGroup('g0', { ...wanted, keyHash: SECRET }, BOB)).toBe(anyPort);
    const begunAt = recovery.claimForGroup('g2', wanted, BOB) as WantedLease;
    expect(await endpoints.open('g2', begunAt, { owner: ALICE, groupKeyHash: KEY })).toEqual(PORT);
  });

  it('held endpoints are free after 30 s and removed from the file', async () => {
    const before = await startRun();
    await before.open('t1', exactly(SHOP), ALICE, SECRET);
    await untilWritten('t1');
    const { open } = await startRun();
    await clock.advance(RETURN_WINDOW_MS - 1);
    expect(await open('x1', exactly(SHOP), BOB, KEY)).toBe('TUNNEL_SUBDOMAIN_IN_USE');
    await clock.advance(ENDPOINTS_FILE_ALIVE_MS);
    await eventually(() => expect(readFileSync(path, 'utf8')).toContain('"closed","tunnel_id":"t1"'));
    expect(await open('x1', exactly(SHOP), BOB, KEY)).toBe('opened');
  });

  it('a second crash before or during the client’s return does not end the hold', async () => {
    const before = await startRun();
    await before.open('t1', exactly(SHOP), ALICE, SECRET);
    await untilWritten('t1');
    const second = await startRun();
    await untilWritten('alive');
    // The returning client has claimed the endpoint, which is still being opened.
    second.recovery.claim('t2', exactly(SHOP), ALICE, SECRET);
    await clock.advance(ENDPOINTS_FILE_ALIVE_MS);
    await untilWritten('alive');
    const { open } = await startRun();
    expect(await open('x', exactly(SHOP), BOB, KEY)).toBe('TUNNEL_SUBDOMAIN_IN_USE');
    expect(await open('t3', exactly(SHOP), ALICE, SECRET)).toBe('opened');
  });

  it('nothing is held for a run that ended 30 s ago', async () => {
    const before = await startRun();
    await before.open('t1', exactly(SHOP), ALICE, SECRET);
    await untilWritten('t1');
    clock.setWallClock(clock.now() + RETURN_WINDOW_MS);
    const { open } = await startRun();
    expect(await open('x', exactly(SHOP), BOB, KEY)).toBe('opened');
  });

  it('an endpoint released before the crash is free', async () => {
    const before = await startRun();
    await before.open('t1', exactly(SHOP), ALICE, SECRET);
    // A late close of an endpoint that the tunnel does not have is ignored.
    before.recovery.closed('t1', PORT);
    await before.open('t2', exactly(PORT), ALICE, SECRET);
    before.recovery.closed('t2', PORT);
    await untilWritten('closed');
    const { open } = await startRun();
    expect(await open('x', exactly(PORT), BOB, KEY)).toBe('opened');
    expect(await open('x', exactly(SHOP), BOB, KEY)).toBe('TUNNEL_SUBDOMAIN_IN_USE');
  });
});

describe('after a clean stop of the edge', () => {
  it('endpoints are held for any client of their account, and refused to other accounts', async () => {
    const before = await startRun();
    await before.open('t1', exactly(SHOP), ALICE, SECRET);
    before.recovery.freeze();
    // A stopping edge closes every tunnel.
    before.recovery.closed('t1', SHOP);
    await before.recovery.stop();
    const { open } = await startRun();
    expect(await open('x', exactly(SHOP), BOB, SECRET)).toBe('TUNNEL_SUBDOMAIN_IN_USE');
    expect(await open('t2', exactly(SHOP), ALICE, KEY)).toBe('opened');
    expect(clock.pendingTimers).toBe(1);
  });
});

/** Content of an endpoints file with a valid line, changed by the given fields. */
const fileWith = (fields: object): string => {
  const open = { kind: 'open', tunnel_id: 't', account_id: 'a', secret_hash: SECRET, endpoint: { name: 'shop' } };
  const said = [
    { kind: 'endpoints', version: 1 },
    { ...open, ...fields },
    { kind: 'alive', at: 1 },
  ];
  return `${said.map((line) => JSON.stringify(line)).join('\n')}\n`;
};

describe('the endpoints file', () => {
  it('of an old run is read without an error', async () => {
    writeFileSync(path, fileWith({}));
    await startRun();
    expect(lines).toEqual([]);
  });

  it('with a torn last line is read up to this line', async () => {
    const before = await startRun();
    await before.open('t1', exactly(SHOP), ALICE, SECRET);
    // The run is stopped first, because it would otherwise write behind the torn line.
    await before.recovery.stop();
    writeFileSync(path, `${readFileSync(path, 'utf8')}{"kind":"clos`);
    const { open } = await startRun();
    expect(await open('x', exactly(SHOP), BOB, KEY)).toBe('TUNNEL_SUBDOMAIN_IN_USE');
    expect(lines).toEqual([]);
  });

  it.each([
    ['empty', ''],
    ['no header', '{"kind":"alive","at":1}\n'],
    ['another version', '{"kind":"endpoints","version":2}\n'],
    ['a broken line in the middle', '{"kind":"endpoints","version":1}\n\u0000\u0000\n{"kind":"alive","at":1}\n'],
    ['a line of an unknown kind', '{"kind":"endpoints","version":1}\n{"kind":"moved","at":1}\n'],
    ['an invalid time', '{"kind":"endpoints","version":1}\n{"kind":"alive","at":"x"}\n'],
    ['no time', '{"kind":"endpoints","version":1}\n{"kind":"stopped"}\n'],
    ['a line with a number', '{"kind":"endpoints","version":1}\n7\n'],
    ['an invalid endpoint', fileWith({ endpoint: { transport: 'tcp', port: 1.5 } })],
    ['no endpoint', fileWith({ endpoint: undefined })],
    ['an invalid hash', fileWith({ secret_hash: 'secret' })],
    ['no owner', fileWith({ account_id: undefined })],
  ])('with unusable content (%s) is reported once, ignored and replaced', async (_, text) => {
    writeFileSync(path, text);
    const { open } = await startRun();
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('cannot read');
    expect(await open('t1', exactly(SHOP), BOB, KEY)).toBe('opened');
    await untilWritten('t1');
    expect(await (await startRun()).open('x', exactly(SHOP), ALICE, SECRET)).toBe('TUNNEL_SUBDOMAIN_IN_USE');
    expect(lines).toHaveLength(1);
  });

  it('that cannot be written is reported once, retried, and complete once writing works', async () => {
    mkdirSync(path);
    const { open } = await startRun();
    await open('t1', exactly(SHOP), ALICE, SECRET);
    await eventually(() => expect(lines).toHaveLength(2));
    expect(lines[1]).toContain('cannot write');
    rmdirSync(path);
    // The retry may write the whole file after the first sign of life, and the next sign follows a period later.
    await eventually(async () => {
      await clock.advance(ENDPOINTS_FILE_ALIVE_MS);
      expect(readFileSync(path, 'utf8')).toContain('"kind":"alive"');
    });
    expect(readFileSync(path, 'utf8')).toContain('"tunnel_id":"t1"');
    expect(lines).toHaveLength(2);
  });
});
