import { expect, it } from 'vitest';
import { roleOf } from './fields.ts';

const ROLES = {
  host: 'host',
  'content-length': 'length',
  'transfer-encoding': 'coding',
  connection: 'connection',
  upgrade: 'upgrade',
  expect: 'expect',
  te: 'te',
  'x-forwarded-for': 'forwarded-for',
  'x-forwarded-host': 'forwarded',
  'x-forwarded-proto': 'forwarded',
  'x-forwarded-port': 'forwarded',
  'x-real-ip': 'forwarded',
  x_forwarded_for: 'forwarded',
  x_real_ip: 'forwarded',
  'x-real_ip': 'forwarded',
  x_forwarded_port: 'forwarded',
  forwarded: 'claim',
  'true-client-ip': 'claim',
  'x-client-ip': 'claim',
  true_client_ip: 'claim',
  x_client_ip: 'claim',
  'keep-alive': 'hop',
  'http2-settings': 'hop',
  'proxy-connection': 'hop',
  'proxy-authenticate': 'hop',
  'proxy-authorization': 'hop',
};

it.each(Object.entries(ROLES))(
  'the header %s has the role %s in any case, and similar names are ordinary',
  (name, role) => {
    expect(roleOf(name)).toBe(role);
    expect(roleOf(name.toUpperCase())).toBe(role);
    expect(roleOf(`${name}x`)).toBe('ordinary');
    expect(roleOf(`x${name}`)).toBe('ordinary');
    expect(roleOf(name.slice(1))).toBe('ordinary');
    expect(roleOf(`${name.slice(0, -1)}~`)).toBe('ordinary');
  },
);

it.each(['accept', 'cookie', 'user-agent', 'content-type', 'x-forwarded-server', 'x_real', 'trailer', 'x', ''])(
  'the header %j is ordinary and passed on',
  (name) => {
    expect(roleOf(name)).toBe('ordinary');
  },
);
