import { Fault } from '@tunnel/errors';
import { describe, expect, it } from 'vitest';
import { parseServerAddress } from './server-address.ts';

describe('parseServerAddress', () => {
  it.each([
    ['edge.example.com:4440', 'edge.example.com', 4440, 'edge.example.com:4440'],
    ['edge.example.com', 'edge.example.com', 4040, 'edge.example.com:4040'],
    [' 127.0.0.1:1 ', '127.0.0.1', 1, '127.0.0.1:1'],
    ['[::1]:4440', '::1', 4440, '[::1]:4440'],
    ['[::1]', '::1', 4040, '[::1]:4040'],
    ['2001:db8::7', '2001:db8::7', 4040, '[2001:db8::7]:4040'],
  ])('reads %s', (text, host, port, shown) => {
    expect(parseServerAddress(text)).toEqual({ host, port, text: shown });
  });

  it.each([
    '',
    ':4040',
    'host:',
    'host:0',
    'host:65536',
    'host:4o4',
    'a b:1',
    '[nonsense]:1',
    'https://edge:4040',
    'a..b',
    '-x-:1',
  ])('refuses %j and names it', (text) => {
    expect(() => parseServerAddress(text)).toThrow(Fault);
    expect(() => parseServerAddress(text)).toThrow(`\`${text}\``);
  });
});
