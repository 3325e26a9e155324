import { describe, expect, it } from 'vitest';
import { certificateFault, reasonOf } from './dial-faults.ts';

const failed = (code: string, message: string): Error => Object.assign(new Error(message), { code });

describe('what a failed dial is called', () => {
  it('is a plain word where there is one, else what node says', () => {
    expect(reasonOf(failed('ECONNREFUSED', 'connect ECONNREFUSED 127.0.0.1:1'))).toBe('connection refused');
    expect(reasonOf(failed('EWHATEVER', 'something odd'))).toBe('something odd');
    expect(reasonOf(failed('EWHATEVER', ''))).toBe('EWHATEVER');
    expect(reasonOf(undefined)).toBe('unknown error');
  });

  it('is the same on every Node.js: without advice about flags of node', () => {
    const advice = '; if the root CA is installed locally, try running Node.js with --use-system-ca';
    const error = failed('DEPTH_ZERO_SELF_SIGNED_CERT', `self-signed certificate${advice}`);
    expect(reasonOf(error)).toBe('self-signed certificate');
    expect(certificateFault('edge:4040', error)?.message).toMatch(
      /self-signed certificate \(DEPTH_ZERO_SELF_SIGNED_CERT\)$/,
    );
  });
});
