import { Secret } from '@tunnel/runtime';
import { describe, expect, it } from 'vitest';
import { type ConnectOptions, checkOptions } from './options.ts';

const server = '127.0.0.1:4040';

describe('the key', () => {
  it.each(['', ' \n', undefined])('%j is none', (token) => {
    expect(() => checkOptions({ server, token } as ConnectOptions)).toThrow(
      expect.objectContaining({ code: 'CLIENT_KEY_MISSING' }),
    );
  });

  it('is refused at once when it fits no frame, as a whole file would be', () => {
    expect(() => checkOptions({ server, token: 'a'.repeat(513) })).toThrow(
      expect.objectContaining({ code: 'AUTH_TOKEN_INVALID' }),
    );
    expect(checkOptions({ server, token: new Secret('a'.repeat(512)) }).token.reveal()).toHaveLength(512);
  });
});
