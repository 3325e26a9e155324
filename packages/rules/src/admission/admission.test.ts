import { describe, expect, it } from 'vitest';
import {
  Admission,
  type ConnectionKind,
  type Entry,
  type HeldConnection,
  REFUSALS_BEING_TOLD,
  type Ticket,
  UNAUTHENTICATED_PER_NETWORK,
} from './admission.ts';

const newAdmission = (limits: Partial<Admission['limits']> = {}, perNetwork = 1000): Admission =>
  new Admission({ limits: { visitors: 100, control: 1000, api: 10, ...limits }, perNetwork });

const admitted = (entry: Entry): Ticket => {
  if (entry.kind !== 'admitted') throw new Error(entry.reason);
  return entry.ticket;
};

const reasonOf = (entry: Entry): string => (entry.kind === 'refused' ? entry.reason : 'admitted');

const fill = (admission: Admission, kind: ConnectionKind, network: string, count: number, nowMs = 0): Ticket[] =>
  Array.from({ length: count }, () => admitted(admission.enter(kind, network, nowMs)));

const held = (isIdle: boolean, activeAtMs: number): HeldConnection => ({
  isIdle,
  activeAtMs,
  describe: () => ({ phase: 'test', waitsFor: 'nothing' }),
  close: () => {},
});

describe('visitor connections', () => {
  it('that are silent count toward the limit of their network, across all ports', () => {
    const admission = newAdmission({}, 3);
    for (const kind of ['http', 'https', 'tcp'] as const) admitted(admission.enter(kind, 'a', 0));
    expect(admission.enter('tcp', 'a', 0)).toMatchObject({ kind: 'refused', reason: 'address-limit', limit: 3 });
    expect(reasonOf(admission.enter('tcp', 'b', 0))).toBe('admitted');
    expect(admission.refusals.get('address-limit')).toBe(1);
  });

  it('through a trusted proxy count per request, toward the network of each visitor', () => {
    const admission = newAdmission({}, 2);
    for (let n = 0; n < 5; n += 1) admitted(admission.enter('http', null, 0));
    expect([admission.requestBegins('a'), admission.requestBegins('a'), admission.requestBegins('a')]).toEqual([
      true,
      true,
      false,
    ]);
    expect(reasonOf(admission.enter('http', 'a', 0))).toBe('address-limit');
    admission.requestOver('a');
    expect(reasonOf(admission.enter('http', 'a', 0))).toBe('admitted');
  });

  it('at a full share: a newcomer evicts the longest-idle connection of the network with the most connections', () => {
    const admission = newAdmission({ visitors: 12 });
    fill(admission, 'http', 'b', 2);
    const [first, second, third, ...others] = fill(admission, 'http', 'a', 10, 5);
    if (first) first.held = held(false, 0);
    if (second) second.held = held(true, 30);
    if (third) third.held = held(true, 20);
    for (const ticket of others) ticket.held = held(true, 40);
    expect(admission.enter('http', 'c', 50)).toMatchObject({ kind: 'admitted', shed: third });
    expect([admission.ofNetwork('a'), admission.used.visitors, admission.refusals.get('shed')]).toEqual([9, 12, 1]);
  });

  it('at a full share: while every network has only a few, the longest-idle connection of all is evicted', () => {
    const admission = newAdmission({ visitors: 6 });
    const [oldest] = fill(admission, 'http', 'b', 2);
    fill(admission, 'http', 'a', 4, 5);
    expect(admission.enter('http', 'a', 50)).toMatchObject({ kind: 'admitted', shed: oldest });
  });

  it('among networks of equal size: idle connections are evicted, busy ones stay, and the newcomer gets visitors-full', () => {
    const admission = newAdmission({ visitors: 2 });
    const [first] = fill(admission, 'http', 'a', 1);
    const [second] = fill(admission, 'http', 'b', 1);
    const newcomer = admission.enter('http', 'c', 10);
    expect(newcomer).toMatchObject({ kind: 'admitted', shed: first });
    for (const ticket of [second, admitted(newcomer)]) if (ticket) ticket.held = held(false, 10);
    expect(admission.enter('http', 'd', 20)).toMatchObject({ kind: 'refused', reason: 'visitors-full', limit: 2 });
  });

  it('that are busy are evicted only for a network that holds fewer even after that', () => {
    const admission = newAdmission({ visitors: 3 });
    const tickets = fill(admission, 'tcp', 'a', 3);
    tickets.forEach((ticket, n) => {
      ticket.held = held(false, 10 - n);
    });
    expect(admission.enter('tcp', 'b', 20)).toMatchObject({ kind: 'admitted', shed: tickets[2] });
    const [other] = [...admission.tickets].filter(({ network }) => network === 'b');
    if (other) other.held = held(false, 20);
    expect(reasonOf(admission.enter('tcp', 'b', 30))).toBe('visitors-full');
  });

  it('that are busy in the largest network stay while other networks have idle ones', () => {
    const admission = newAdmission({ visitors: 30 });
    const office = fill(admission, 'http', 'office', 20);
    for (const ticket of office) ticket.held = held(false, 0);
    const [oldest] = fill(admission, 'http', 'b', 5, 10);
    fill(admission, 'http', 'c', 5, 20);
    expect(admission.enter('http', 'd', 50)).toMatchObject({ kind: 'admitted', shed: oldest });
    // A newcomer of the largest network itself is refused.
    expect(reasonOf(admission.enter('http', 'office', 50))).toBe('visitors-full');
  });

  it('of a trusted proxy are evicted when idle, never when busy', () => {
    const admission = newAdmission({ visitors: 2 });
    const proxied = [admitted(admission.enter('http', null, 0)), admitted(admission.enter('http', null, 0))];
    for (const ticket of proxied) ticket.held = held(false, 0);
    expect(reasonOf(admission.enter('http', 'a', 10_000))).toBe('visitors-full');
    if (proxied[1]) proxied[1].held = held(true, 9999);
    expect(admission.enter('http', 'a', 10_000)).toMatchObject({ kind: 'admitted', shed: proxied[1] });
  });

  it('at a full share leave the shares of control, REST and metrics connections free', () => {
    const admission = newAdmission({ visitors: 2 });
    fill(admission, 'http', 'a', 2);
    expect(['control', 'rest', 'metrics'].map((kind) => reasonOf(admission.enter(kind as 'rest', 'a', 0)))).toEqual([
      'admitted',
      'admitted',
      'admitted',
    ]);
  });
});

