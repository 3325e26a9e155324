import { decodeControl, encodeControl } from '@tunnel/protocol';
import { expect, it } from 'vitest';
import { FrameWeights } from './frame-weights.ts';

const WEB = { type: 'RegisterTunnel', request_id: 'r', name: 'n', protocol: 'http' } as const;

const weightOf = (message: Parameters<typeof encodeControl>[0]): number => {
  const text = encodeControl(message);
  return new FrameWeights().of(decodeControl(text), text.length);
};

it('a registration costs what it always did, with a small policy, too', () => {
  expect(weightOf(WEB)).toBe(4);
  expect(weightOf({ ...WEB, policy: { login: null, rules: [{ deny: 403 }] } })).toBe(4);
});

it('a large policy costs what it takes to judge it: an account has a few of them a second', () => {
  const path = Array.from({ length: 100 }, () => '/*');
  const rules = Array.from({ length: 90 }, () => ({ match: { path }, deny: 403 }));
  expect(weightOf({ ...WEB, policy: { login: null, rules } })).toBeGreaterThan(45);
});
