import { describe, expect, expectTypeOf, it } from 'vitest';
import { CONTROL_TYPES, type ControlMessage, type ControlMessageInput, type MessageOf } from './control-messages.ts';
import { agreeOn, CAPABILITIES, PROTOCOL_VERSION, SUPPORTED_VERSIONS } from './handshake.ts';

describe('control messages', () => {
  it('are told apart by `type` alone', () => {
    const fieldOf = (message: ControlMessage): string => (message.type === 'Auth' ? message.token : message.type);
    expect(fieldOf({ type: 'Auth', versions: [1], token: 't', agent: '' })).toBe('t');
    expectTypeOf<MessageOf<'Ping'>>().toEqualTypeOf<{ type: 'Ping'; id: number }>();
    expectTypeOf<Extract<ControlMessageInput, { type: 'Error' }>['fatal']>().toEqualTypeOf<boolean | undefined>();
  });

  it('have names that occur once', () => {
    expect(new Set(CONTROL_TYPES).size).toBe(CONTROL_TYPES.length);
    expect(CONTROL_TYPES).toHaveLength(17);
  });

  it('offer the own version first', () => {
    expect(SUPPORTED_VERSIONS[0]).toBe(PROTOCOL_VERSION);
  });
});

describe('agreeOn', () => {
  it('keeps what both know, in our own order, each once', () => {
    expect(agreeOn(['c', 'x', 'a', 'a'], ['a', 'b', 'c'])).toEqual(['a', 'c']);
    expect(agreeOn([], ['a'])).toEqual([]);
    expect(agreeOn(['a'], [])).toEqual([]);
    expect(agreeOn([2, 1], SUPPORTED_VERSIONS)).toEqual([PROTOCOL_VERSION]);
  });

  it('has names that a list of another build can carry', () => {
    expect(new Set(CAPABILITIES).size).toBe(CAPABILITIES.length);
    for (const name of CAPABILITIES) expect(name).toMatch(/^[a-z0-9-]{1,64}$/);
  });
});
