import { describe, expect, it } from 'vitest';
import { certificateFault, reasonOf } from './dial-faults.ts';

const failed = (code: string, message: string): Error => Object.assign(new Error(message), { code });

describe('the reason of a failed dial', () => {
  it('is a plain phrase for known codes, and the message of Node.js otherwise', () => {
    expect(reasonOf(failed('ECONNREFUSED', 'connect ECONNREFUSED 127.0.0.1:1'))).toBe('connection refused');
    expect(reasonOf(failed('EWHATEVER', 'something odd'))).toBe('something odd');
    expect(reasonOf(failed('EWHATEVER', ''))).toBe('EWHATEVER');
    expect(reasonOf(undefined)).toBe('unknown error');
  });

  it('leaves out the Node.js advice about command-line flags', () => {
    const advice = '; if the root CA is installed locally, try running Node.js with --use-system-ca';
    const error = failed('DEPTH_ZERO_SELF_SIGNED_CERT', `self-signed certificate${advice}`);
    expect(reasonOf(error)).toBe('self-signed certificate');
    expect(certificateFault('edge:4040', error)?.message).toMatch(
      /self-signed certificate \(DEPTH_ZERO_SELF_SIGNED_CERT\)$/,
    );
  });
});
