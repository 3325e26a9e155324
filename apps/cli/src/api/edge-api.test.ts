import { expect, it } from 'vitest';
import { apiAddress } from './edge-api.ts';

const LOCAL = '127.0.0.1:4040';
const at = (api: string | undefined, server = LOCAL, tls?: boolean): string =>
  apiAddress({ api, server, tls }).url.href;

it('the API address defaults to the host of the control plane on port 4041', () => {
  expect(at(undefined)).toBe('http://127.0.0.1:4041/');
  expect(at(undefined, '[::1]:4999')).toBe('http://[::1]:4041/');
  expect(at('http://localhost:9')).toBe('http://localhost:9/');
  expect(at('https://edge.example.com/rest')).toBe('https://edge.example.com/rest');
});

it('an API key goes only to this machine, over TLS, or where `tls: false` allows plain text', () => {
  for (const host of ['127.0.0.1', '127.9.9.9', '[::1]', 'localhost', '0x7f.1']) {
    expect(apiAddress({ api: `http://${host}:1`, server: LOCAL, tls: undefined }).loopbackOnly).toBe(true);
  }
  for (const host of [
    '192.0.2.1',
    '[2001:db8::1]',
    'edge.example.com',
    'localhost.example.com',
    '127.0.0.1.example.com',
  ]) {
    for (const tls of [undefined, true]) expect(() => at(`http://${host}:1`, LOCAL, tls)).toThrow('unencrypted');
    expect(apiAddress({ api: `http://${host}:1`, server: LOCAL, tls: false }).loopbackOnly).toBe(false);
    expect(apiAddress({ api: `https://${host}:1`, server: LOCAL, tls: undefined }).loopbackOnly).toBe(false);
  }
  expect(() => at(undefined, 'edge.example.com:4040')).toThrow('edge.example.com:4041 unencrypted');
  expect(at(undefined, 'edge.example.com:4040', false)).toBe('http://edge.example.com:4041/');
});

it('an API address without http or https, or with a user name, is refused', () => {
  for (const api of ['edge:4041', 'ftp://edge', 'http://', 'http://a b'])
    expect(() => at(api)).toThrow('http or https');
  expect(() => at('http://key@127.0.0.1')).toThrow('without user name and password');
});
