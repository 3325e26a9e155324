import { hostname } from 'node:os';
import { Secret } from '@tunnel/runtime';
import { describe, expect, it } from 'vitest';
import { type ConnectOptions, checkOptions } from './options.ts';

const server = '127.0.0.1:4040';

describe('the API key option', () => {
  it.each(['', ' \n', undefined])('is reported as missing for %j', (token) => {
    expect(() => checkOptions({ server, token } as ConnectOptions)).toThrow(
      expect.objectContaining({ code: 'CLIENT_KEY_MISSING' }),
    );
  });

  it('is refused at once when longer than 512 bytes', () => {
    expect(() => checkOptions({ server, token: 'a'.repeat(513) })).toThrow(
      expect.objectContaining({ code: 'AUTH_TOKEN_INVALID' }),
    );
    expect(checkOptions({ server, token: new Secret('a'.repeat(512)) }).token.reveal()).toHaveLength(512);
  });
});

describe('the client name option', () => {
  const nameOf = (clientName?: string): string | undefined =>
    checkOptions({ server, token: 'tnl_x', ...(clientName === undefined ? {} : { clientName }) }).clientName;

  it('defaults to the host name of the computer', () => {
    expect(nameOf()).toBe(hostname().slice(0, 64));
    expect(nameOf('build box 3')).toBe('build box 3');
    expect(nameOf('研'.repeat(64))).toBe('研'.repeat(64));
  });

  it.each(['', 'a'.repeat(65), 'two\nlines', 'x\u202ey'])('refuses %j', (clientName) => {
    expect(() => nameOf(clientName)).toThrow(expect.objectContaining({ code: 'CLIENT_NAME_INVALID' }));
  });
});
