// A held body on its way to a service: sent only as fast as it is taken, and each byte once, even if the member changes.
import type { HeaderField } from '@tunnel/http1';
import { expect, it } from 'vitest';
import { HeldBodies } from '../../policy/held-bodies.ts';
import { BufferedBody, POLICY_HELD_PIECE_BYTES } from './body-source.ts';

const PIECE = POLICY_HELD_PIECE_BYTES;

class Taker {
  readonly got: Buffer[] = [];
  goesOn = true;

  writeBody(bytes: Buffer, start: number, end: number): boolean {
    this.got.push(Buffer.from(bytes.subarray(start, end)));
    return this.goesOn;
  }
}

const hold = (bodies: HeldBodies, text: string) => {
  const held = bodies.hold(10 * PIECE, 0, 'account a');
  held.writeBody(Buffer.from(text), 0, text.length);
  held.end([]);
  return held;
};

it('a held body is sent only as fast as it is taken, and counts until its last byte is out', () => {
  const bodies = new HeldBodies();
  const body = 'abcd'.repeat(PIECE);
  const source = new BufferedBody(hold(bodies, body));
  const taker = new Taker();
  source.taker = taker;
  const ends: (readonly HeaderField[])[] = [];
  const pass = (): void => source.pass((trailers) => ends.push(trailers));
  taker.goesOn = false;
  for (let n = 1; n <= 3; n += 1) {
    pass();
    expect([taker.got.length, ends.length, bodies.bytes]).toEqual([n, 0, body.length]);
  }
  taker.goesOn = true;
  pass();
  expect([Buffer.concat(taker.got).toString() === body, ends.length, bodies.bytes]).toEqual([true, 1, 0]);
  pass();
  expect(ends).toHaveLength(1);
});

it('the next member gets exactly the bytes of a held body that the previous member did not take', () => {
  const bodies = new HeldBodies();
  const body = 'wxyz'.repeat(PIECE / 2);
  const source = new BufferedBody(hold(bodies, body));
  const first = new Taker();
  const second = new Taker();
  first.goesOn = false;
  source.taker = first;
  source.pass(() => {});
  source.taker = second;
  source.pass(() => {});
  expect(Buffer.concat([...first.got, ...second.got]).toString()).toBe(body);
});

it('an empty held body ends at once', () => {
  const source = new BufferedBody(hold(new HeldBodies(), ''));
  let ends = 0;
  source.taker = new Taker();
  source.pass(() => (ends += 1));
  expect(ends).toBe(1);
});
