import type { DnsAnswer } from '@tunnel/certificates/domains';
import { FakeClock } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { EDGE_ADDRESSES_KNOWN_MS, EDGE_ADDRESSES_WAIT_MS, EdgeAddresses } from './edge-addresses.ts';

const NO_ANSWER: DnsAnswer = { kind: 'no-answer', reason: 'ESERVFAIL' };
const found = (...values: string[]): DnsAnswer => ({ kind: 'found', values });

const setUp = (answer: () => Promise<DnsAnswer>) => {
  const clock = new FakeClock();
  let asked = 0;
  const lookUp = (): Promise<DnsAnswer> => {
    asked += 1;
    return answer();
  };
  return { clock, addresses: new EdgeAddresses({ clock, lookUp }), asked: () => asked };
};

it('edge addresses are looked up once for concurrent callers, and again after a while', async () => {
  const { clock, addresses, asked } = setUp(async () => found('192.0.2.1', '2001:db8::1'));
  expect(await Promise.all([addresses.get(), addresses.get()])).toEqual(Array(2).fill(['192.0.2.1', '2001:db8::1']));
  expect(await addresses.get()).toHaveLength(2);
  expect(asked()).toBe(1);
  await clock.advance(EDGE_ADDRESSES_KNOWN_MS);
  expect(await addresses.get()).toHaveLength(2);
  expect(asked()).toBe(2);
});

it('edge addresses stay known while resolvers fail, and are looked up more often', async () => {
  let answer = async (): Promise<DnsAnswer> => found('192.0.2.1');
  const { clock, addresses, asked } = setUp(() => answer());
  await addresses.get();
  const rejects = (): Promise<DnsAnswer> => Promise.reject(new Error('no such module'));
  for (const failure of [async () => NO_ANSWER, rejects]) {
    answer = failure;
    await clock.advance(EDGE_ADDRESSES_KNOWN_MS);
    expect(await addresses.get()).toEqual(['192.0.2.1']);
  }
  expect(asked()).toBe(3);
});

it('edge addresses have a maximum lookup time, after which the result is empty', async () => {
  const { clock, addresses } = setUp(() => new Promise(() => {}));
  const got = addresses.get();
  await clock.advance(EDGE_ADDRESSES_WAIT_MS);
  expect(await got).toEqual([]);
});
