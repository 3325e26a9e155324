import { describe, expect, it } from 'vitest';
import { makeCertificate, makeDomain, makeRecord } from './own-domain.fixture.ts';
import {
  adviceOf,
  certificateOf,
  certificateText,
  domainHops,
  errorText,
  foundText,
  purposeText,
  recordHint,
  stateOf,
} from './own-domain-texts.ts';

const NOW = Date.parse('2030-02-01T00:00:00.000Z');
const LATER = Date.parse('2030-05-01T00:00:00.000Z');
const NO_PROOF = 'no record with the token was found';
const missing = makeRecord({ found: false });

describe('advice for a domain', () => {
  it.each([
    ['pending', makeDomain({ state: 'pending', records: [missing] }), /Add the records/, /check automatically/],
    [
      'failed',
      makeDomain({ state: 'failed', last_error: NO_PROOF }),
      /three days/,
      /Check now\. No DNS record with your/,
    ],
    ['lapsed', makeDomain({ state: 'lapsed' }), /can’t use/, /add the records below and select Check now/],
    ['verified, its proof gone', makeDomain({ last_error: NO_PROOF }), /did not find the DNS record/, /within 7 days/],
    [
      'verified, no answer',
      makeDomain({ last_error: 'DNS gave no answer: ESERVFAIL' }),
      /last check failed/,
      /SERVFAIL/,
    ],
    [
      'verified by text, no address',
      makeDomain({ records: [makeRecord({ type: 'A', purpose: 'route', found: false }), makeRecord({ type: 'TXT' })] }),
      /visitors can’t reach/,
      /Add the missing record/,
    ],
    [
      'verified, the challenge missing',
      makeDomain({ records: [makeRecord(), makeRecord({ purpose: 'challenge', found: false })] }),
      /one more record/,
      /certificate/,
    ],
  ])('fits the state "%s"', (_, domain, title, text) => {
    expect(adviceOf(domain)).toEqual({
      tone: expect.any(String),
      title: expect.stringMatching(title),
      text: expect.stringMatching(text),
    });
  });

  it('is omitted when the domain works', () => {
    expect(adviceOf(makeDomain())).toBeNull();
  });
});

it('the state of a domain is one or two words, and a verified domain with a missing record says so', () => {
  expect(stateOf(makeDomain())).toEqual({ tone: 'good', short: 'Verified' });
  expect(stateOf(makeDomain({ last_error: NO_PROOF })).short).toBe('Record missing');
  expect(stateOf(makeDomain({ last_error: 'DNS gave no answer: ETIMEOUT' })).short).toBe('Verified');
  expect(stateOf(makeDomain({ state: 'lapsed', last_error: NO_PROOF })).short).toBe('Lapsed');
});

it.each([
  [NO_PROOF, 'No DNS record with your token was found yet.'],
  [
    'another account has this name by a record that is there as well: remove that record',
    'Another account has verified this name, and the other account’s record is still in your DNS. Remove that record.',
  ],
  [
    'DNS gave no answer: ESERVFAIL',
    'The DNS lookup failed (SERVFAIL). Your records are not the cause. We check again automatically.',
  ],
  ['something of a later version', 'Something of a later version.'],
])('the domain error %j is shown in plain words', (error, text) => {
  expect(errorText(error)).toBe(text);
});

it.each([
  [[missing], 'Missing'],
  [[makeRecord()], 'Found'],
  [[makeRecord(), missing], '1 of 2 found'],
  [[makeRecord(), makeRecord()], 'All 2 found'],
])('the DNS records of row %# are summarized as "%s"', (records, text) => {
  expect(foundText(records)).toBe(text);
});

describe('the certificate status of a domain', () => {
  it.each([
    ['none is wanted', makeDomain({ certificate: null }), NOW, 'None', /use http/],
    ['before the proof', domainWith('none', 'pending'), NOW, 'After DNS', /once the DNS records are found/],
    ['after it', domainWith('none', 'verified'), NOW, 'Not issued yet', /does not issue/],
    ['ordered', domainWith('ordering', 'verified'), NOW, 'Being issued', /few seconds/],
    ['valid', makeDomain(), NOW, 'Valid', /No action needed/],
    ['valid once', makeDomain(), LATER, 'Expired', /./],
    ['never issued', domainWith('failing', 'verified'), NOW, 'Not issued', /can’t use https/],
    ['not renewed', withCertificate('failing'), NOW, 'Renewal failing', /still get the current/],
    ['not renewed in time', withCertificate('failing'), LATER, 'Expired', /can’t use https/],
    ['being renewed', withCertificate('renewing'), NOW, 'Renewing', /current certificate/],
  ])('fits the case "%s"', (_, domain, now, short, text) => {
    expect(certificateOf(domain, now).short).toBe(short);
    expect(certificateText(domain, now)).toMatch(text);
  });
});

it('each DNS record has a stated purpose, and hints depend on the kind of domain', () => {
  expect(purposeText({ purpose: 'proof', type: 'CNAME' })).toBe('Routing and ownership');
  expect(purposeText({ purpose: 'proof', type: 'TXT' })).toBe('Ownership');
  expect(purposeText({ purpose: 'route', type: 'A' })).toBe('Routing');
  expect(purposeText({ purpose: 'challenge', type: 'CNAME' })).toBe('Certificate');
  expect(recordHint({ wildcard: false, records: [makeRecord({ type: 'A' })] })).toContain('@');
  expect(recordHint({ wildcard: true, records: [makeRecord()] })).toContain('asterisk');
});

describe('the path of a visitor to a domain', () => {
  const shorts = (domain: Parameters<typeof domainHops>[0]) =>
    domainHops(domain, NOW).map(({ tone, short }) => [tone, short]);

  it('is complete when record, certificate and tunnel exist', () => {
    expect(shorts(makeDomain({ active_tunnels: 2 }))).toEqual([
      ['good', 'Found'],
      ['good', 'Certificate valid'],
      ['good', '2 live tunnels'],
    ]);
  });

  it('shows the first missing step', () => {
    expect(shorts(makeDomain({ state: 'pending', records: [missing] }))).toEqual([
      ['accent', 'Missing'],
      ['neutral', 'Waiting for DNS'],
      ['neutral', 'No tunnel yet'],
    ]);
    expect(shorts(withCertificate('failing'))).toEqual([
      ['good', 'Found'],
      ['warn', 'Certificate: renewal failing'],
      ['warn', 'No tunnel yet'],
    ]);
    expect(shorts(makeDomain({ certificate: null }))[1]).toEqual(['good', 'No certificate']);
  });
});

function domainWith(certificate: 'none' | 'ordering' | 'failing', state: 'pending' | 'verified') {
  return makeDomain({
    state,
    certificate: makeCertificate({
      state: certificate,
      issuer: null,
      not_before: null,
      not_after: null,
      renew_at: null,
    }),
  });
}

function withCertificate(state: 'failing' | 'renewing') {
  return makeDomain({ certificate: makeCertificate({ state }) });
}