it("a flood on one API listener evicts that listener's callers first, and spares the other listeners", () => {
  const admission = newAdmission({ api: 10 });
  const [scrape] = fill(admission, 'metrics', 'a', 1);
  for (let n = 0; n < 100; n += 1) admission.enter('rest', `n${n % 50}`, n);
  expect([scrape?.isIn, admission.used.api]).toEqual([true, 10]);
});

describe('TCP ports of tunnels', () => {
  const openPorts = (admission: Admission, account: string, count: number): string[] =>
    Array.from({ length: count }, () => {
      const entry = admission.openPort(account);
      return entry.kind === 'refused' ? entry.reason : entry.kind;
    });

  it("reduce the visitors' share once the spare descriptors are used up", () => {
    const admission = new Admission({ limits: { visitors: 10, control: 10, api: 10 }, perNetwork: 100, spare: 2 });
    expect(openPorts(admission, 'alice', 2)).toEqual(['admitted', 'admitted']);
    const [oldest] = fill(admission, 'http', 'a', 10);
    expect(admission.openPort('alice')).toEqual({ kind: 'admitted', shed: oldest });
    expect(admission.used.visitors).toBe(9);
    admission.enter('http', 'b', 1);
    expect(admission.used.visitors).toBe(9);
    admission.closePort('alice');
    admission.enter('http', 'b', 1);
    expect(admission.used.visitors).toBe(10);
  });

  it('that are refused because every visitor is busy reserve no descriptor', () => {
    const admission = newAdmission({ visitors: 10 });
    const visitors = Array.from({ length: 10 }, () => admitted(admission.enter('http', null, 0)));
    for (const visitor of visitors) visitor.held = held(false, 0);
    expect(openPorts(admission, 'alice', 1)).toEqual(['all-taken']);
    admission.leave(visitors[0]!);
    expect(openPorts(admission, 'alice', 1)).toEqual(['admitted']);
  });

  it("take at most half of the visitors' share in total, and a quarter of that (at least 128) per account", () => {
    const admission = newAdmission({ visitors: 2000 });
    expect(openPorts(admission, 'alice', 251).at(-1)).toBe('holder-full');
    expect(openPorts(admission, 'operator', 651).at(-1)).toBe('nearly-all-taken');
    expect(openPorts(admission, 'bob', 1)).toEqual(['admitted']);
    expect(openPorts(newAdmission({ visitors: 500 }), 'alice', 129).at(-1)).toBe('holder-full');
    expect(admission.refusals.get('port-limit')).toBe(2);
  });
});

