import { expect, it } from 'vitest';
import { createOwnOriginCheck, isFromBrowser } from './refresh-cookie.ts';

it('the published origin and requests without an Origin are accepted', () => {
  const isOurs = createOwnOriginCheck({ host: '0.0.0.0', public_url: 'https://tunnel.example/base' }, () => 8080);
  expect([isOurs(undefined), isOurs('https://tunnel.example')]).toEqual([true, true]);
  const others = ['https://evil.tunnel.example', 'http://tunnel.example', 'https://tunnel.example:8443', 'null', ''];
  expect(others.map(isOurs)).toEqual(others.map(() => false));
  expect(isOurs('http://localhost:8080')).toBe(false);
});

it.each(['127.0.0.1', 'localhost', '::1', '127.1.2.3'])(
  'localhost and 127.0.0.1 are accepted as origins while host is %s',
  (host) => {
    const isOurs = createOwnOriginCheck({ host, public_url: 'http://localhost:8080' }, () => 18_080);
    expect(['http://localhost:18080', 'http://127.0.0.1:18080', 'http://localhost:8080'].map(isOurs)).toEqual([
      true,
      true,
      true,
    ]);
    const others = [
      'http://localhost:8000',
      'http://web.localhost:18080',
      'https://localhost:18080',
      'http://[::1]:18080',
    ];
    expect(others.map(isOurs)).toEqual(others.map(() => false));
  },
);

it('the default port 80 is left out of the origin, as browsers do', () => {
  const isOurs = createOwnOriginCheck({ host: '127.0.0.1', public_url: 'https://tunnel.example' }, () => 80);
  expect(isOurs('http://localhost')).toBe(true);
});

it('a request with an Origin or Sec-Fetch header counts as a browser, but a fetch of Node.js does not', () => {
  const browsers = [
    { origin: 'https://tunnel.example' },
    { Origin: '' },
    { 'sec-fetch-site': 'same-origin' },
    { 'Sec-Fetch-Dest': 'empty', 'Sec-Fetch-Mode': 'cors' },
    { 'sec-fetch-user': '?1' },
    { 'sec-fetch-storage-access': 'none' },
    { 'sec-fetch-mode': 'same-origin' },
  ];
  expect(browsers.map(isFromBrowser)).toEqual(browsers.map(() => true));
  const programs = [
    {},
    { cookie: 'refresh_token=x', accept: '*/*' },
    { 'sec-fetch-mode': 'cors' },
    { 'sec-ch-ua': '' },
  ];
  expect(programs.map((headers) => isFromBrowser(headers))).toEqual(programs.map(() => false));
});
