// The traceparent header by the rules of W3C Trace Context, and the sampling decision.
import { describe, expect, it } from 'vitest';
import { isSampled, parseTraceparent, traceparentOf } from './trace-context.rules.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';
const VALID = `00-${TRACE}-${PARENT}-01`;

describe('a traceparent header', () => {
  it.each([
    ['01', true],
    ['00', false],
    // Other flags have no meaning in version 00.
    ['ff', true],
    ['fe', false],
    ['03', true],
  ])('with flags %s is sampled: %s', (flags, sampled) => {
    const context = { traceId: TRACE, parentId: PARENT, isSampled: sampled };
    expect(parseTraceparent(`00-${TRACE}-${PARENT}-${flags}`)).toEqual(context);
  });

  it.each([
    ['01', ''],
    ['cc', '-what-the-future-will-be-like'],
    ['fe', '-'],
    ['01', '-01'],
  ])('of the unknown version %s with the rest "%s" is read by the rules of version 00', (version, rest) => {
    expect(parseTraceparent(`${version}-${TRACE}-${PARENT}-01${rest}`)?.traceId).toBe(TRACE);
  });

  it.each([
    ['nothing', ''],
    ['two values', `${VALID}, ${VALID}`],
    ['the forbidden version ff', `ff-${TRACE}-${PARENT}-01`],
    ['a rest in version 00', `${VALID}-00`],
    ['a hyphen at the end in version 00', `${VALID}-`],
    ['a rest without a hyphen', `01-${TRACE}-${PARENT}-01.00`],
    ['a short version', `0-${TRACE}-${PARENT}-01`],
    ['a version that is not hex', `0g-${TRACE}-${PARENT}-01`],
    ['upper case in the trace id', VALID.replace(TRACE, TRACE.toUpperCase())],
    ['upper case in the parent id', VALID.replace(PARENT, PARENT.toUpperCase())],
    ['upper case in the flags', `00-${TRACE}-${PARENT}-0A`],
    ['upper case in the version', `0A-${TRACE}-${PARENT}-01`],
    ['a trace id of zeros', `00-${'0'.repeat(32)}-${PARENT}-01`],
    ['a parent id of zeros', `00-${TRACE}-${'0'.repeat(16)}-01`],
    ['a trace id of zeros in a later version', `01-${'0'.repeat(32)}-${PARENT}-01`],
    ['a short trace id', `00-${TRACE.slice(1)}-${PARENT}-01`],
    ['a long trace id', `00-${TRACE}0-${PARENT}-01`],
    ['a short parent id', `00-${TRACE}-${PARENT.slice(1)}-01`],
    ['a long parent id', `00-${TRACE}-${PARENT}0-01`],
    ['one digit of flags', `00-${TRACE}-${PARENT}-1`],
    ['three digits of flags', `00-${TRACE}-${PARENT}-011`],
    ['no flags', `00-${TRACE}-${PARENT}`],
    ['blanks around it', ` ${VALID} `],
    ['a line break at the end', `${VALID}\n`],
    ['other separators', VALID.replaceAll('-', '_')],
  ])('with %s is invalid', (_, value) => expect(parseTraceparent(value)).toBeNull());

  it('is written in version 00 and reads as written', () => {
    expect(traceparentOf(TRACE, PARENT, true)).toBe(VALID);
    expect(traceparentOf(TRACE, PARENT, false)).toBe(`00-${TRACE}-${PARENT}-00`);
    expect(parseTraceparent(traceparentOf(TRACE, PARENT, false))).toEqual({
      traceId: TRACE,
      parentId: PARENT,
      isSampled: false,
    });
  });
});

describe('sampling', () => {
  const given = (sampled: boolean) => ({ traceId: TRACE, parentId: PARENT, isSampled: sampled });

  it('follows the flag of the caller only with trust', () => {
    expect(isSampled({ ratio: 0, trustsFlag: true }, given(true), 0.5)).toBe(true);
    expect(isSampled({ ratio: 1, trustsFlag: true }, given(false), 0.5)).toBe(false);
    expect(isSampled({ ratio: 0, trustsFlag: false }, given(true), 0.5)).toBe(false);
    expect(isSampled({ ratio: 1, trustsFlag: false }, given(false), 0.5)).toBe(true);
  });

  it.each([true, false])('follows the ratio for a caller without a header (trust: %s)', (trustsFlag) => {
    expect(isSampled({ ratio: 0.01, trustsFlag }, null, 0.0099)).toBe(true);
    expect(isSampled({ ratio: 0.01, trustsFlag }, null, 0.01)).toBe(false);
    expect(isSampled({ ratio: 0, trustsFlag }, null, 0)).toBe(false);
    expect(isSampled({ ratio: 1, trustsFlag }, null, 0.999_999)).toBe(true);
  });
});
