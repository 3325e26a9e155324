// Held request bodies: limits, memory accounting, and release on every ending.
import { expect, it } from 'vitest';
import { HeldBodies, POLICY_HELD_BODY_MS } from './held-bodies.ts';

const piece = (text: string): [Buffer, number, number] => [Buffer.from(`..${text}..`), 2, 2 + text.length];

it('a held body is returned byte for byte, and counted until it is released', async () => {
  const bodies = new HeldBodies();
  const held = bodies.hold(100, 0, 'account a');
  expect(held.writeBody(...piece('one '))).toBe(true);
  expect(held.writeBody(...piece('two'))).toBe(true);
  held.end([]);
  expect(await held.done).toEqual({ kind: 'body-held', body: Buffer.from('one two') });
  expect([held.body?.toString(), bodies.bytes]).toEqual(['one two', 7]);
  held.release();
  expect([held.body, bodies.bytes]).toEqual([null, 0]);
  held.release();
  expect(bodies.bytes).toBe(0);
});

it('a body over its limit is reported as too large and no longer held', async () => {
  const bodies = new HeldBodies();
  const held = bodies.hold(5, 0, 'account a');
  expect(held.writeBody(...piece('12345'))).toBe(true);
  expect(held.writeBody(...piece('6'))).toBe(false);
  expect(await held.done).toEqual({ kind: 'body-too-large' });
  expect([held.isSettled, held.writeBody(...piece('7')), bodies.bytes]).toEqual([true, false, 0]);
});

it('a body over the edge’s memory for held bodies gets a 503, until memory is released', async () => {
  const bodies = new HeldBodies(10);
  const first = bodies.hold(10, 0, 'account a');
  first.writeBody(...piece('12345678'));
  const second = bodies.hold(10, 0, 'account a');
  expect(second.writeBody(...piece('123'))).toBe(false);
  expect(await second.done).toMatchObject({ kind: 'failed', fault: { code: 'POLICY_BUSY', status: 503 } });
  expect(bodies.bytes).toBe(8);
  first.release();
  const third = bodies.hold(10, 0, 'account a');
  expect([third.writeBody(...piece('1234567890')), bodies.bytes]).toEqual([true, 10]);
});

it('a flood at one tunnel uses up only the share of its owner; bodies of other owners are held', async () => {
  const bodies = new HeldBodies(100, 25);
  const held = Array.from({ length: 3 }, () => bodies.hold(20, 0, 'account a'));
  expect(held.map((one) => one.writeBody(...piece('1234567890')))).toEqual([true, true, false]);
  expect(await held[2]?.done).toMatchObject({ kind: 'failed', fault: { code: 'POLICY_BUSY', status: 503 } });
  expect(bodies.hold(20, 0, 'account b').writeBody(...piece('1234567890'))).toBe(true);
  expect(bodies.bytes).toBe(30);
  held[0]?.release();
  held[0]?.release();
  expect(bodies.hold(20, 0, 'account a').writeBody(...piece('1234567890'))).toBe(true);
  expect(bodies.bytes).toBe(30);
});

it('a tunnel of the operator can exceed an account’s share, but leaves room for another tunnel', () => {
  const bodies = new HeldBodies(100, 25);
  expect(bodies.hold(50, 0, 'operator tun_a').writeBody(...piece('1'.repeat(50)))).toBe(true);
  expect(bodies.hold(50, 0, 'operator tun_a').writeBody(...piece('1'.repeat(42)))).toBe(true);
  expect(bodies.hold(50, 0, 'operator tun_a').writeBody(...piece('1'))).toBe(false);
  expect(bodies.hold(50, 0, 'operator tun_b').writeBody(...piece('12345678'))).toBe(true);
});

it('a slow body gets a 408 and is dropped, while a complete body is kept', async () => {
  const bodies = new HeldBodies();
  const slow = bodies.hold(10, 1000, 'account a');
  const whole = bodies.hold(10, 1000, 'account a');
  slow.writeBody(...piece('half'));
  slow.tick(1000 + POLICY_HELD_BODY_MS - 1);
  expect([slow.isSettled, bodies.bytes]).toEqual([false, 4]);
  whole.end([]);
  for (const held of [slow, whole]) held.tick(1000 + POLICY_HELD_BODY_MS);
  expect(await slow.done).toMatchObject({ kind: 'failed', fault: { status: 408 } });
  expect(await whole.done).toMatchObject({ kind: 'body-held' });
  expect(bodies.bytes).toBe(0);
});
