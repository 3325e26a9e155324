import { describe, expect, it } from 'vitest';
import { isSecretName, redactBody, redactFields, redactUrl } from './redact.ts';

describe('a captured request', () => {
  it('shows no credentials in its headers', () => {
    const names = ['Authorization', 'COOKIE', 'set-cookie', 'Proxy-Authorization', 'X-Api-Key', 'Accept'];
    expect(redactFields(names.map((name) => ({ name, value: 'v' }))).map(({ value }) => value)).toEqual([
      ...Array.from({ length: 5 }, () => '[redacted]'),
      'v',
    ]);
  });

  it('hides headers named like secrets, except for known harmless names', () => {
    const names = [
      'X-Amz-Security-Token',
      'X-Auth-Token',
      'Private-Token',
      'X-Vault-Token',
      'X_Client_Secret',
      'X-Password',
    ];
    const open = [
      'Idempotency-Key',
      'idempotency_key',
      'Sec-WebSocket-Key',
      'Content-Encoding',
      'Keep-Alive',
      'Estate',
    ];
    const shown = redactFields([...names, ...open].map((name) => ({ name, value: 'v' })));
    expect(shown.map(({ value }) => value)).toEqual([...names.map(() => '[redacted]'), ...open.map(() => 'v')]);
    expect(redactFields([{ name: 'Idempotency-Key', value: 'v' }], ['idempotency-key'])[0]?.value).toBe('[redacted]');
  });

  it('hides access tokens of rules, in the usual headers and in configured headers', () => {
    const names = ['X-Tunnel-Token', 'X-Gitlab-Token', 'X-Ci-Key', 'x_ci_key', 'X_TUNNEL_TOKEN', 'X-Other'];
    const shown = redactFields(
      names.map((name) => ({ name, value: 'v' })),
      ['x-ci-key'],
    );
    expect(shown.map(({ value }) => value)).toEqual([...Array.from({ length: 5 }, () => '[redacted]'), 'v']);
    const spelled = ['X_Tunnel_Token', 'x_gitlab-token', 'X-Ci_Key', 'X_Api_Key', 'X_Other'];
    const otherwise = redactFields(
      spelled.map((name) => ({ name, value: 'v' })),
      ['x-ci-key'],
    );
    expect(otherwise.map(({ value }) => value)).toEqual([...Array.from({ length: 4 }, () => '[redacted]'), 'v']);
    expect([isSecretName('state'), isSecretName('estate')]).toEqual([true, false]);
  });

  it('hides secrets in URLs of its headers', () => {
    const value = 'https://app.example/back?state=1&code=abc#access_token=def&x=y';
    expect(redactFields([{ name: 'Location', value }])[0]?.value).toBe(
      'https://app.example/back?state=[redacted]&code=[redacted]#access_token=[redacted]&x=y',
    );
    expect(redactFields([{ name: 'X-Text', value }])[0]?.value).toBe(value);
  });

  it.each([
    ['/a', '/a'],
    ['/a?b=c', '/a?b=c'],
    ['/a?token=1&b=2&API_KEY=3', '/a?token=[redacted]&b=2&API_KEY=[redacted]'],
    ['/a?clientSecret=1;password=2', '/a?clientSecret=[redacted];password=[redacted]'],
    ['/a?to%6ben=1', '/a?to%6ben=[redacted]'],
    ['/a?%ff%6bey=1', '/a?%ff%6bey=[redacted]'],
    ['/a?token', '/a?token'],
    ['/a?token=', '/a?token='],
    ['/a?b=token', '/a?b=token'],
    ['/token/secret', '/token/secret'],
    ['/a?x=y?code=1', '/a?x=y?code=[redacted]'],
  ])('shows %s as %s', (path, shown) => {
    expect(redactUrl(path)).toBe(shown);
  });

  it.each([
    'token',
    'access_token',
    'apiKey',
    'X-Secret-Y',
    'Password',
    'passwd',
    'code',
    'auth-code',
    'state',
    'nonce',
  ])('hides a field named like %s', (name) => {
    expect(isSecretName(name)).toBe(true);
  });

  it('hides secrets in a URL-encoded form', () => {
    expect(redactBody('application/x-www-form-urlencoded; charset=utf-8', 'user=a&password=b')).toBe(
      'user=a&password=[redacted]',
    );
    expect(redactBody('text/plain', 'password=b')).toBe('password=b');
    expect(redactBody(null, 'password=b')).toBe('password=b');
  });

  it('hides secrets in a multipart form, even a truncated form', () => {
    const part = (name: string, value: string): string =>
      `--XX\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
    const type = 'multipart/form-data; boundary="XX"';
    const whole = `${part('user', 'a')}${part('password', 'b\r\n\r\nc')}${part('file', 'd')}--XX--\r\n`;
    expect(redactBody(type, whole)).toBe(
      `${part('user', 'a')}${part('password', '[redacted]')}${part('file', 'd')}--XX--\r\n`,
    );
    expect(redactBody('Multipart/Form-Data; boundary=XX', part('api_token', 'abc').slice(0, -4))).not.toContain('abc');
    expect(redactBody('multipart/form-data', whole)).toBe('[redacted]');
  });
});