describe('refused connections', () => {
  it('get an answer only up to a limit at a time, except for tcp visitors, which get none', () => {
    const admission = newAdmission({ visitors: 1 });
    const [busy] = fill(admission, 'http', 'a', 1);
    if (busy) busy.held = held(false, 0);
    const told = Array.from({ length: REFUSALS_BEING_TOLD }, () => admission.enter('http', 'a', 0));
    expect(told.every((entry) => entry.kind === 'refused' && entry.ticket !== null)).toBe(true);
    expect(admission.enter('http', 'a', 0)).toMatchObject({ kind: 'refused', ticket: null });
    const [one] = told;
    if (one?.kind === 'refused' && one.ticket !== null) admission.leave(one.ticket);
    expect(admission.enter('tcp', 'a', 0)).toMatchObject({ kind: 'refused', ticket: null });
    expect(admission.enter('http', 'a', 0)).toMatchObject({ kind: 'refused', ticket: { isRefused: true } });
    expect(admission.used.visitors).toBe(1);
  });
});

describe('control connections', () => {
  it('of one network are limited until they authenticate: the newest is refused', () => {
    const admission = newAdmission();
    const tickets = fill(admission, 'control', 'a', UNAUTHENTICATED_PER_NETWORK);
    expect(admission.enter('control', 'a', 0)).toMatchObject({ kind: 'refused', reason: 'unauthenticated-limit' });
    expect(admission.identify(tickets[0] as Ticket, 'alice', 'session')).toBeNull();
    expect(reasonOf(admission.enter('control', 'a', 0))).toBe('admitted');
  });

  it('at a full share: a newcomer evicts the oldest unauthenticated connection of the largest network', () => {
    const admission = newAdmission({ control: 12 });
    fill(admission, 'control', 'b', 2);
    const [session, oldest] = fill(admission, 'control', 'a', 10);
    admission.identify(session as Ticket, 'alice', 'session');
    expect(admission.enter('control', 'c', 9)).toMatchObject({ kind: 'admitted', shed: oldest });
    expect(session?.isIn).toBe(true);
  });

  it('that one client dials at the same time are not evicted as the largest network among many strangers', () => {
    const admission = newAdmission({ control: 20 });
    for (let n = 0; n < 15; n += 1) fill(admission, 'control', `stranger ${n}`, 1);
    const client = fill(admission, 'control', 'a', 5);
    for (let n = 0; n < 15; n += 1) admission.enter('control', `stranger ${n}`, 1);
    expect(client.every(({ isIn }) => isIn)).toBe(true);
  });

  it('are refused with control-full once every existing connection has authenticated', () => {
    const admission = newAdmission({ control: 2 });
    fill(admission, 'control', 'a', 2).forEach((ticket, n) => admission.identify(ticket, `account ${n}`, 'carrier'));
    expect(reasonOf(admission.enter('control', 'b', 0))).toBe('control-full');
  });

  it('through a trusted proxy count toward the network that the proxy speaks for', () => {
    const admission = newAdmission();
    fill(admission, 'control', 'a', UNAUTHENTICATED_PER_NETWORK - 1);
    const one = admitted(admission.enter('control', null, 0));
    const two = admitted(admission.enter('control', null, 0));
    expect(admission.speaksFor(one, 'a')).toBeNull();
    expect(admission.speaksFor(two, 'a')?.reason).toBe('unauthenticated-limit');
    expect(reasonOf(admission.enter('control', 'a', 0))).toBe('unauthenticated-limit');
  });
});

