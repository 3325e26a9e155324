import { describe, expect, it } from 'vitest';
import { carrierTagOf, requestIdOf } from './request-id.ts';

describe('the tag of a carrier', () => {
  it('has ten characters for any hash', () => {
    expect(carrierTagOf('f'.repeat(64))).toBe('2rrvthnxtr');
    expect(carrierTagOf('0'.repeat(64))).toBe('0000000000');
    expect(carrierTagOf(`00000000000a${'f'.repeat(52)}`)).toBe('000000000a');
  });
});

describe('the id of a request', () => {
  const carrierTag = carrierTagOf('ab'.repeat(32));

  it('contains the carrier, the stream and the position on the stream', () => {
    expect([1, 2, 36].map((ordinal) => requestIdOf({ carrierTag, id: 3 }, ordinal))).toEqual([
      `req_${carrierTag}3`,
      `req_${carrierTag}3_2`,
      `req_${carrierTag}3_10`,
    ]);
  });

  it('is unique for every combination of stream and position', () => {
    const ids = new Set<string>();
    for (let id = 1; id < 2000; id += 2) {
      for (let ordinal = 1; ordinal < 50; ordinal += 1) ids.add(requestIdOf({ carrierTag, id }, ordinal));
    }
    expect(ids.size).toBe(1000 * 49);
    expect([...ids].filter((each) => !/^req_\w{1,40}$/.test(each))).toEqual([]);
  });
});
