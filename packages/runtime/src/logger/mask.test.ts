import { expect, test } from 'vitest';
import { Secret } from '../secret.ts';
import { maskFields, maskText } from './mask.ts';

const KEY = 'tnl_0123456789abcdefghijABCDEFGHIJ01abcdef';

test.each([
  'token',
  'auth_token',
  'adminToken',
  'secret',
  'resume_secret',
  'Authorization',
  'set-cookie',
  'password',
  'group_key',
  'api_key',
  'X-Api-Key',
  'api key',
  'tokens',
])('a log field called %s is masked at every level', (name) => {
  const masked = JSON.stringify(maskFields({ [name]: 'hidden', a: { [name]: ['hidden'], b: [{ [name]: 12345 }] } }));
  expect(masked).not.toMatch(/hidden|12345/);
});

test('fields without a secret name stay unchanged', () => {
  const fields = {
    port: 4040,
    admin_token_file: 'data/admin-token',
    list: [1, 'two', null],
    ok: true,
    token: undefined,
  };
  expect(maskFields(fields)).toEqual(fields);
});

test('texts that look like keys are masked anywhere in a log line', () => {
  expect(maskText(`key ${KEY} refused`)).toBe('key tnl_[secret] refused');
  expect(maskText('edge tne_Ab3-_defghijklmnop refused')).toBe('edge tne_[secret] refused');
  expect(maskText('authorization: Bearer abc.def-123 sent')).toBe('authorization: Bearer [secret] sent');
  expect(maskText('postgres://tunnel:hunter2@db/tunnel')).toBe('postgres://tunnel:[secret]@db/tunnel');
  expect(maskText('at postgres:///tunnel?user=tunnel&password=hunter2&host=%2Frun')).toBe(
    'at postgres:///tunnel?user=tunnel&password=[secret]&host=%2Frun',
  );
  expect(JSON.stringify(maskFields({ note: [`x ${KEY}`], err: new Error(`bad ${KEY}`) }))).not.toContain(KEY);
  expect(JSON.stringify(maskFields({ any: new Secret('hidden') }))).not.toContain('hidden');
});

test('a logged error keeps its name, message, code and cause', () => {
  const error = Object.assign(new TypeError('outer', { cause: new Error('inner') }), { code: 'EPIPE' });
  const expected = { type: 'TypeError', message: 'outer', code: 'EPIPE', cause: { type: 'Error', message: 'inner' } };
  expect(maskFields({ err: error })).toMatchObject({ err: expected });
  expect(maskFields(error)).toMatchObject({ err: expected });
});

test('log fields with cycles, deep nesting, long lists or bytes are shortened', () => {
  const cycle: Record<string, unknown> = {};
  cycle['self'] = cycle;
  const fields = { cycle, bytes: Buffer.alloc(5000), many: Array.from({ length: 5000 }, () => 'x'), big: 10n ** 30n };
  expect(JSON.stringify(maskFields(fields)).length).toBeLessThan(2000);
});
