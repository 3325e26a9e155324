import { expect, it } from 'vitest';
import { createOwnOriginCheck, isFromBrowser } from './refresh-cookie.ts';

it('takes the published origin, and requests that name none', () => {
  const isOurs = createOwnOriginCheck({ host: '0.0.0.0', public_url: 'https://tunnel.example/base' }, () => 8080);
  expect([isOurs(undefined), isOurs('https://tunnel.example')]).toEqual([true, true]);
  const others = ['https://evil.tunnel.example', 'http://tunnel.example', 'https://tunnel.example:8443', 'null', ''];
  expect(others.map(isOurs)).toEqual(others.map(() => false));
  expect(isOurs('http://localhost:8080')).toBe(false);
});

it.each(['127.0.0.1', 'localhost', '::1', '127.1.2.3'])('takes both names of this machine while host is %s', (host) => {
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
});

it('writes port 80 as browsers do', () => {
  const isOurs = createOwnOriginCheck({ host: '127.0.0.1', public_url: 'https://tunnel.example' }, () => 80);
  expect(isOurs('http://localhost')).toBe(true);
});

it('knows a browser by its Origin or any Sec-Fetch header, and a fetch of Node.js as a program', () => {
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
