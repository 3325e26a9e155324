import { describe, expect, it } from 'vitest';
import { restListenerOf } from './clear-text.ts';
import { loadServerConfig } from './server-config.ts';

const TLS = { cert_path: '/etc/tunnel/cert.pem', key_path: '/etc/tunnel/key.pem' };
const configOf = (server: object, tls: object = {}) => loadServerConfig({ env: {}, overrides: { server, tls } });
const refusalOf = (server: object, tls: object = {}): string => {
  try {
    configOf(server, tls);
    return 'ok';
  } catch (error) {
    return (error as Error).message;
  }
};

describe('telemetry.otlp_headers', () => {
  const given = (otlp_endpoint: string, otlp_headers: string, server: object = {}): string => {
    try {
      loadServerConfig({ env: {}, overrides: { server, telemetry: { otlp_endpoint, otlp_headers } } });
      return 'ok';
    } catch (error) {
      return (error as Error).message;
    }
  };

  it.each([
    ['http://127.0.0.1:4318', 'api-key=1'],
    ['http://localhost:4318', 'api-key=1'],
    ['https://collector.example', 'api-key=1'],
    ['http://collector:4318', ''],
    ['', 'api-key=1'],
  ])('are accepted for the endpoint "%s" with the headers "%s"', (url, headers) => {
    expect(given(url, headers)).toBe('ok');
  });

  it('are not sent unencrypted over a network, unless the operator trusts the network', () => {
    const refusal = given('http://collector:4318', 'api-key=1');
    expect(refusal).toContain('`telemetry.otlp_endpoint` must be an https URL');
    expect(refusal).toContain('got "http://collector:4318"');
    expect(refusal).not.toContain('api-key');
    expect(given('http://collector:4318', 'api-key=1', { allow_insecure_link: true })).toBe('ok');
  });
});

describe.each(['platform_url', 'api_url'])('%s', (key) => {
  const given = (url: string, more: object = {}): string =>
    refusalOf({ [key]: url, platform_credential_file: '/etc/tunnel/credential', ...more });

  it.each([
    ['', 'ok'],
    ['https://platform.example', 'ok'],
    ['HTTPS://platform.example', 'ok'],
    ['http://127.0.0.1:8080', 'ok'],
    ['http://localhost:8080/', 'ok'],
    ['http://[::1]:8080', 'ok'],
    // Every browser reads 127.1 as 127.0.0.1.
    ['http://127.1:8080', 'ok'],
    ['http://platform.example', 'refused'],
    ['HTTP://platform.example', 'refused'],
    ['http://10.0.0.1:8080', 'refused'],
    ['http://127.0.0.1.example', 'refused'],
    ['http://user@localhost@platform.example', 'refused'],
    ['http://127.0.0.1@platform.example', 'refused'],
    ['http://0.0.0.0:8080', 'refused'],
  ])('%s: %s', (url, verdict) => {
    const refusal = given(url);
    expect(refusal === 'ok' ? 'ok' : 'refused').toBe(verdict);
    if (verdict === 'refused') {
      expect(refusal).toContain(`\`server.${key}\` must be an https URL`);
      expect(refusal).toContain('`server.allow_insecure_link = true`');
    }
    expect(given(url, { allow_insecure_link: true })).toBe('ok');
  });
});

describe('the REST API', () => {
  it.each([
    // Columns: [tls], host and api_host; expected listening host, whether it uses TLS, and whether it was withdrawn to loopback.
    [false, '127.0.0.1', '', '127.0.0.1', false, false],
    [false, '127.0.0.2', '', '127.0.0.2', false, false],
    [false, '0.0.0.0', '', '127.0.0.1', false, true],
    [false, '0.0.0.0', '127.0.0.1', '127.0.0.1', false, false],
    [true, '127.0.0.1', '', '127.0.0.1', false, false],
    [true, '0.0.0.0', '', '0.0.0.0', true, false],
    [true, '0.0.0.0', '127.0.0.1', '127.0.0.1', false, false],
    [true, '127.0.0.1', '::', '::', true, false],
    [true, '127.0.0.1', 'localhost', 'localhost', false, false],
  ])('[tls] %s, host %s, api_host "%s": %s, TLS %s', (hasTls, host, api_host, listensOn, tls, isWithdrawn) => {
    const config = configOf({ host, api_host }, hasTls ? TLS : {});
    expect(restListenerOf(config)).toEqual({ host: listensOn, tls, isWithdrawn });
  });

  it('on a non-loopback address needs [tls] or `allow_insecure_link`', () => {
    const refusal = refusalOf({ api_host: '0.0.0.0' });
    expect(refusal).toContain(
      '`server.api_host` must be `127.0.0.1` or another loopback address without `[tls]` or `[acme]`',
    );
    expect(refusal).toContain('`server.allow_insecure_link = true`');
    expect(refusal).toContain('"0.0.0.0"');
    const config = configOf({ api_host: '0.0.0.0', allow_insecure_link: true });
    expect(restListenerOf(config)).toEqual({ host: '0.0.0.0', tls: false, isWithdrawn: false });
    expect(refusalOf({ api_host: '0.0.0.0' }, TLS)).toBe('ok');
  });

  it('with TLS needs an https URL, even with `allow_insecure_link`', () => {
    const given = { host: '0.0.0.0', api_url: 'http://127.0.0.1:4041', allow_insecure_link: true };
    expect(refusalOf(given, TLS)).toContain(
      '`server.api_url` must be an https URL while the REST API uses TLS on `0.0.0.0`',
    );
    expect(refusalOf({ ...given, api_url: 'https://edge.example:4041' }, TLS)).toBe('ok');
    expect(refusalOf({ ...given, api_host: '127.0.0.1' }, TLS)).toBe('ok');
  });
});
