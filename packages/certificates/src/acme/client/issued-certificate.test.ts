import { expect, it } from 'vitest';
import { renewalId } from './issued-certificate.ts';

it('a renewal id contains the serial in DER form, with a zero byte before a high bit', () => {
  // Example from RFC 9773, section 4.1.
  const keyId = '69885b6b87464041e1b37b847ba0ae2cde01c8d4';
  expect(renewalId(keyId, '87654321')).toBe('aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE');
  expect(renewalId(keyId, '0087654321')).toBe('aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE');
  expect(renewalId(keyId, '7654321')).toBe('aYhba4dGQEHhs3uEe6CuLN4ByNQ.B2VDIQ');
});
