import { type ControlMessageInput, decodeControl, encodeControl } from '@tunnel/protocol';
import { expect, it } from 'vitest';
import { FrameWeights, registrationWeight } from './frame-weights.ts';

const WEB = { type: 'RegisterTunnel', request_id: 'r', name: 'n', protocol: 'http' } as const;

/** Cost of a message: in frame tokens, and in registration tokens. */
const weightsOf = (message: ControlMessageInput): [number, number] => {
  const text = encodeControl(message);
  const decoded = decodeControl(text);
  if (!decoded.ok) throw decoded.fault;
  return [new FrameWeights().of(decoded, text.length), registrationWeight(decoded.message, text.length)];
};

it('a registration costs one registration token and no frame token, even with a small policy', () => {
  expect(weightsOf(WEB)).toEqual([0, 1]);
  expect(weightsOf({ ...WEB, policy: { login: null, rules: [{ deny: 403 }] } })).toEqual([0, 1]);
});

it('a large policy costs registration tokens in proportion to its size', () => {
  const path = Array.from({ length: 100 }, () => '/*');
  const rules = Array.from({ length: 90 }, () => ({ match: { path }, deny: 403 }));
  const [frames, registrations] = weightsOf({ ...WEB, policy: { login: null, rules } });
  expect(frames).toBe(0);
  expect(registrations).toBeGreaterThan(90);
});

it('an unregistration costs one frame token and no registration token', () => {
  expect(weightsOf({ type: 'UnregisterTunnel', request_id: 'r', tunnel_id: 't' })).toEqual([1, 0]);
});
