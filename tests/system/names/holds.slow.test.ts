// Tests of how long a name belongs to an account: after the 30 s of a lost client, and with hold days and grace days set to 0.
import { eventually, FastClock } from '@tunnel/testkit';
import { describe, expect } from 'vitest';
import { itWith } from '../in-process.fixture.ts';
import { startPlatform } from '../platform-test.fixture.ts';
import { freshName, inUse, ROOMY_PLAN, reserved, SOON, Tenant } from './names.fixture.ts';

/** Time after the loss of a client in milliseconds. The edge keeps the names of a lost client for 30 s. */
const LOST_MS = 40_000;

/** Clock at normal speed, because an edge gives its platform only 5 s to respond. The tests pass longer times explicitly. */
const clock = new FastClock(1);
const it = itWith({ clock });
const SPEED = 20;

describe('the name of a lost client', () => {
  it('is still refused to another account after 40 s, and returns to its own account', async ({ harness }) => {
    const stack = await startPlatform(harness, { tables: ROOMY_PLAN });
    const ann = await Tenant.signUp(stack, 'ann');
    const ben = await Tenant.signUp(stack, 'ben');
    const name = freshName();
    const lost = await ann.enter(harness, stack);
    expect(await lost.ask({ subdomain: name })).toBe(`ok ${name}`);
    await lost.cut();
    expect(await ben.ask(harness, stack, { subdomain: name })).toBe(inUse(name));
    await clock.pass(LOST_MS, SPEED);
    // If the machine stalled meanwhile, the edge may have lost its platform for a moment.
    await eventually(async () => expect(await ben.ask(harness, stack, { subdomain: name })).toBe(inUse(name)), SOON);
    expect(await ann.ask(harness, stack, { subdomain: name })).toBe(`ok ${name}`);
  });

  it('is free for any account after 30 s, and not before, if hold_days and grace_days are 0', async ({ harness }) => {
    const stack = await startPlatform(harness, { tables: `${ROOMY_PLAN}\n[names]\nhold_days = 0\ngrace_days = 0` });
    const ann = await Tenant.signUp(stack, 'ann');
    const ben = await Tenant.signUp(stack, 'ben');
    const name = freshName();
    const lost = await ann.enter(harness, stack);
    expect(await lost.ask({ subdomain: name })).toBe(`ok ${name}`);
    await lost.cut();
    const cutAt = clock.monotonic();
    expect(await ben.ask(harness, stack, { subdomain: name })).toBe(inUse(name));
    await clock.pass(28_000, SPEED);
    await eventually(async () => expect(await ben.ask(harness, stack, { subdomain: name })).toBe(`ok ${name}`), {
      timeoutMs: 60_000,
      intervalMs: 100,
    });
    expect(clock.monotonic() - cutAt).toBeGreaterThan(29_000);
    expect(await ann.reservation(name)).toBeUndefined();
  });
});

describe('a released name', () => {
  it('or port is free for any account at once if grace_days is 0', async ({ harness }) => {
    const stack = await startPlatform(harness, { tables: `${ROOMY_PLAN}\n[names]\ngrace_days = 0` });
    const ann = await Tenant.signUp(stack, 'ann');
    const ben = await Tenant.signUp(stack, 'ben');
    const name = freshName();
    const { id } = await reserved(ann, { kind: 'subdomain', label: name });
    expect(await ben.ask(harness, stack, { subdomain: name })).toBe(inUse(name));
    expect((await ann.release(id)).status).toBe(204);
    await eventually(async () => expect(await ben.ask(harness, stack, { subdomain: name })).toBe(`ok ${name}`), SOON);
    expect(await ann.ask(harness, stack, { subdomain: name })).toBe(inUse(name));

    const port = stack.tcpPorts.to;
    const reservedPort = await reserved(ann, { kind: 'tcp', label: String(port) });
    expect((await ann.release(reservedPort.id)).status).toBe(204);
    const ask = { protocol: 'tcp', remote_port: port };
    await eventually(async () => expect(await ben.ask(harness, stack, ask)).toBe(`ok ${port}`), SOON);
  });
});
