// Tests that the caller's NODE_EXTRA_CA_CERTS reaches no test, except tests that install packages.
import { expect, it } from 'vitest';
import { setCallersCertificatesAside, withCallersCertificates } from '../caller-certificates.fixture.ts';

it('starts the workers without NODE_EXTRA_CA_CERTS, even if the caller has the variable', () => {
  expect(process.env['NODE_EXTRA_CA_CERTS']).toBeUndefined();
});

it('gives the file of the caller back to an installation', () => {
  const env: NodeJS.ProcessEnv = { NODE_EXTRA_CA_CERTS: '/company.pem', PATH: '/bin' };
  setCallersCertificatesAside(env);
  expect(env['NODE_EXTRA_CA_CERTS']).toBeUndefined();
  expect(withCallersCertificates(env)).toEqual({ NODE_EXTRA_CA_CERTS: '/company.pem', PATH: '/bin' });
});

it('does not change the environment of an installation if the caller has no such file', () => {
  const env: NodeJS.ProcessEnv = { PATH: '/bin' };
  setCallersCertificatesAside(env);
  expect(withCallersCertificates(env)).toEqual({ PATH: '/bin' });
});
