// The progress line during a long step of `npm start`.
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { ROOT } from './checkout.fixture.ts';

interface Stream {
  readonly isTTY: boolean;
  write(text: string): void;
}

const { withProgress } = (await import(join(ROOT, 'scripts/lib/progress.mjs'))) as {
  withProgress: <T>(label: string, stream: Stream, work: () => Promise<T>) => Promise<T>;
};

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Returns the texts written while a step of 21 seconds runs. */
const written = async (isTTY: boolean): Promise<string[]> => {
  const texts: string[] = [];
  const stream = { isTTY, write: (text: string) => void texts.push(text) };
  const work = (): Promise<string> => new Promise((resolve) => void setTimeout(() => resolve('done'), 20_500));
  const running = withProgress('Installing', stream, work);
  await vi.advanceTimersByTimeAsync(21_000);
  expect(await running).toBe('done');
  await vi.advanceTimersByTimeAsync(60_000);
  return texts;
};

it('progress at a terminal counts seconds in a single line, which is cleared at the end', async () => {
  const texts = await written(true);
  expect(texts.slice(0, 3)).toEqual(
    ['Installing ... 0 s', 'Installing ... 1 s', 'Installing ... 2 s'].map((text) => `\r\u001b[K${text}`),
  );
  expect(texts).toHaveLength(22);
  expect(texts.at(-1)).toBe('\r\u001b[K');
});

it('progress outside a terminal prints a line every ten seconds', async () => {
  expect(await written(false)).toEqual(['Installing ... 10 s\n', 'Installing ... 20 s\n']);
});
