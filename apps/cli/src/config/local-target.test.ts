import { describe, expect, it } from 'vitest';
import { targetEntry, typedAddress, typedAddressOrSocket, typedUrl } from './local-target.ts';

describe('a target on the command line', () => {
  it.each([
    ['3000', { port: 3000 }],
    ['localhost:3000', { host: 'localhost', port: 3000 }],
    ['127.0.0.1:3000', { host: '127.0.0.1', port: 3000 }],
    ['[::1]:3000', { host: '::1', port: 3000 }],
    ['my_db.internal:65535', { host: 'my_db.internal', port: 65_535 }],
  ])('%s is accepted by every command', (text, target) => {
    for (const read of [typedUrl, typedAddressOrSocket, typedAddress]) expect(read(text)).toEqual(target);
  });

  it.each([
    ['http://localhost:3000', { scheme: 'http', host: 'localhost', port: 3000 }],
    ['HTTP://LocalHost:3000/', { scheme: 'http', host: 'localhost', port: 3000 }],
    ['https://localhost:3443', { scheme: 'https', host: 'localhost', port: 3443 }],
    ['http://[::1]:3000', { scheme: 'http', host: '::1', port: 3000 }],
    ['http://app.test', { scheme: 'http', host: 'app.test', port: 80 }],
    ['https://app.test/', { scheme: 'https', host: 'app.test', port: 443 }],
  ])('%s is accepted only by http', (text, target) => {
    expect(typedUrl(text)).toEqual(target);
    expect(() => typedAddressOrSocket(text)).toThrow('Use 1-65535, host:port or unix:PATH.');
    expect(() => typedAddress(text)).toThrow('Use 1-65535 or host:port.');
  });

  it('can be a unix socket for http and tcp, not for udp', () => {
    for (const read of [typedUrl, typedAddressOrSocket])
      expect(read('unix:/run/a.sock')).toEqual({ socket: '/run/a.sock' });
    expect(() => typedAddress('unix:/run/a.sock')).toThrow('Use 1-65535 or host:port.');
  });

  it.each([
    '',
    'x',
    '0',
    '65536',
    '123456',
    '-1',
    '3000x',
    ' 3000',
    'localhost',
    'localhost:',
    ':3000',
    'a:b:3000',
    '::1:3000',
    'unix:',
    'ftp://localhost:21',
    'http://',
    'http://localhost:0',
    'http://localhost:70000',
    'localhost:3000/path',
    'me@localhost:3000',
  ])('%j is refused', (text) => expect(() => typedUrl(text)).toThrow('Use 1-65535, host:port or a URL.'));

  it.each([
    'http://localhost:3000/app',
    'http://localhost:3000/?a=1',
    'http://localhost:3000#top',
    'http://localhost:3000/app/',
  ])('%s is refused with the URL to type instead', (text) =>
    expect(() => typedUrl(text)).toThrow('Leave out the path and query: http://localhost:3000'),
  );

  it('is refused with a password, and the error does not repeat the password', () => {
    expect(() => typedUrl('http://ann:sesame@localhost:3000')).toThrow(
      /^Leave out user and password: http:\/\/localhost:3000$/,
    );
  });
});

describe('config.yml keys of a target', () => {
  const IO = { cwd: '/work', home: '/home/ann' };

  it('contain the typed host next to the port', () => {
    expect(targetEntry({ port: 1, host: 'a' }, undefined, IO)).toEqual({ local_host: 'a', local_port: 1 });
    expect(targetEntry({ port: 1, host: 'b' }, 'b', IO)).toEqual({ local_host: 'b', local_port: 1 });
    expect(targetEntry({ port: 1 }, 'b', IO)).toEqual({ local_port: 1 });
    expect(targetEntry({ socket: 'a.sock' }, undefined, IO)).toEqual({ local_socket: '/work/a.sock' });
  });

  it('are refused for two different hosts', () => {
    expect(() => targetEntry({ port: 1, host: 'a' }, 'b', IO)).toThrow(
      'two local hosts given, a and b. Leave out --local-host.',
    );
  });
});
