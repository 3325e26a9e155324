import { TunnelPolicy } from '@tunnel/client';
import { PolicySource } from '@tunnel/config/policy';
import { Secret } from '@tunnel/runtime';
import { describe, expect, it } from 'vitest';
import { type NamedSpec, specFromWire, specToWire } from './spec-wire.ts';

const policyOf = (value: unknown): TunnelPolicy =>
  TunnelPolicy.of([
    new PolicySource({
      value,
      file: null,
      line: () => 0,
      key: String,
      name: 'test',
      folder: '/',
      env: {},
      home: '/',
    }),
  ]);

const spec: NamedSpec = {
  proto: 'http',
  name: 'shop',
  local_port: 3000,
  group: 'shop',
  group_key: new Secret('the key of the group'),
  policy_revision: 3,
  services: { api: 4000 },
  policy: policyOf({
    login: { issuer: 'https://id.example.com', client_id: 'x', client_secret: 'of the provider' },
    rules: [
      {
        name: 'people',
        auth: {
          basic: { users: { anna: 'planted918273645' } },
          tokens: [{ name: 'ci', token: 'planted918273645-long-enough' }],
          login: { domains: 'example.com' },
        },
      },
      { match: { path: '/hook' }, verify_webhook: { provider: 'github', secret: 'of the webhook' } },
      { match: { path: '/api/**' }, route: 'api' },
      { max_body: '10MiB' },
      { deny: true },
    ],
  }),
};

describe('a tunnel sent to a running client', () => {
  it("arrives unchanged, and its policy's passwords and tokens are not sent", async () => {
    const text = JSON.stringify(await specToWire(spec));
    expect(text).not.toContain('918273645');
    const arrived = specFromWire(JSON.parse(text));
    expect(arrived).toMatchObject({ name: 'shop', policy_revision: 3, services: { api: 4000 } });
    const again = JSON.stringify(await specToWire(arrived));
    expect(again).toBe(text);
  });

  it('can also be written with the keys of config.yml', () => {
    const arrived = { proto: 'http', name: 'shop', local_port: 3000, health_check: { type: 'http', path: '/up' } };
    expect(specFromWire(arrived)).toEqual(arrived);
    expect(() => specFromWire({ ...arrived, localPort: 1 })).toThrow('unknown key `localPort` for a tunnel');
    expect(() => specFromWire({ ...arrived, local_port: 'x' })).toThrow('`local_port` must be a whole number');
    expect(() => specFromWire({ ...arrived, remote_port: 1 })).toThrow(
      '`remote_port` is not an option of a http tunnel',
    );
  });

  it('keeps the key names of clients of version 0.1.0', async () => {
    const text =
      '{"protocol":"https","name":"shop","localPort":3000,"localHost":"10.0.0.1","localTlsVerify":true,"subdomain":"shop","hostHeader":"keep",' +
      '"group":"g","groupKey":"the key of the group","healthCheck":{"type":"http","path":"/up","intervalSecs":5,"expect2xx":false},"services":{"some_name":4000}}';
    const arrived = specFromWire(JSON.parse(text));
    expect(arrived).toMatchObject({
      proto: 'https',
      local_port: 3000,
      local_host: '10.0.0.1',
      local_tls_verify: true,
      host_header: 'keep',
      health_check: { type: 'http', path: '/up', interval_secs: 5, expect_2xx: false },
      services: { some_name: 4000 },
    });
    expect(await specToWire(arrived)).toEqual(JSON.parse(text));
    expect(() => specFromWire({ protocol: 'http', name: 'a', local_port: 1 })).toThrow('unknown key `local_port`');
    expect(() => specFromWire({ ...JSON.parse(text), healthCheck: [] })).toThrow('`healthCheck` must be');
  });

  it('is refused with an invalid policy or with a policy for another kind of tunnel', () => {
    const plain = { protocol: 'http', name: 'a', localPort: 1 };
    expect(() => specFromWire({ ...plain, policy: { rules: [{ dny: true }] } })).toThrow('did you mean `deny`?');
    expect(() => specFromWire({ ...plain, policy: 'file.yml' })).toThrow('must be a table, not a file');
    expect(() => specFromWire({ ...plain, protocol: 'tcp', policy: { rules: [{ max_body: 1 }] } })).toThrow(
      'is for http',
    );
  });
});
