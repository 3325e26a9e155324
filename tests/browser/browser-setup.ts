// Runs before the browser tests: builds the executables and pages, and starts a Chromium and a stack that all test files share.
// On machines without a browser, the tests are skipped with a message. With TUNNEL_BROWSER_REQUIRED=1 a missing browser is a failure.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { setup as build } from '../global-setup.ts';
import { ROOT } from '../repo/checkout.fixture.ts';
import { type OwnStack, startOwnStack } from './own-stack.fixture.ts';
import { startChromium, stopChromium } from './start-chromium.fixture.ts';

/** File with the reason for skipped browser tests. Read by scripts/lib/steps.mjs. */
const NO_BROWSER = join(ROOT, '.cache/no-browser.txt');

export interface BrowserAddress {
  /** WebSocket endpoint of the browser; null if no browser runs on this machine. */
  readonly endpoint: string | null;
  readonly dataDir: string;
  readonly flags: readonly string[];
}

declare module 'vitest' {
  interface ProvidedContext {
    browserAddress: BrowserAddress;
  }
}

export const setup = async (project: TestProject): Promise<() => Promise<void>> => {
  const { server, ...more } = await startChromium();
  if (server === null) {
    const line = `no browser runs here, so nothing was tested in one: ${'reason' in more ? more.reason : ''}`;
    if (process.env['TUNNEL_BROWSER_REQUIRED'] === '1') throw new Error(line);
    mkdirSync(join(ROOT, '.cache'), { recursive: true });
    writeFileSync(NO_BROWSER, `${line}\n`);
    project.provide('browserAddress', { endpoint: null, dataDir: '', flags: [] });
    return async () => {};
  }
  try {
    await build();
    const own: OwnStack = await startOwnStack();
    const { dataDir, flags } = own.stack;
    project.provide('browserAddress', { endpoint: server.wsEndpoint(), dataDir, flags });
    return async () => {
      await stopChromium(server);
      await own.close();
    };
  } catch (error) {
    await stopChromium(server);
    throw error;
  }
};
