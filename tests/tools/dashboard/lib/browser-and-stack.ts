// Starts a browser and a stack for a script, and stops both afterwards.
import { type Browser, chromium } from 'playwright-core';
import { type OwnStack, startOwnStack } from '../../../browser/own-stack.fixture.ts';
import { startChromium, stopChromium } from '../../../browser/start-chromium.fixture.ts';
import { Harness } from '../../../system/harness.fixture.ts';
import type { Stack } from '../../../system/stack.fixture.ts';

export interface Tools {
  readonly values: Readonly<Record<string, number | boolean>>;
  readonly say: (line: string) => void;
  readonly check: (isRight: boolean, what: string) => void;
}

export interface Stage {
  readonly browser: Browser;
  readonly stack: Stack;
  readonly harness: Harness;
}

export const onStage = async <T>(play: (stage: Stage) => Promise<T>): Promise<T> => {
  const started = await startChromium();
  if (started.server === null) throw new Error(`no browser runs here: ${started.reason}`);
  const harness = new Harness();
  try {
    const { stack }: OwnStack = harness.use(await startOwnStack());
    const browser = await chromium.connect(started.server.wsEndpoint());
    return await play({ browser, stack, harness });
  } finally {
    await stopChromium(started.server);
    await harness.close();
  }
};
