import { describe, expect, expectTypeOf, it } from 'vitest';
import { decodeControl, encodeControl } from './control-codec.ts';
import {
  CONTROL_TEXT_MAX_CHARS,
  CONTROL_TYPES,
  type ControlMessage,
  type ControlMessageInput,
  type MessageOf,
} from './control-messages.ts';
import { agreeOn, CAPABILITIES, PROTOCOL_VERSION, SUPPORTED_VERSIONS } from './handshake.ts';
import { WIRE_LIMITS } from './limits.ts';

describe('control messages', () => {
  it('are distinguished by `type` alone', () => {
    const fieldOf = (message: ControlMessage): string => (message.type === 'Auth' ? message.token : message.type);
    expect(fieldOf({ type: 'Auth', versions: [1], token: 't', agent: '' })).toBe('t');
    expectTypeOf<MessageOf<'Ping'>>().toEqualTypeOf<{ type: 'Ping'; id: number }>();
    expectTypeOf<Extract<ControlMessageInput, { type: 'Error' }>['fatal']>().toEqualTypeOf<boolean | undefined>();
  });

  it('have 28 unique names', () => {
    expect(new Set(CONTROL_TYPES).size).toBe(CONTROL_TYPES.length);
    expect(CONTROL_TYPES).toHaveLength(28);
  });

  it('offer the current version first', () => {
    expect(SUPPORTED_VERSIONS[0]).toBe(PROTOCOL_VERSION);
  });
});

describe('agreeOn', () => {
  it('keeps values that both sides know, once each, in local order', () => {
    expect(agreeOn(['c', 'x', 'a', 'a'], ['a', 'b', 'c'])).toEqual(['a', 'c']);
    expect(agreeOn([], ['a'])).toEqual([]);
    expect(agreeOn(['a'], [])).toEqual([]);
    expect(agreeOn([2, 1], SUPPORTED_VERSIONS)).toEqual([PROTOCOL_VERSION]);
  });

  it('works on capability names that are unique and valid for every build', () => {
    expect(new Set(CAPABILITIES).size).toBe(CAPABILITIES.length);
    for (const name of CAPABILITIES) expect(name).toMatch(/^[a-z0-9-]{1,64}$/);
  });
});

const refusalOf = (text: string): { code: string; message: string } => {
  const decoded = decodeControl(text);
  if (decoded.ok) throw new Error('was accepted');
  return { code: decoded.fault.code, message: decoded.fault.message };
};

/** Returns a Ping frame of exactly the given number of bytes. */
const pingOf = (bytes: number, filler = 'x'): string => {
  const frame = '{"type":"Ping","id":1,"x":""}';
  return frame.replace('""', `"${filler.repeat((bytes - frame.length) / Buffer.byteLength(filler))}"`);
};

describe('decodeControl', () => {
  it('measures the size limit in bytes, for any characters', () => {
    const limit = WIRE_LIMITS.CONTROL_FRAME_MAX_BYTES;
    expect(decodeControl(pingOf(limit)).ok).toBe(true);
    expect(refusalOf(pingOf(limit + 1)).message).toBe('control frame of 65537 bytes exceeds the limit of 65536 bytes');
    const wide = pingOf(limit - 1, 'é');
    expect([Buffer.byteLength(wide), decodeControl(wide).ok]).toEqual([limit - 1, true]);
    expect(refusalOf(`${wide}  `)).toEqual({
      code: 'CONTROL_FRAME_TOO_LARGE',
      message: 'control frame of 65537 bytes exceeds the limit of 65536 bytes',
    });
  });

  it('names the invalid field', () => {
    const nested = '{"type":"Auth","versions":[1],"token":"t","resume":{"session_id":"s","secret":""}}';
    expect(refusalOf(nested).message).toMatch(/^invalid control frame: Auth\.resume\.secret: /);
    expect(refusalOf('{"type":"Auth","versions":["1"],"token":"t"}').message).toContain('Auth.versions.0: ');
    expect(refusalOf('{"id":1}').message).toBe('invalid control frame: `type` is missing');
  });

  it('never repeats a value in its error, so that a misplaced token stays out of logs', () => {
    const secret = 'tnl_verysecretverysecret';
    const texts = [
      `{"type":"Auth","versions":["${secret}"],"token":"t"}`,
      `{"type":"RegisterTunnel","request_id":"r","name":"n","protocol":"${secret}"}`,
      `{"type":"Auth","versions":[1],"token":{"${secret}":1}}`,
      `{"${secret}`,
    ];
    for (const text of texts) expect(refusalOf(text).message).not.toContain(secret);
  });

  it('shows an unknown type truncated and printable', () => {
    const type = `\u001b[31m\n${'é'.repeat(100)}`;
    expect(refusalOf(JSON.stringify({ type }))).toEqual({
      code: 'CONTROL_UNKNOWN_FRAME',
      message: `unknown control frame type \`?[31m?${'?'.repeat(34)}\``,
    });
  });

  it('accepts deep nesting in an ignored field', () => {
    const depth = 30_000;
    const text = `{"type":"Ping","id":1,"x":${'['.repeat(depth)}${']'.repeat(depth)}}`;
    expect(decodeControl(text)).toEqual({ ok: true, message: { type: 'Ping', id: 1 } });
  });

  it('accepts deep nesting in a policy, which the policy parser refuses later', () => {
    const depth = 30_000;
    const deep = `${'['.repeat(depth)}${']'.repeat(depth)}`;
    const text = `{"type":"RegisterTunnel","request_id":"r","name":"n","protocol":"http","policy":${deep}}`;
    expect(decodeControl(text).ok).toBe(true);
  });

  it('returns messages without __proto__', () => {
    const decoded = decodeControl('{"type":"Ping","id":1,"__proto__":{"admin":true}}');
    if (!decoded.ok) throw decoded.fault;
    expect(Object.keys(decoded.message)).toEqual(['type', 'id']);
    expect((decoded.message as { admin?: boolean }).admin).toBeUndefined();
    expect(({} as { admin?: boolean }).admin).toBeUndefined();
  });
});

describe('encodeControl', () => {
  it('cuts message texts to the accepted length, between two characters', () => {
    const long = `${'x'.repeat(CONTROL_TEXT_MAX_CHARS - 1)}🚇`;
    const messages = [
      { type: 'Error', code: 'INTERNAL', message: long },
      { type: 'ShuttingDown', reason: long, drain_secs: 0 },
    ] as const;
    for (const message of messages) {
      const decoded = decodeControl(encodeControl(message));
      expect(decoded).toMatchObject({ ok: true });
      expect(JSON.stringify(decoded)).toContain(`"${'x'.repeat(CONTROL_TEXT_MAX_CHARS - 1)}"`);
    }
  });

  it('leaves all other fields unchanged', () => {
    const token = 't'.repeat(2000);
    expect(encodeControl({ type: 'Auth', versions: [1], token })).toContain(token);
    const policy = { login: null, rules: [{ response_headers: { set: { reason: token, message: token } } }] };
    const register = { type: 'RegisterTunnel', request_id: 'r', name: 'n', protocol: 'http', policy } as const;
    expect(decodeControl(encodeControl(register))).toMatchObject({ ok: true, message: { policy } });
  });
});
