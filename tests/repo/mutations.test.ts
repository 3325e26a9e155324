// The faults that scripts/mutate.mjs inserts into a file, and how the script finds their lines in a different version of the file.
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from './checkout.fixture.ts';

interface Mutation {
  readonly operator: string;
  readonly line: number;
}

const { mutate, mutationsOf } = (await import(join(ROOT, 'scripts/lib/mutation/mutations.mjs'))) as {
  mutationsOf: (file: string, source: string) => Mutation[];
  mutate: (source: string, mutation: Mutation) => string | undefined;
};

const SOURCE = `import { limit } from './limit.ts';
export const open = (size: number, logger: Logger): boolean => {
  if (size < limit && !isOld) return true;
  logger.info('closed', { size: size + 1 });
  close(size ?? 3);
};`;

const FAULTS = [
  'return; if (size < limit && !isOld) return true;',
  'if (!(size < limit && !isOld)) return true;',
  'if (size < limit || !isOld) return true;',
  'if (size <= limit && !isOld) return true;',
  'if (size >= limit && !isOld) return true;',
  'if (size < limit && isOld) return true;',
  'if (size < limit && !isOld) return undefined;',
  'if (size < limit && !isOld) return false;',
  ';',
  'close(size);',
  'close(size ?? (3 + 1));',
];

it('mutations change comparisons, conditions, calls, numbers and returns, but no types, imports or log lines', () => {
  const broken = mutationsOf('open.ts', SOURCE).map((mutation) => {
    const text = mutate(SOURCE, mutation) ?? '';
    return (text.split('\n')[mutation.line - 1] ?? '').trim();
  });
  expect(broken.toSorted()).toEqual(FAULTS.toSorted());
});

it('a mutation finds its line in a different version of the file, and is dropped if the line is gone', () => {
  const [mutation] = mutationsOf('open.ts', SOURCE);
  const moved = `// A comment above.\n${SOURCE.replaceAll('\n  ', '\n      ')}`;
  expect(mutate(moved, mutation!)).toContain('\n      return; if (size < limit && !isOld) return true;\n');
  expect(mutate(SOURCE.replace('isOld', 'isNew'), mutation!)).toBeUndefined();
});