describe('client sessions', () => {
  const identify = (admission: Admission, account: string, as: 'session' | 'replacement' | 'carrier') =>
    admission.identify(admitted(admission.enter('control', `${account} net`, 0)), account, as);
  const times = (count: number, act: () => unknown): unknown[] => [...new Set(Array.from({ length: count }, act))];

  it('of one account take at most a quarter of the share, and every admitted session can open its carriers, even many at once', () => {
    const admission = newAdmission({ control: 400 });
    expect(times(20, () => identify(admission, 'alice', 'session'))).toEqual([null]);
    expect(identify(admission, 'alice', 'session')).toBe('holder-full');
    expect(times(80, () => identify(admission, 'alice', 'carrier'))).toEqual([null]);
    expect(identify(admission, 'alice', 'carrier')).toBe('holder-full');
    expect(identify(admission, 'bob', 'session')).toBeNull();
    expect(admission.refusals.get('account-limit')).toBe(2);
  });

  it('of one account may hold 64 connections, even if the share is small', () => {
    const admission = newAdmission({ control: 100 });
    expect(times(12, () => identify(admission, 'alice', 'session'))).toEqual([null]);
    expect(identify(admission, 'alice', 'session')).toBe('holder-full');
  });

  it('that replace a lost connection are admitted at a full quota, up to a bound', () => {
    const admission = newAdmission({ control: 1000 });
    expect(times(50, () => identify(admission, 'alice', 'session'))).toEqual([null]);
    expect(times(50, () => identify(admission, 'alice', 'replacement'))).toEqual([null]);
    expect(identify(admission, 'alice', 'replacement')).toBe('holder-full');
    for (const ticket of [...admission.tickets]) admission.leave(ticket);
    expect(admission.ofAccount('alice')).toBe(0);
  });

  it('of the operator have no quota, and take all but the reserve for other accounts', () => {
    const admission = newAdmission({ control: 100 });
    expect(times(18, () => identify(admission, 'operator', 'session'))).toEqual([null]);
    expect(identify(admission, 'operator', 'session')).toBe('nearly-all-taken');
    expect(identify(admission, 'alice', 'session')).toBeNull();
  });

  it('are admitted only for accounts below the mean when the share is nearly full; carriers of existing sessions still are', () => {
    const admission = newAdmission({ control: 100 });
    for (let n = 0; n < 12; n += 1) identify(admission, 'alice', 'session');
    for (let n = 0; n < 6; n += 1) identify(admission, 'bob', 'session');
    expect(identify(admission, 'alice', 'session')).toBe('holder-full');
    expect(identify(admission, 'carol', 'session')).toBeNull();
    expect(identify(admission, 'bob', 'carrier')).toBeNull();
    expect(identify(admission, 'dave', 'session')).toBeNull();
    expect(identify(admission, 'erin', 'session')).toBe('all-taken');
  });

  it('of an account are admitted even if unauthenticated strangers fill the share', () => {
    const admission = newAdmission({ control: 100 });
    for (let n = 0; n < 200; n += 1) admission.enter('control', `n${n % 50}`, 0);
    expect(admission.used.control).toBe(100);
    expect(times(12, () => identify(admission, 'alice', 'session'))).toEqual([null]);
  });
});
