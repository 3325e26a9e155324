import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { policyToSend } from '@tunnel/client';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeTestIo } from '../io/io.fixture.ts';
import { guardEntryOf, guardSpecOf, type HttpGuardFlags } from './policy-flags.ts';

let home: TemporaryDirectory;
beforeEach(async () => {
  home = await temporaryDirectory();
  writeFileSync(join(home.path, 'users'), 'anna:918273645\n');
  writeFileSync(join(home.path, 'token'), '918273645-of-the-program\n');
  writeFileSync(join(home.path, 'policy.yml'), 'rules:\n  - name: last\n    deny: 404\n');
});
afterEach(() => home.close());

const specOf = (flags: HttpGuardFlags) => guardSpecOf(flags, makeTestIo({ home: home.path }));
const sentOf = (flags: HttpGuardFlags) => policyToSend({ proto: 'http', local_port: 1, ...specOf(flags) });

describe('rules from flags', () => {
  it('have a fixed order, and the rules of the policy file come last', async () => {
    const sent = await sentOf({
      policy: 'policy.yml',
      responseHeader: ['X-B: two'],
      requestHeader: ['X-A: one, and more'],
      login: 'company',
      loginDomain: ['example.com'],
      serviceTokenFile: 'token',
      basicAuthFile: 'users',
      rateLimit: { requests: 100, per_secs: 60 },
      allowCidr: ['10.0.0.0/8'],
      denyCidr: ['10.6.6.6'],
    });
    expect(sent?.login).toMatchObject({ provider: 'company' });
    expect(sent?.rules).toMatchObject([
      { match: { address: ['10.6.6.6'] }, deny: 403 },
      { allow_addresses: ['10.0.0.0/8'] },
      { rate_limit: { requests: 100, per_secs: 60, burst: 100, by: 'address' } },
      {
        auth: {
          basic: { users: { anna: expect.stringMatching(/^\$scrypt\$/) as string } },
          tokens: [{ name: 'service', sha256: expect.stringMatching(/^[0-9a-f]{64}$/) as string }],
          login: { domains: ['example.com'] },
        },
      },
      { request_headers: { set: { 'X-A': 'one, and more' } } },
      { response_headers: { set: { 'X-B': 'two' } } },
      { name: 'last', deny: 404 },
    ]);
    expect(JSON.stringify(sent)).not.toContain('918273645');
  });

  it('allow every user of the provider when only --login is given', async () => {
    expect((await sentOf({ login: 'company' }))?.rules).toMatchObject([{ auth: { login: { anyone: true } } }]);
  });

  it('are empty without flags', () => {
    expect(specOf({})).toEqual({});
  });
});

describe('an invalid value is reported with the name of its flag', () => {
  it.each<[string, HttpGuardFlags, string]>([
    ['a network', { denyCidr: ['10.0.0.0/33'] }, 'command line: `--deny-cidr` must be an address or a network'],
    ['a network to allow', { denyCidr: ['10.0.0.1'], allowCidr: ['x'] }, 'command line: `--allow-cidr` must be'],
    ['a rate', { rateLimit: { requests: 0, per_secs: 1 } }, 'command line: `--rate-limit` must be'],
    ['a file of users', { basicAuthFile: 'nowhere' }, 'command line: `--basic-auth-file` must be a file'],
    ['a file with a token', { serviceTokenFile: 'nowhere' }, 'command line: `--service-token-file` must be a file'],
    ['a short token', { serviceTokenFile: 'users' }, 'command line: `--service-token-file` must be a token'],
    ['an address', { login: 'company', loginEmail: ['x'] }, 'command line: `--login-email` must be an email address'],
    ['a domain', { login: 'company', loginDomain: ['@x'] }, 'command line: `--login-domain` must be'],
    ['an address without a login', { loginEmail: ['a@b.c'] }, '--login-email needs --login.'],
    ['a domain without a login', { loginDomain: ['b.c'] }, '--login-domain needs --login.'],
    ['a header without a name', { requestHeader: ['918273645'] }, "--request-header takes 'Name: value'."],
    ['a header twice', { responseHeader: ['A: 1', 'A: 2'] }, '--response-header names A twice.'],
    ['a header of ours', { requestHeader: ['X-Tunnel-User: 918273645'] }, 'command line: `--request-header` must be'],
    ['a policy that is not there', { policy: 'nowhere.yml' }, 'cannot read nowhere.yml: no such file'],
  ])('for %s', (_, flags, says) => {
    let message = '';
    try {
      specOf(flags);
    } catch (error) {
      ({ message } = error as Error);
    }
    expect(message).toContain(says);
    expect(message).not.toContain('918273645');
  });

  it('for a second login', () => {
    writeFileSync(join(home.path, 'policy.yml'), 'login: { provider: other }\nrules: []\n');
    expect(() => specOf({ login: 'company', policy: 'policy.yml' })).toThrow(
      'policy.yml:1: `login` must be given once',
    );
  });
});

describe('policy keys written to config.yml', () => {
  const entryOf = (flags: HttpGuardFlags) => guardEntryOf(flags, makeTestIo({ home: home.path }));

  it('name files and contain no secret', () => {
    expect(entryOf({ policy: 'policy.yml' })).toEqual({ policy: join(home.path, 'policy.yml') });
    expect(entryOf({ basicAuthFile: 'users' })).toEqual({
      policy: { value: { rules: [{ auth: { basic: { users_file: join(home.path, 'users') } } }] } },
    });
    expect(() => entryOf({ policy: 'policy.yml', allowCidr: ['10.0.0.1'] })).toThrow('not both');
  });
});
