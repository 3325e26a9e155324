import { describe, expect, it } from 'vitest';
import { LOCAL_LOOKUP_VALID_MS, type LocalAddress, LocalAddresses } from './local-addresses.ts';

const V6 = { address: '::1', family: 6 };
const V4 = { address: '127.0.0.1', family: 4 };

const named = (...answers: (readonly LocalAddress[] | Error)[]) => {
  let asked = 0;
  const addresses = new LocalAddresses('service.test', async () => {
    const answer = answers[Math.min(asked, answers.length - 1)];
    asked += 1;
    if (answer instanceof Error) throw answer;
    return answer ?? [];
  });
  return { addresses, asked: () => asked };
};

it.each([V4, V6])('an IP address needs no lookup: $address', (address) => {
  expect(new LocalAddresses(address.address).current(1e12)).toEqual(address);
});

describe('the host name of a local service', () => {
  it('is looked up once for all callers while the result is valid', async () => {
    const { addresses, asked } = named([V4]);
    expect(addresses.current(0)).toBeNull();
    expect(await Promise.all([addresses.lookup(0), addresses.lookup(1)])).toEqual([V4, V4]);
    expect(addresses.current(LOCAL_LOOKUP_VALID_MS - 1)).toEqual(V4);
    expect(asked()).toBe(1);
    expect(addresses.current(LOCAL_LOOKUP_VALID_MS)).toBeNull();
    await addresses.lookup(LOCAL_LOOKUP_VALID_MS);
    expect(asked()).toBe(2);
  });

  it('is not looked up again for every visitor after a failure', async () => {
    const { addresses, asked } = named(new Error('ENOTFOUND'), [V4]);
    await expect(addresses.lookup(0)).rejects.toThrow('ENOTFOUND');
    await expect(addresses.lookup(10)).rejects.toThrow('ENOTFOUND');
    expect(asked()).toBe(1);
    expect(await addresses.lookup(LOCAL_LOOKUP_VALID_MS)).toEqual(V4);
  });

  it('is an error when it has no addresses', async () => {
    await expect(named([]).addresses.lookup(0)).rejects.toThrow('no address');
  });

  it('with two addresses switches to the other address whenever one refuses, and back', async () => {
    const { addresses } = named([V6, V4]);
    expect(await addresses.lookup(0)).toEqual(V6);
    expect([addresses.refused(V6), addresses.refused(V6)]).toEqual([true, true]);
    expect(addresses.current(1)).toEqual(V4);
    addresses.refused(V4);
    expect(addresses.current(1)).toEqual(V6);
  });

  it('with a single address offers no alternative after a refusal', async () => {
    const { addresses } = named([V4]);
    await addresses.lookup(0);
    expect(addresses.refused(V4)).toBe(false);
    expect(addresses.current(1)).toEqual(V4);
  });
});
