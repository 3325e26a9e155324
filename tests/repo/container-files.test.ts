// deploy/container names commands that exist, and nothing there or in deploy/compose depends on a moving target.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { health } from '../../apps/server/src/commands/health-command.ts';
import { ROOT } from './checkout.fixture.ts';

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

const CONTAINERFILE = read('deploy/container/Containerfile');

it('the version in .env.example is the version of the release', () => {
  const { version } = JSON.parse(read('package.json')) as { version: string };
  expect(read('deploy/compose/.env.example')).toContain(`\nHATCHWAY_VERSION=${version}\n`);
});

it('the health checks of the images are commands of the server and the client', () => {
  const checks = [...CONTAINERFILE.matchAll(/^HEALTHCHECK .* CMD (\[.*\])$/gm)].map(
    ([, text = '']) => JSON.parse(text) as string[],
  );
  expect(checks).toEqual([
    ['tunnel', 'ready'],
    ['tunnel-server', health(() => {}).name()],
  ]);
  expect(read('docs/cli.md')).toContain('\n#### tunnel ready\n');
});

it('the images run as a user other than root, and no instruction needs curl or a secret', () => {
  expect(CONTAINERFILE.match(/^USER .*$/gm)).toEqual(['USER 10001:10001', 'USER 10001:10001']);
  expect(CONTAINERFILE).not.toMatch(/curl|wget|--mount=type=secret|:latest/);
  expect(CONTAINERFILE).toMatch(/^ARG BASE=debian:bookworm-slim$/m);
});
