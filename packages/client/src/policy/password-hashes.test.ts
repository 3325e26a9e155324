import { createHmac } from 'node:crypto';
import { Secret } from '@tunnel/runtime';
import { describe, expect, it } from 'vitest';
import { hashPassword, isPasswordRight, PasswordLines, UNMADE_LINE } from './password-hashes.ts';

const lines = new PasswordLines();
const lineOf = lines.lineOf.bind(lines);

const LINE = /^\$scrypt\$ln=14,r=8,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/;

describe('a hashed password', () => {
  it('matches only the same password', async () => {
    const line = await hashPassword('correct horse');
    expect(line).toMatch(LINE);
    expect(line).not.toContain('horse');
    expect(await isPasswordRight(line, 'correct horse')).toBe(true);
    expect(await isPasswordRight(line, 'correct hors')).toBe(false);
    expect(await isPasswordRight('no line at all', 'correct horse')).toBe(false);
  });

  it('is equal for all members of a group, and differs by user, group key and password', async () => {
    const key = new Secret('the key of the group');
    const password = new Secret('p');
    const line = await lineOf('anna', password, key);
    expect(await lineOf('anna', new Secret('p'), new Secret('the key of the group'))).toBe(line);
    const salt = createHmac('sha256', 'the key of the group').update('basic-auth\0anna').digest().subarray(0, 16);
    expect(line.split('$')[3]).toBe(salt.toString('base64').replace(/=+$/, ''));
    const others = await Promise.all([
      lineOf('bert', password, key),
      lineOf('anna', password, new Secret('another key')),
      lineOf('anna', new Secret('q'), key),
    ]);
    expect(new Set([line, ...others]).size).toBe(4);
  });

  it('stays the same during the life of the process, so that a reconnect sends the same policy', async () => {
    const line = await lineOf('anna', new Secret('alone'), null);
    expect(await lineOf('anna', new Secret('alone'), null)).toBe(line);
    expect(line).not.toBe(await hashPassword('alone'));
  });

  it('is computed once for concurrent callers, and a failed hash does not block the next', async () => {
    const fresh = new PasswordLines();
    const broken = { reveal: () => 7 } as unknown as Secret;
    const [failed, ...made] = await Promise.allSettled([
      fresh.lineOf('anna', broken, null),
      fresh.lineOf('anna', new Secret('p'), null),
      fresh.lineOf('anna', new Secret('p'), null),
    ]);
    expect(failed.status).toBe('rejected');
    expect(new Set(made.map((line) => line.status === 'fulfilled' && line.value)).size).toBe(1);
    expect(await new PasswordLines().lineOf('anna', new Secret('p'), null)).not.toBe(
      await fresh.lineOf('anna', new Secret('p'), null),
    );
  });

  it('has a placeholder of the same length', () => {
    expect(UNMADE_LINE).toMatch(LINE);
  });
});
