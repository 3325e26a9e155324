import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { makeTestIo } from '../io/io.fixture.ts';
import { knownPlatform } from './known-platform.ts';

let home: TemporaryDirectory;
beforeEach(async () => {
  home = await temporaryDirectory();
  mkdirSync(join(home.path, '.tunnel'));
});
afterEach(() => home.close());

const write = (name: string, text: string): void =>
  writeFileSync(join(home.path, '.tunnel', name), text, { mode: 0o600 });
const session = (platform_url: string): string =>
  JSON.stringify({ version: 1, platform_url, email: 'ann@example.com', refresh_token: 'r', access_token: 'a' });
const known = (): string | null => knownPlatform(makeTestIo({ home: home.path }));

it('the platform of the sign-in comes before `platform_url` of config.yml', () => {
  expect(known()).toBeNull();
  write('config.yml', 'platform_url: https://config.example.com\n');
  expect(known()).toBe('https://config.example.com');
  write('session.json', session('https://session.example.com'));
  expect(known()).toBe('https://session.example.com');
});

it('a file that cannot be used hides only the link', () => {
  write('config.yml', 'platform_url: [\n');
  expect(known()).toBeNull();
  write('session.json', session('https://x.example.com/\u001b[2J'));
  expect(known()).toBeNull();
});
